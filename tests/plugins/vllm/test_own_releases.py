"""Which versions and tags are vLLM's own releases: others may refuse less, or more."""

from __future__ import annotations

import pytest

from capcheck_vllm.releases import is_own, releases


@pytest.mark.parametrize(
    "text",
    ["0.11.0", "v0.10.1.1", "0.11.2+cu129", "v0.10.2-x86_64", "0.8.5.post1", "0.11.0rc2",
     "0.10.2-gpu-py312-cu129-ubuntu22.04-ec2", "0.11.2.dev690+g1f0b2e3c4.d20251209"],
)  # fmt: skip
def test_packaged_releases_are_its_own(text: str) -> None:
    assert is_own(text)
    (release,) = releases(text, "")
    assert release.known
    assert not release.foreign


@pytest.mark.parametrize("text", ["0.6.1-patched3", "v0.6.1-edb07092-20250118", "0.11.0+corp"])
def test_patched_builds_are_not(text: str) -> None:
    assert not is_own(text)
    (release,) = releases(text, "")
    assert release.foreign
    assert release.why.startswith(text)


def test_old_and_strange_versions_say_why() -> None:
    assert {one.why for one in releases("0.4.3", "")} == {
        "0.4.3 is older than the releases known here"
    }
    assert all(one.foreign for one in releases("abc", ""))
    assert not any(one.foreign for one in releases(None, "no tag"))
