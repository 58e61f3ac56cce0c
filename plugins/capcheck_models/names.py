"""From a model's name as users write it to the catalogue's architecture.

Tried in this order: the exact id, the quantized uploads, the aliases, the name without its
quantization suffix, its owner's other name, the name patterns of families. A result never has
another parameter count than the name says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from capcheck.quantization import Scheme

from .checkpoints import (
    Alias,
    Checkpoint,
    alias,
    alias_bases,
    aliases_named,
    checkpoint,
    checkpoints_named,
    known_ids,
)
from .loose_names import LooseNames
from .packed_names import (
    named_inside,
    packing_words,
    renamed,
    rules,
    suffix_doubts,
    without_suffix,
)
from .spelling import LONGEST_NAME, spelled

_SIZE = re.compile(r"(?<![a-z0-9.])a?(\d{1,4}(?:[.p]\d{1,3})?|\d{1,2}x\d{1,3})(b|m|t)(?![a-z0-9])")
_MILLIONS = {"m": 1.0, "b": 1e3, "t": 1e6}
CLOSE = 0.72  # of two names, as difflib counts: nearer than two unrelated short ones are
_SAME_NAME = "the config.json of that upload was not seen"
_OF_FAMILY = 3  # the order of patterns.jsonl that families' names have


class ModelMatch(NamedTuple):
    """What a name is, as far as the catalogue can tell."""

    id: str | None  # the catalogue's id of the architecture
    how: str  # in words: "exact", "alias of X (equal shapes and total)" ...
    checkpoint: Checkpoint | None = None  # the quantized upload of that name
    may_differ: tuple[str, ...] = ()  # what the upload's own config.json may say otherwise
    near: tuple[str, ...] = ()  # when nothing matched: names that were perhaps meant
    words: str = ""  # the precision that the name itself speaks of: "awq-int4", "fp8"
    guess: Scheme | None = None  # its usual scheme, seen="name"
    differs: Mapping[str, Any] = {}  # sizes that are known to differ from the architecture's
    path: bool = False  # inferred from a path


class _Found(NamedTuple):
    id: str | None
    how: str
    checkpoint: Checkpoint | None = None
    may_differ: tuple[str, ...] = ()
    differs: Mapping[str, Any] = {}


class _Ids(NamedTuple):
    """The catalogue's ids by their lower case, and by their last part."""

    exact: Mapping[str, str]
    last: Mapping[str, tuple[str, ...]]
    ids: frozenset[str]


@lru_cache(maxsize=4)
def _indexed(ids: frozenset[str]) -> _Ids:
    last: dict[str, tuple[str, ...]] = {}
    for id in sorted(ids):
        part = id.rpartition("/")[2].lower()
        last[part] = (*last.get(part, ()), id)
    return _Ids({id.lower(): id for id in ids}, last, ids)


@lru_cache(maxsize=4)
def _owners(ids: frozenset[str]) -> Mapping[str, str]:
    """The owners of all uploads that are known, by their lower case."""
    owned = sorted(id for id in {*known_ids(), *ids} if "/" in id)
    return {id.partition("/")[0].lower(): id.partition("/")[0] for id in owned}


def resolve(name: str, ids: Collection[str]) -> ModelMatch:
    """The architecture of a model's name, and what the name says of its weights.

    `ids` are the catalogue's. An unknown name has no id, and names that are near.
    """
    known = _indexed(frozenset(ids))
    spelling = spelled(name)
    if not spelling.candidates:
        return ModelMatch(None, spelling.why, path=spelling.path)
    written = spelling.candidates[-1 if spelling.path else 0]
    words, guess = packing_words(f"{written}:{spelling.tag}")
    for candidate in spelling.candidates:
        found = _resolve(candidate, known)
        if found is not None:
            how = f"{found.how}, inferred from a path" if spelling.path else found.how
            differing = found.may_differ
            if spelling.path and _SAME_NAME not in differing:
                differing = (*differing, "a folder may hold anything")
            return ModelMatch(
                found.id, how, found.checkpoint, differing, (), words, guess, found.differs,
                spelling.path,
            )  # fmt: skip
    nearest = near(spelling.candidates[-1], {*ids, *known_ids()})
    return ModelMatch(
        None, "not in the catalogue", near=nearest, words=words, guess=guess, path=spelling.path
    )


