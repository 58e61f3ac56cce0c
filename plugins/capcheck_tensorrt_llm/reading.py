"""Options of trtllm-serve, of its YAML and of trtllm-bench under one name each."""

from __future__ import annotations

from capcheck import ARGS, Deployment, Value
from capcheck.deployment import FieldPath
from capcheck.option_reader import OptionReader
from capcheck.source import Node, to_plain
from capcheck_tensorrt_llm.table import TABLE

FRACTION = "kv_cache_free_gpu_memory_fraction"
BENCH_FRACTION = "kv_cache_free_gpu_mem_fraction"
KV = "kv_cache_config"


def _sizes(node: Node) -> tuple[int, ...]:
    plain = to_plain(node)
    found = plain if isinstance(plain, list) else [plain]
    if not found or not all(str(one).isdigit() and int(str(one)) > 0 for one in found):
        raise ValueError("a list of whole numbers above 0")
    return tuple(int(str(one)) for one in found)


class Options:
    """One deployment's options; `kv(...)` are the keys of kv_cache_config."""

    def __init__(self, deployment: Deployment, version: tuple[int, ...] | None) -> None:
        self.deployment = deployment
        self.reader = OptionReader(deployment, TABLE, version)
        self.place = self.reader.place

    def path(self, name: str, *more: str) -> FieldPath:
        """Where the option is or would be written."""
        return self.reader.path(name, *more)

    def has(self, name: str, *more: str) -> bool:
        """Whether anything is said of the option."""
        return self.deployment.has(*self.path(name, *more))

    def count(self, name: str, *more: str) -> Value[int] | None:
        """The option as a whole number; None when it is absent."""
        return self.deployment.count(*self.path(name, *more))

    def number(self, name: str, *more: str) -> Value[float] | None:
        """The option as a number; None when it is absent."""
        return self.deployment.number(*self.path(name, *more))

    def text(self, name: str, *more: str) -> Value[str] | None:
        """The option as text; None when it is absent."""
        return self.deployment.text(*self.path(name, *more))

    def flag(self, name: str, *more: str) -> Value[bool] | None:
        """The option as a switch; None when it is absent."""
        return self.deployment.flag(*self.path(name, *more))

    def bench(self) -> bool:
        """Whether the options are those of trtllm-bench, which has a name of its own for one."""
        return any(
            path[-1] == BENCH_FRACTION or value.origin.word.lstrip("-") == BENCH_FRACTION
            for path, value in self.deployment.under(*ARGS).items()
            if path
        )

    def replaced(self) -> bool:
        """Whether a kv_cache_config of a file stands beside the command line's share.

        Releases up to 1.1 then forget the share. trtllm-bench merges the two, and a description
        that holds both in one place means both.
        """
        share = self.deployment.fields.get(self.path(FRACTION))
        if share is None or self.bench():
            return False
        inside = self.deployment.under(*self.path(KV)).values()
        from_file = any(value.origin.via for value in inside) and not share.origin.via
        return bool(inside) and (from_file or share.origin.word.startswith("--"))

    def windows(self) -> Value[tuple[int, ...]] | None:
        """kv_cache_config.max_attention_window; None when every layer keeps all tokens."""
        return self.deployment.read(self.path(KV, "max_attention_window"), _sizes)

    def graph_sizes(self) -> tuple[int, ...]:
        """The batch sizes that are listed for CUDA graphs; () when none are."""
        for name, *more in (("cuda_graph_config", "batch_sizes"), ("cuda_graph_batch_sizes",)):
            found = self.deployment.read(self.path(name, *more), _sizes)
            if found is not None:
                return found.get(name)
        return ()
