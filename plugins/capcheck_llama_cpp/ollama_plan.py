"""What Ollama will do: num_ctx for each of its slots, and the layers that fit on the devices."""

from __future__ import annotations

import re
from typing import Any

from capcheck import (
    GIB,
    MemoryPolicy,
    Plan,
    Release,
    Site,
    Value,
    alternatives,
    default,
    derived,
    unknown,
)
from capcheck.option_reader import OptionReader
from capcheck.options import parse_release
from capcheck_llama_cpp.plan import ALL_LAYERS, TYPE_WORDS, Settings
from capcheck_llama_cpp.reading import OFF, ON
from capcheck_llama_cpp.table import OLLAMA

NAME = "ollama"
SLOTS, TOKENS = "OLLAMA_NUM_PARALLEL", "OLLAMA_CONTEXT_LENGTH"
MOST_DIGITS = 100
# Ollama's releases, and about which build of llama.cpp accounts for memory as they do.
BUILDS = (
    ((0, 1, 0), 1600), ((0, 2, 0), 3400), ((0, 4, 0), 4070), ((0, 6, 0), 4790), ((0, 7, 0), 5361),
    ((0, 11, 5), 6140), ((0, 12, 4), 6646), ((0, 13, 0), 6840), ((0, 14, 0), 7437),
    ((0, 30, 0), 9409), ((0, 32, 15), 10488),
)  # fmt: skip
LONGER_CONTEXT, BY_MEMORY = (0, 6, 7), (0, 15, 5)
FEWER_SLOTS, ONE_SLOT = (0, 6, 7), (0, 10, 0)
FLASH_BY_ITSELF = (0, 12, 4)
STARTS_SERVER = (0, 30, 0)
TIERS = ((47 * GIB, 262_144), (23 * GIB, 32_768), (0.0, 4096))
STEPS = ((32_768, 2048), (4096, 1024), (0, 512))
ERAS = (
    ((0, 6, 7), (0, 10, 0), (0, 9, 0)),
    ((0, 10, 0), (0, 15, 5), (0, 12, 6)),
    ((0, 15, 5), (0, 30, 0), (0, 20, 0)),
    ((0, 30, 0), (0, 34, 0), (0, 32, 15)),
)


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name, else one for each accounting era."""
    if text is not None:
        parsed = parse_release(re.sub(r"-(?:rocm|cpu|vulkan)$", "", text.strip()))
        if parsed is not None and (0, 1) <= parsed.version < (1, 0):
            return (Release(text, parsed.version),)
        why = f"{text} is no release of Ollama"
    return tuple(
        Release(
            f"{_dotted(first)} until {_dotted(end)}", middle, known=False, why=why,
            among=(ERAS[0][0], ERAS[-1][1]),
        )
        for first, end, middle in ERAS
    )  # fmt: skip


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def natural(text: str) -> int | None:
    """A variable's whole number, as Ollama reads it; None for 1e9, 32k and -3."""
    bare = text.strip().strip("\"'")
    digits = bare.isascii() and bare.isdigit() and len(bare) <= MOST_DIGITS
    return int(bare) if digits and int(bare) < 2**64 else None


def build_of(version: tuple[int, ...]) -> int:
    """About the build of llama.cpp that a release carries."""
    return next((build for first, build in reversed(BUILDS) if first <= version), BUILDS[0][1])