def _resolve(name: str, known: _Ids) -> _Found | None:
    found = _as_written(name, known)
    if found is not None:
        return found
    for inner in named_inside(name, _owners(known.ids)):
        found = _as_written(inner, known)
        if found is not None and found.id is not None:
            differing = tuple(dict.fromkeys((*found.may_differ, _SAME_NAME)))
            how = f"upload of {found.id}" if found.how == "exact" else found.how
            return _Found(found.id, how, None, differing, found.differs)
    return _loosely(name, known)


def _as_written(name: str, known: _Ids) -> _Found | None:
    found = _listed(name, known) if "/" in name or name.lower() in known.exact else None
    found = found or (None if "/" in name else _only(name, known))
    if found is not None:
        return found
    for stripped in without_suffix(name):
        base = _listed(stripped, known)
        if base is not None and base.id is not None and same_size(name, base.id):
            how = base.how if base.how != "exact" else f"upload of {base.id}"
            differing = dict.fromkeys((*base.may_differ, *suffix_doubts(name, stripped)))
            return _Found(base.id, f"name pattern: {how}", None, tuple(differing), base.differs)
        sibling = _sibling(stripped, known)
        if sibling is not None and same_size(name, sibling):
            how = f"name pattern: another packing of {sibling}"
            return _Found(sibling, how, None, suffix_doubts(name, stripped))
    return _by_pattern(name, known) or _by_name_alone(name, known)


def _loosely(name: str, known: _Ids) -> _Found | None:
    """The only architecture that has the words of a name, however they are joined."""
    for spelling in (name, *without_suffix(name)):
        makers = _owners(known.ids) if "/" not in name or spelling != name else {}
        match = _loose_index(known.ids).find(spelling, makers)
        base = known.exact.get(match.base.lower()) if match else None
        if match is None or base is None:
            continue
        differing = (_SAME_NAME, *suffix_doubts(name, spelling))
        if not match.same_words:
            differing += ("max_position_embeddings (the name leaves words out)",)
        itself = match.entry == base
        entry = base if itself else f"{match.entry}, alias of {base}"
        upload = checkpoint(base) if itself and match.same_words and spelling == name else None
        return _Found(base, f"loosely spelled: {entry}", upload, differing)
    return None


@lru_cache(maxsize=4)
def _loose_index(ids: frozenset[str]) -> LooseNames:
    return LooseNames([*sorted(alias_bases()), *((id, id) for id in sorted(ids))])


def _listed(name: str, known: _Ids) -> _Found | None:
    """An exact id, quantized upload or alias, also under the owner's other name."""
    for spelling in (name, *renamed(name)):
        low = spelling.lower()
        upload = checkpoint(low)
        if low in known.exact:
            return _Found(known.exact[low], "exact", upload)
        if upload is not None:
            return _of_upload(upload, known)
        other = alias(low)
        if other is not None and other.base.lower() in known.exact:
            return _of_alias(other)
    return None


def _only(name: str, known: _Ids) -> _Found | None:
    """The only entry or quantized upload of a name that is written without its owner."""
    entries = known.last.get(name.lower(), ())
    uploads = checkpoints_named(name) if not entries else ()
    if len(uploads) == 1 and (uploads[0].base or "").lower() in known.exact:
        found = _of_upload(uploads[0], known)
        return found._replace(may_differ=(*found.may_differ, _SAME_NAME))
    if len(entries) != 1:
        return None
    return _Found(entries[0], f"the only {name} in the catalogue", checkpoint(entries[0]))


