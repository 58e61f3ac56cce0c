"""CUDA graphs: which batch sizes are captured, and what their memory is charged to.

V0 captures decoding only, V1 every size piece by piece, from 0.11.0 decoding once more as a whole.
Read in the configuration and the graph dispatcher of 0.8.5 to 0.33.0. From 0.18.0 start-up measures
a trial capture, on ROCm from 0.26.0; from 0.20.0 the estimate counts inside the budget.
"""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Case, Line, Terms
from capcheck.option_reader import OptionReader
from capcheck_vllm import defaults, runner
from capcheck_vllm.runner import second_runner
from capcheck_vllm.table import TABLE

Version = tuple[int, ...]
WHOLE_DECODING = (0, 11, 0)
TRIAL_CAPTURE = {"nvidia": (0, 18, 0), "amd": (0, 26, 0)}
COUNTED = (0, 20, 0)
NO_GRAPHS = ("none", "0")
ONE_KIND = ("piecewise", "full", "full_decode_only")


class Captures(NamedTuple):
    """How many graphs are captured: all sizes piece by piece, decoding as a whole."""

    pieces: int = 0
    decodes: int = 0

    @property
    def all(self) -> int:
        """All of them."""
        return self.pieces + self.decodes


def sizes_up_to(most: int, fine_until: int = 256) -> tuple[int, ...]:
    """1, 2, 4, then steps of 8, from `fine_until` on steps of 16."""
    small = [size for size in (1, 2, 4) if size <= most]
    fine = range(8, min(most + 1, fine_until), 8)
    coarse = range(fine_until, most + 1, 16)
    return (*small, *fine, *coarse)


def captures(case: Case) -> Captures:
    """The graphs of this deployment; none when eager. Raises Unknown."""
    if not case.plan.graphs.get("enforce_eager"):
        return Captures()
    part = case.accelerator.get("accelerator")
    if part.vendor not in TRIAL_CAPTURE:
        return Captures()
    version = case.release.version
    sequences = case.plan.max_sequences.get("max_num_seqs")
    if not case.plan.extra["v1"].get():
        return Captures(0, len(sizes_up_to(min(sequences, 256), 10**9)))
    read = OptionReader(case.deployment, TABLE, version)
    mode = _mode(read)
    if mode in NO_GRAPHS:
        return Captures()
    step = 1 + _drafted(case)
    sizes = _sizes(case, read, sequences, step)
    loras = 2 if case.plan.extra["enable_lora"].get() else 1
    decodes = [size for size in sizes if step <= size <= sequences * step]
    if version < WHOLE_DECODING and mode == "":
        mode = "piecewise"
    if mode in ONE_KIND:
        return Captures(len(decodes if mode == "full_decode_only" else sizes) * loras, 0)
    return Captures(len(sizes) * loras, len(decodes) * loras)


def _mode(read: OptionReader) -> str:
    """cudagraph_mode in lower case; "" when it is the release's own."""
    for path in (("compilation_config", "cudagraph_mode"), ("cudagraph_mode",)):
        found = read.deployment.text(*read.path(path[0], *path[1:]))
        if found is not None:
            return str(found.either("") or "").lower()
    return ""


def _drafted(case: Case) -> int:
    tokens = case.plan.draft_tokens
    return int(tokens.either(0) or 0) if case.plan.draft is not None and tokens is not None else 0


def _sizes(case: Case, read: OptionReader, sequences: int, step: int) -> tuple[int, ...]:
    """The sizes of one kind of graphs."""
    version = case.release.version
    part = case.accelerator.get("accelerator")
    most = defaults.largest_capture(version, sequences, step, part.capability)
    for path in (
        ("max_cudagraph_capture_size",),
        ("compilation_config", "max_cudagraph_capture_size"),
    ):
        stated = read.deployment.count(*read.path(path[0], *path[1:]))
        if stated is not None and stated.either(None) is not None:
            most = int(stated.either(0) or 0)
    most = min(most, case.plan.max_step_tokens.either(most) or most)
    return sizes_up_to(most, 256 if version >= (0, 13, 0) else 10**9)


def lines(case: Case, t: Terms, layers: int) -> list[Line]:
    """The estimate inside the budget, or what is captured outside of it."""
    found = captures(case)
    if not found.all:
        return []
    version = case.release.version
    part = case.accelerator.get("accelerator")
    flag = case.deployment.text("engine", "env", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    tried = version >= TRIAL_CAPTURE[part.vendor]
    if second_runner(case, bool(case.plan.extra["v1"].get())):
        tried = tried and version >= runner.TRIAL_CAPTURE
    inside = tried and counted(version, flag.either(None) if flag is not None else None)
    if inside:
        size = t.read("vllm.graph_base_bytes")
        size += found.all * layers * t.read("vllm.graph_bytes_per_layer")
        size += found.all * t.read("vllm.graph_bytes_of_collectives")
    else:  # real captures: what communication costs in trial ones is not seen in them
        size = t.read("vllm.captured_base_bytes")
        size += found.all * layers * t.read("vllm.captured_bytes_per_layer")
    return [Line("CUDA graphs", size, "capture", inside, f"{found.all} graphs")]


def counted(version: Version, flag: str | None) -> bool:
    """Whether the estimate is charged inside the utilization; the variable decides from 0.18."""
    if version < TRIAL_CAPTURE["nvidia"]:
        return False
    if flag is not None:
        return flag.strip() not in ("0", "false", "False", "")
    return version >= COUNTED
