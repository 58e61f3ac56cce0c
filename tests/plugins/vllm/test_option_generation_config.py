"""--generation-config names a folder or a word; other options that end so take JSON."""

from __future__ import annotations

import pytest
from vllm_tables import TABLE, v


@pytest.mark.parametrize("release", ["0.6.6", "0.8.5", "0.11.0", "0.33.0"])
@pytest.mark.parametrize("value", ["auto", "vllm", "./generation"])
def test_generation_config_is_text(release: str, value: str) -> None:
    assert TABLE.check_value("generation_config", value, v(release)) is None


def test_its_override_is_json() -> None:
    assert TABLE.check_value("override_generation_config", "vllm", v("0.11.0")) is not None
    assert TABLE.check_value("override_generation_config", '{"top_k": 5}', v("0.11.0")) is None