def _of_upload(upload: Checkpoint, known: _Ids) -> _Found:
    base = known.exact.get((upload.base or "").lower())
    how = f"quantized upload of {upload.base}" if base else "quantized upload"
    if base is None:
        how += ", whose base is not in the catalogue"
    return _Found(base, how, upload, upload.notes, upload.differs)


def _of_alias(other: Alias) -> _Found:
    how = f"alias of {other.base} ({other.how})"
    return _Found(other.base, how, None, other.notes, other.differs)


def _by_pattern(name: str, known: _Ids) -> _Found | None:
    """The patterns of families, searched in the last part, with and without its suffix."""
    for spelling in (name, *without_suffix(name)):
        target = f"/{spelling.rpartition('/')[2]}"
        for rule in rules(_OF_FAMILY):
            if rule["hint"] not in target.lower():
                continue
            found = re.search(rule["match"], target)
            if found is None:
                continue
            base = known.exact.get(found.expand(rule["base"]).lower())
            if base is not None and same_size(name, base):
                differing = (*rule.get("may_differ", ()), *suffix_doubts(name, spelling))
                return _Found(base, f"name pattern: {base}", None, differing)
    return None


def _by_name_alone(name: str, known: _Ids) -> _Found | None:
    """The same last part under another owner, or under any where none is written."""
    for spelling in (name, *without_suffix(name)):
        last = spelling.rpartition("/")[2].lower()
        entries = known.last.get(last, ())
        uploads = checkpoints_named(last) if len(entries) != 1 else ()
        others = aliases_named(last) if not entries and not uploads else ()
        bases: set[str | None] = {*entries, *(up.base for up in uploads if not entries)}
        bases.update(one.base for one in others)
        if len(bases) != 1 or None in bases:
            continue
        base = known.exact.get(str(bases.pop()).lower())
        if base is None or not same_size(name, base):
            continue
        upload = uploads[0] if len(uploads) == 1 and spelling == name else None
        how = f"same name as {(entries or (base,))[0]}"
        differs = upload.differs if upload else {}
        return _Found(base, how, upload, (_SAME_NAME, *suffix_doubts(name, spelling)), differs)
    return None


def _sibling(stripped: str, known: _Ids) -> str | None:
    """An entry of the catalogue that is the same upload in another packing: -FP8 for -BF16."""
    low = stripped.lower()
    for id_low, id in sorted(known.exact.items()):
        if id_low.startswith(low + "-") and low in (one.lower() for one in without_suffix(id)):
            return id
    return None


def sizes(name: str) -> frozenset[float]:
    """The parameter counts that a name speaks of, in millions: 8x7b, 30b, a3b, 1.7b, 135m."""
    found = set()
    for number, unit in _SIZE.findall(name.rpartition("/")[2].lower().replace("_", "-")):
        if "x" in number:
            copies, each = number.split("x")
            found.add(float(copies) * float(each) * _MILLIONS[unit])
        else:
            found.add(float(number.replace("p", ".")) * _MILLIONS[unit])
    return frozenset(found)


def same_size(name: str, id: str) -> bool:
    """Whether no parameter count in the name contradicts the id's."""
    said, meant = sizes(name), sizes(id)
    return not said or not meant or said <= meant or meant <= said


def near(name: str, ids: Collection[str]) -> tuple[str, ...]:
    """Catalogue ids that a name may have been meant for, likeliest first."""
    from difflib import get_close_matches

    owner, _, _ = name.partition("/")
    last = name.rpartition("/")[2].lower()[:LONGEST_NAME]
    by_last: dict[str, list[str]] = {}
    for id in sorted(ids):
        by_last.setdefault(id.rpartition("/")[2].lower(), []).append(id)
    close = get_close_matches(last, list(by_last), n=5, cutoff=CLOSE)
    found = [id for part in close for id in by_last[part]]
    found.sort(key=lambda id: not id.lower().startswith(f"{owner.lower()}/"))
    return tuple(found[:3])
