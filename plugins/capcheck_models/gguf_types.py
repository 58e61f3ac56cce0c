"""Which type each module of a model has in a GGUF file: told by the names of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from capcheck import Architecture, Scheme
from capcheck.gguf_header import GgufHeader

# The file's name of a module, by the last word of the module's own and by its role.
_NAMES = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "qkv_proj": "attn_qkv", "q_a_proj": "attn_q_a", "q_b_proj": "attn_q_b",
    "kv_a_proj_with_mqa": "attn_kv_a_mqa", "kv_b_proj": "attn_kv_b", "gate_proj": "ffn_gate",
    "up_proj": "ffn_up", "down_proj": "ffn_down", "gate_up_proj": "ffn_up", "c_fc": "ffn_up",
    "w1": "ffn_gate", "w3": "ffn_up", "w2": "ffn_down",
}  # fmt: skip
_FEED_FORWARD = {"c_proj": "ffn_down"}
_OUTER = {"embedding": "token_embd.weight", "head": "output.weight"}
_ENDINGS = {"expert": "_exps", "shared_expert": "_shexp"}
_SPLIT = {"attn_kv_b": "attn_k_b"}  # newer files keep its two halves apart, in one type
_KEPT = ("router", "norm", "vision", "audio", "projector")

Modules = dict[str, list[tuple[str, int | None]]]  # ggml type -> (module, layer)


def parts_of(
    header: GgufHeader, model: Architecture, bits: Mapping[str, float]
) -> tuple[Scheme, ...]:
    """One scheme for each type that modules have, the commonest last and for the rest.

    Empty when a module's tensor is not found under its usual name.
    """
    types = {one.name: one.type for one in header.tensors}
    found: Modules = {}
    for module, layer, names in _modules(model):
        kind = next((types[name] for name in names if name in types), None)
        if kind is None:
            return ()
        found.setdefault(kind, []).append((module, layer))
    if not set(found) <= set(bits):
        return ()
    ordered = sorted(found, key=lambda kind: len(found[kind]))
    return tuple(
        Scheme(
            "gguf", kind.lower(), bits[kind],
            targets=() if kind == ordered[-1] else _folded(found[kind]),
        )
        for kind in ordered
    )  # fmt: skip


def _modules(model: Architecture) -> Iterator[tuple[str, int | None, tuple[str, ...]]]:
    """Every matrix that a file may pack, its layer, and what its tensor may be called."""
    for tensor in model.outer:
        if tensor.role in _OUTER and tensor.into:
            yield tensor.parts[0].name, None, (_OUTER[tensor.role],)
    for number, layer in enumerate(model.layers):
        for tensor in layer.tensors:
            if not tensor.into or tensor.role in _KEPT:
                continue
            for part in dict.fromkeys(part.name for part in tensor.parts):
                last = part.rpartition(".")[2]
                feeds = _FEED_FORWARD if tensor.role != "attention" else {}
                name = feeds.get(last) or _NAMES.get(last, last)
                ending = _ENDINGS.get(tensor.role, "")
                usual = f"blk.{number}.{name}{ending}.weight"
                split = f"blk.{number}.{_SPLIT.get(name, name)}{ending}.weight"
                yield part, number, (usual, split)


def _folded(modules: Iterable[tuple[str, int | None]]) -> tuple[str, ...]:
    """Patterns of modules: those of several layers in one, `layers.{0-2,7}.mlp.down_proj`."""
    outer: list[str] = []
    layers: dict[str, list[int]] = {}
    for module, layer in modules:
        if layer is None:
            outer.append(module)
        else:
            layers.setdefault(module, []).append(layer)
    return (*outer, *(f"layers.{_span(found)}.{module}" for module, found in layers.items()))


def _span(numbers: list[int]) -> str:
    """0, 1, 2, 7 as `{0-2,7}`; a lone number as it is."""
    runs: list[list[int]] = []
    for one in sorted(set(numbers)):
        if runs and one == runs[-1][1] + 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return words[0] if len(words) == 1 and "-" not in words[0] else f"{{{','.join(words)}}}"
