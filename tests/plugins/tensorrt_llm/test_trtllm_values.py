"""Values of another kind than what stands in their place."""

from __future__ import annotations

from typing import Any

import pytest
from trtllm_specs import verdicts


@pytest.mark.parametrize(
    ("args", "verdict"),
    [
        ({"kv_cache_config": 5}, "fail"),
        ({"kv_cache_config": {"dtype": "auto"}}, "pass"),
        ({"cuda_graph_config": []}, "fail"),
        ({"cuda_graph_config": None}, "pass"),
        ({"cuda_graph_config": {"batch_sizes": ["a", 4]}}, "fail"),
        ({"cuda_graph_config": {"batch_sizes": [1, "4"]}}, "pass"),
    ],
)
def test_values(args: dict[str, Any], verdict: str) -> None:
    found = verdicts(version="1.0.0", args={"max_batch_size": 64, **args})
    assert found["options/value"] == {verdict}
