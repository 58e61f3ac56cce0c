"""Speculative decoding in SGLang's options: the algorithm, its draft and how much it proposes."""

from __future__ import annotations

from capcheck import Model, Value
from capcheck.option_reader import OptionReader
from capcheck_sglang.defaults import Version, draft_shape

OWN = "mtp"  # the checkpoint's own prediction layers
LOOKUP = "ngram"
UNNAMED = "a draft that is not named"
BUILT_IN = ("nextn", "mtp")  # in the names of uploads that hold only those layers


class Drafting:
    """What speculation adds; `algorithm` is "" without it."""

    def __init__(self, read: OptionReader, version: Version, model: Model | None, why: str) -> None:
        self._read = read
        self._version = version
        self._model = model
        self._why = why
        word = (read.text("speculative_algorithm", "", why).either("") or "").upper()
        self.algorithm = "EAGLE" if word == "NEXTN" else "" if word in ("NONE", "NULL") else word

    def name(self) -> Value[str] | None:
        """The draft's name, `mtp` or `ngram`; None without speculation."""
        read = self._read
        asked = read.written_text("speculative_algorithm")
        if asked is None or (asked.known and not self.algorithm):
            return None
        if not asked.known:
            return asked
        if self.algorithm == "NGRAM":
            return asked.map(lambda _: LOOKUP)
        path = read.written_text("speculative_draft_model_path")
        own = self._model is not None and bool(self._model.architecture.draft)
        if path is None:
            return asked.map(lambda _: OWN if own else UNNAMED)
        if not path.known:
            return path
        same = self._model is not None and path.get() == self._model.name
        built_in = any(word in path.get().lower() for word in BUILT_IN)
        return path.map(lambda _: OWN) if own and (same or built_in) else path

    def tokens(self) -> Value[int] | None:
        """Tokens that one step verifies for each request."""
        if not self.algorithm:
            return None
        family = self._model.architecture.family if self._model is not None else ""
        usual = draft_shape(family, self.algorithm)[2]
        return self._read.count("speculative_num_draft_tokens", usual, self._why)

    def limits_requests(self) -> bool:
        """Whether requests are 48 at most by default."""
        return self.algorithm not in ("", "NGRAM")