class OllamaPlanner:
    """One site's plan."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.version = site.release.version
        self.read = OptionReader(site.deployment, OLLAMA, self.version)
        self.why = f"Ollama {site.release.text} default"

    def default(self, value: Any) -> Value[Any]:
        """A default of this release."""
        return default(value, self.read.place, self.why)

    def plan(self) -> Plan:
        """The whole plan."""
        found = self.settings()
        one = self.default(1)
        tokens = self.tokens()
        return Plan(
            tensor=one, pipeline=found.devices, data=one, expert=one, context=one,
            max_request_tokens=tokens, max_sequences=self.sequences(found.parallel),
            max_step_tokens=self.step(tokens),
            weight_dtype=self.default("fp16"), kv_dtype=found.key_type,
            memory=self.default(MemoryPolicy("all", 1.0)), graphs=self.default(True),
            chunked_prefill=self.default(True), prefix_caching=self.default(True),
            draft=None, draft_tokens=None,
            extra={name: value for name, value in found._asdict().items() if value is not None},
        )  # fmt: skip

    def settings(self) -> Settings:
        """Ollama's options as llama.cpp's."""
        tokens, slots = self.tokens(), self.slots()
        whole = tokens
        if tokens.known and slots.known:
            whole = tokens.map(lambda one: one * slots.get())
        flash = self.flash()
        kind = self.cache_type(flash)
        layers = self.read.written_count("num_gpu")
        auto = layers is None or layers.either(0) < 0
        return Settings(
            ctx_size=whole,
            parallel=slots,
            unified=self.default(False),
            gpu_layers=self.default(ALL_LAYERS) if layers is None or auto else layers,
            devices=self.devices(),
            split_mode=self.default("layer"),
            tensor_split=self.default(()),
            flash=flash,
            key_type=kind,
            value_type=kind,
            whole_windows=self.default(False),
            kv_offload=self.default(True),
            fit=self.default(auto),
            host_experts=self.default(0),
            overrides=None,
            projector=None,
            latent=None,
        )

    def devices(self) -> Value[int]:
        """Devices: one, when a main one is named."""
        if self.read.has("main_gpu"):
            return derived(1, self.read.place, "main_gpu")
        count = self.site.deployment.count("hardware", "count")
        return count if count is not None else derived(1, self.read.place, "one device")

    def _env(self, name: str) -> Value[str] | None:
        return self.site.deployment.text("engine", "env", name)

    def tokens(self) -> Value[int]:
        """Tokens of one slot, no more than the model's length."""
        found = self.read.written_count("num_ctx")
        if found is not None and found.known and found.either(0) < 0:
            return Value((), found.origin._replace(why="num_ctx is below 0"))
        if found is None:
            found = self.natural(TOKENS)
        if found is None or found.either(1) == 0:
            found = self._default_tokens()
        model = self.site.model.either(None)
        longest = model.architecture.max_positions if model is not None else None
        if longest is not None and found.known and found.get() > longest:
            return found.map(lambda _: longest, "the model's full length")
        return found

    def _default_tokens(self) -> Value[int]:
        if self.version < LONGER_CONTEXT:
            return self.default(2048)
        if self.version < BY_MEMORY:
            return self.default(4096)
        part, count = self.site.accelerator.either(None), self.devices().either(None)
        if part is None or count is None:
            why = "num_ctx's default depends on the devices' memory, which is not known"
            return unknown(self.read.place, why)
        total = count * (part.visible_bytes or part.nominal_bytes * part.visible_factor)
        return self.default(next(tokens for least, tokens in TIERS if total >= least))

    def natural(self, name: str) -> Value[int] | None:
        """A variable that is a whole number; None where it is absent, or not one to Ollama, which
        then takes its default."""
        found = self._env(name)
        text = found.either(None) if found is not None else None
        if found is None or text is None:
            return None if found is None else Value((), found.origin)
        number = natural(text)
        return None if number is None else found.map(lambda _: number)

    def slots(self) -> Value[int]:
        """Slots that memory is judged with. Where nothing is given, older releases try several,
        and take one, with layers on the host if need be, where those do not fit."""
        found = self.natural(SLOTS)
        if found is not None and found.either(1) != 0:
            return found
        if self.version >= ONE_SLOT:
            return self.default(1)
        why = f"{self.why}: {self.most_slots()} where they fit, else 1, which is what is judged"
        return derived(1, self.read.place, why)

    def most_slots(self) -> int:
        """What older releases try first."""
        return 2 if self.version >= FEWER_SLOTS else 4

    def sequences(self, slots: Value[int]) -> Value[int]:
        """Requests at once: one or several where that depends on what fits."""
        if slots.origin.kind != "derived":
            return slots
        return alternatives((self.most_slots(), 1), slots.origin)

    def step(self, tokens: Value[int]) -> Value[int]:
        """Tokens of one step."""
        found = self.read.written_count("num_batch")
        if found is None:
            long = tokens.either(0) if self.version >= STARTS_SERVER else 0
            found = self.default(next(step for above, step in STEPS if long > above or not above))
        if found.known and found.either(1) < 1:
            return Value((), found.origin._replace(why="num_batch is below 1"))
        return found.map(lambda step: min(step, tokens.either(step)))

    def flash(self) -> Value[bool]:
        """Flash attention: asked for in older releases, where it is supported in newer ones."""
        found = self._env("OLLAMA_FLASH_ATTENTION")
        word = found.either("").strip().lower() if found is not None else ""
        if found is None or word not in (*ON, *OFF, "t", "f"):
            if found is not None and not found.known:
                return Value((), found.origin)
            return self.default(self.version >= FLASH_BY_ITSELF)
        return found.map(lambda _: word in (*ON, "t"))

    def cache_type(self, flash: Value[bool]) -> Value[str]:
        """The type of cached values; other than 16 bits only with flash attention."""
        found = self._env("OLLAMA_KV_CACHE_TYPE")
        if found is None or not found.either("f16").strip():
            return self.default("fp16")
        kind = found.map(lambda word: TYPE_WORDS.get(word.lower(), word.lower()))
        if kind.known and flash.either(True) is False:
            return kind.map(lambda _: "fp16", "not used without flash attention")
        return kind
