"""Small releases in the old and the new style, read without running them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from vllm_reader import history
from vllm_reader.environment import variables
from vllm_reader.registry import Reading, Release
from vllm_reader.sources import Tree
from vllm_reader.subkeys import keys_of

BOMB = "raise SystemExit('this code must not run')\n"

OLD = {
    "vllm/engine/arg_utils.py": """
        import json
        from vllm.config import QUANT, Mode, TaskOption
        from typing import get_args

        def nullable_kvs(val): ...

        class EngineArgs:
            max_model_len: int = None
            swap_space: float = 4

            @staticmethod
            def add_cli_args(parser):
                parser.add_argument('--max-model-len', type=int,
                                    default=EngineArgs.max_model_len)
                parser.add_argument('--swap-space', type=float, default=EngineArgs.swap_space)
                parser.add_argument('--quantization', '-q', choices=[*QUANT, None])
                parser.add_argument('--mode', choices=[m.value for m in Mode],
                                    default=Mode.FAST.value)
                parser.add_argument('--task', choices=get_args(TaskOption))
                parser.add_argument('--limits', type=nullable_kvs)
                parser.add_argument('--rope', type=json.loads)
                parser.add_argument('--eager', action='store_true')
                parser.add_argument('--chunked', action=StoreBoolean, nargs='?', const='True')
                parser.add_argument('--names', nargs='+', type=str)
                return parser

        class AsyncEngineArgs(EngineArgs):
            @staticmethod
            def add_cli_args(parser, async_args_only=False):
                if not async_args_only:
                    parser = EngineArgs.add_cli_args(parser)
                parser.add_argument('--quiet', action='store_true')
                return parser
    """,
    "vllm/config.py": """
        from enum import Enum
        from typing import Literal
        QUANT = ["awq", "gptq"]
        TaskOption = Literal["auto", "embed"]
        class Mode(Enum):
            FAST = "fast"
            SLOW = "slow"
        class CacheConfig:
            def _verify_args(self):
                if self.swap_space > 64:
                    raise ValueError
                if self.nested:
                    if self.max_model_len > 1:
                        raise ValueError
    """,
    "vllm/entrypoints/openai/cli_args.py": """
        from vllm.engine.arg_utils import AsyncEngineArgs
        def make_arg_parser(parser):
            parser.add_argument('--port', type=int, default=8000)
            parser = AsyncEngineArgs.add_cli_args(parser)
            return parser
    """,
    "vllm/model_executor/layers/quantization/__init__.py": """
        QUANTIZATION_METHODS = {"awq": 1, "gptq": 2}
    """,
    "vllm/envs.py": """
        import os
        from typing import TYPE_CHECKING, Optional
        if TYPE_CHECKING:
            VLLM_SIZE: int = 3
            VLLM_ON: bool = False
            VLLM_ROOT: str = ""
        environment_variables = {
            "VLLM_SIZE": lambda: int(os.getenv("VLLM_SIZE", str(4 * 1024))),
            "VLLM_ON": lambda: bool(int(os.getenv("VLLM_ON", "1"))),
            "VLLM_ROOT": lambda: os.getenv("VLLM_ROOT", os.getcwd()),
            "CUDA_HOME": lambda: os.getenv("CUDA_HOME"),
        }
    """,
}
NEW = {
    **OLD,
    "vllm/engine/arg_utils.py": """
        import argparse
        import json
        from dataclasses import dataclass
        from vllm.config import CacheConfig, SpecConfig
        from vllm.utils.argparse_utils import human_readable_int

        def get_kwargs(cls):
            for field in fields(cls):
                if contains_type(int):
                    human = {"max_model_len"}
                    if name in human:
                        kwargs[name]["type"] = human_readable_int

        @dataclass
        class EngineArgs:
            max_model_len: int | None = CacheConfig.max_model_len
            enable_lora: bool = False
            hidden_field: int = 1

            @staticmethod
            def add_cli_args(parser):
                kwargs = get_kwargs(CacheConfig)
                group = parser.add_argument_group(title="CacheConfig")
                group.add_argument("--max-model-len", **kwargs["max_model_len"])
                group.add_argument("--share", "--part", dest="share", **kwargs["share"])
                group.add_argument("--cache-dtype", **kwargs["cache_dtype"])
                group.add_argument("--prefix", **{**kwargs["prefix"], "default": None})
                group.add_argument("--sizes", **kwargs["sizes"])
                group.add_argument("--spec-config", **kwargs["spec_config"])
                group.add_argument("--enable-lora", action=argparse.BooleanOptionalAction)
                backend = kwargs["backend"]
                backend["choices"].remove("hidden")
                backend["type"] = lambda s: s.lower()
                group.add_argument("--backend", **backend)
                return parser

        @dataclass
        class AsyncEngineArgs(EngineArgs):
            @staticmethod
            def add_cli_args(parser, async_args_only=False):
                return EngineArgs.add_cli_args(parser)
    """,
    "vllm/config.py": """
        from dataclasses import field
        from typing import Literal, Optional
        from pydantic import Field
        from pydantic.dataclasses import dataclass
        CacheDType = Literal["auto", "fp8"]
        @dataclass
        class SpecConfig:
            model: str = ""
            count: Optional[int] = None
        @dataclass
        class CacheConfig:
            max_model_len: Optional[int] = None
            share: float = Field(default=0.92, gt=0, le=1)
            cache_dtype: CacheDType | str = "auto"
            prefix: bool = True
            sizes: list[int] = field(default_factory=lambda: [512])
            spec_config: SpecConfig = field(default_factory=SpecConfig)
            backend: Literal["one", "hidden"] = "one"
    """,
    "vllm/entrypoints/openai/cli_args.py": """
        from vllm.config import dataclass
        from vllm.engine.arg_utils import AsyncEngineArgs, get_kwargs
        @dataclass
        class FrontendArgs:
            api_key: Optional[list[str]] = None
            port: int = 8000

            @classmethod
            def add_cli_args(cls, parser):
                for key, value in get_kwargs(cls).items():
                    parser.add_argument(f"--{key.replace('_', '-')}", **value)
                return parser

        def make_arg_parser(parser):
            parser.add_argument("model_tag", nargs="?")
            parser = FrontendArgs.add_cli_args(parser)
            return AsyncEngineArgs.add_cli_args(parser)
    """,
    "vllm/utils/argparse_utils.py": """
        def human_readable_int(value): ...
        class EnableDisableAction: ...
    """,
}


def release(folder: Path, files: dict[str, str]) -> Release:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text) + BOMB)
        for package in file.relative_to(folder).parents:
            if package.name:
                (folder / package / "__init__.py").touch()
    return Release(Tree(folder))


@pytest.fixture
def old(tmp_path: Path) -> dict[str, Reading]:
    return {reading.name: reading for reading in release(tmp_path / "old", OLD).options()}


@pytest.fixture
def new(tmp_path: Path) -> dict[str, Reading]:
    return {reading.name: reading for reading in release(tmp_path / "new", NEW).options()}


def test_explicit_arguments(old: dict[str, Reading]) -> None:
    assert {name: reading.shape for name, reading in old.items()} == {
        "port": {"type": "int"},
        "max_model_len": {"type": "int"},
        "swap_space": {"type": "float", "bounds": {"le": 64.0}},
        "quantization": {"type": "choice", "choices": ["awq", "gptq"], "shorts": ["-q"]},
        "mode": {"type": "choice", "choices": ["fast", "slow"]},
        "task": {"type": "choice", "choices": ["auto", "embed"]},
        "limits": {"type": "text", "pairs": True},
        "rope": {"type": "json"},
        "eager": {"type": "bool"},
        "chunked": {"type": "bool", "optional_value": True},
        "names": {"type": "list", "item": "text"},
        "quiet": {"type": "bool"},
    }
    assert old["port"].group == "frontend" and old["quiet"].group == "engine"
    assert (old["swap_space"].default, old["mode"].default) == (4, "fast")
    assert (old["eager"].default, old["max_model_len"].default) == (False, None)


def test_arguments_backed_by_fields(new: dict[str, Reading]) -> None:
    bounds = {"gt": 0.0, "le": 1.0}
    assert {name: reading.shape for name, reading in new.items()} == {
        "model_tag": {"type": "text", "optional_value": True, "positional": True},
        "api_key": {"type": "list", "item": "text"},
        "port": {"type": "int"},
        "max_model_len": {"type": "tokens"},
        "share": {"type": "float", "bounds": bounds, "aliases": ["part"]},
        "cache_dtype": {"type": "text", "choices": ["auto", "fp8"], "open": True},
        "prefix": {"type": "bool", "negatable": True},
        "sizes": {"type": "list", "item": "int"},
        "spec_config": {"type": "json"},
        "enable_lora": {"type": "bool", "negatable": True, "inverse": "disable_lora"},
        "backend": {"type": "choice", "folded": True, "choices": ["one"]},
    }
    defaults = {name: reading.default for name, reading in new.items()}
    assert defaults["share"] == 0.92
    assert defaults["prefix"] is None  # decided when the engine starts
    assert defaults["sizes"] == [512]
    assert defaults["spec_config"] == {}
    assert defaults["enable_lora"] is False  # the parser gives none, the field does


def test_keys_inside_json_options(tmp_path: Path) -> None:
    read = release(tmp_path, NEW)
    keys = keys_of(read, read.options())
    assert keys["spec_config"].names == ("model", "count")
    assert keys["spec_config"].stray == "ignored"  # pydantic's way unless it is told otherwise


def test_variables(tmp_path: Path) -> None:
    found = {one.name: one for one in variables(release(tmp_path, OLD).tree)}
    assert {name: one.default for name, one in found.items()} == {
        "VLLM_SIZE": 4096,
        "VLLM_ON": True,
        "VLLM_ROOT": {"computed": "os.getcwd()"},
    }
    assert [one.shape["type"] for one in found.values()] == ["int", "bool", "text"]


def test_history(old: dict[str, Reading], new: dict[str, Reading]) -> None:
    readings = {"1.0": list(old.values()), "1.1": list(old.values()), "2.0": list(new.values())}
    records = {record["name"]: record for record in history.options(readings)}
    assert records["swap_space"]["last"] == "1.1" and records["swap_space"]["gone"] == "2.0"
    assert records["share"]["before_first"] == "1.1" and records["share"]["first"] == "2.0"
    length = records["max_model_len"]
    assert not {"first", "before_first", "last", "gone", "absent"} & set(length)
    assert length["shapes"] == [("1.0", {"type": "int"}), ("2.0", {"type": "tokens"})]
    assert length["defaults"] == [("1.0", None)]
    assert records["quantization"]["choices"] == [["1.0", ["awq", "gptq"]]]


def test_a_name_that_comes_back(old: dict[str, Reading]) -> None:
    without = [reading for reading in old.values() if reading.name != "mode"]
    readings = {"1.0": list(old.values()), "1.1": without, "2.0": list(old.values())}
    records = {record["name"]: record for record in history.options(readings)}
    assert records["mode"]["absent"] == ["1.1"]
