"""The reader of released sources: both styles of registration, nothing of which is run."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"
BOMB = "raise SystemExit('this code must not run')\n"
OLD = """
    KINDS = ["awq", "fp8"]

    class ServerArgs:
        model_path: str
        tp_size: int = 1
        watermarks: list = dataclasses.field(default_factory=list)

        @staticmethod
        def add_cli_args(parser):
            parser.add_argument("--model-path", "--model", type=str, required=True)
            parser.add_argument("--tensor-parallel-size", "--tp-size", type=int,
                                default=ServerArgs.tp_size)
            parser.add_argument("--quantization", choices=KINDS, default=None)
            parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
            parser.add_argument("--disable-radix-cache", action="store_true")
"""
NEW = """
    class Schedule(msgspec.Struct):
        max_total_tokens: A[Optional[int], Arg(help="x", type_parser=human_readable_int)] = None
        page_size: A[Optional[int], "Tokens of a page."] = None
        schedule_policy: A[str, Arg(help="x", choices=["lpm", "fcfs"])] = "fcfs"
        tp_size: A[int, Arg(help="x", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1
        hidden: A[bool, Arg(help="x", no_cli=True)] = False
        plain: bool = True
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(TOOLS))
    import sglang_options

    return sglang_options


def _write(folder: Path, name: str, text: str) -> None:
    file = folder / "sglang" / "srt" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(BOMB + textwrap.dedent(text), "utf-8")


def test_registered_options(tool: object, tmp_path: Path) -> None:
    _write(tmp_path, "server_args.py", OLD)
    found = {one.name: one for one in sys.modules["sglang_options"].Source(tmp_path).options()}
    assert found["model_path"].shape == {"type": "text", "aliases": ["model"]}
    assert found["tp_size"].shape == {"type": "int", "aliases": ["tensor_parallel_size"]}
    assert found["tp_size"].default == 1
    assert found["quantization"].shape == {"type": "choice", "choices": ["awq", "fp8"]}
    assert found["cuda_graph_bs"].shape == {"type": "list", "item": "int"}
    assert found["disable_radix_cache"].default is False


def test_declared_options(tool: object, tmp_path: Path) -> None:
    _write(tmp_path, "server_args.py", "class ServerArgs: pass\n")
    _write(tmp_path, "arg_groups/fields/schedule.py", NEW)
    found = {one.name: one for one in sys.modules["sglang_options"].Source(tmp_path).options()}
    assert set(found) == {"max_total_tokens", "page_size", "schedule_policy", "tp_size"}
    assert found["max_total_tokens"].shape == {"type": "tokens"}
    assert found["page_size"].shape == {"type": "int"}
    assert found["schedule_policy"].shape["choices"] == ["fcfs", "lpm"]
    assert found["tp_size"].shape["aliases"] == ["tensor_parallel_size"]
