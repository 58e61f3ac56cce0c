"""Bytes of a file to its text, or one clear reason why not."""

from __future__ import annotations

import codecs
import stat
from pathlib import Path

from capcheck.lines import line_starts, position

_BOMS = (  # the longer first: UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Undecodable(Exception):
    """The file gives no text. `line` and `column` (from 1) say where it stops being text."""

    def __init__(self, rule: str, message: str, help: str = "", at: tuple[int, int] = (1, 1)):
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.help = help
        self.line, self.column = at


def read_text(path: Path, limit: int) -> str:
    """The text of a regular file of at most `limit` bytes. Raises Undecodable."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise Undecodable("spec/unreadable", "this is a directory", "name a file")
        if not stat.S_ISREG(status.st_mode):
            raise Undecodable("spec/unreadable", "this is not a regular file")
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except (OSError, ValueError) as wrong:
        reason = (wrong.strerror if isinstance(wrong, OSError) else None) or str(wrong)
        raise Undecodable("spec/unreadable", f"the file cannot be read: {reason}") from wrong
    if len(raw) > limit:
        raise Undecodable(
            "spec/too-large",
            f"the file has more than {limit:,} bytes and is not read",
            "leave it out, or split it",
        )
    return decode(raw)


def decode(raw: bytes) -> str:
    """UTF-8, or UTF-16 and UTF-32 with a byte order mark, without the mark. Raises Undecodable."""
    encoding = next((name for mark, name in _BOMS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as wrong:
        if b"\0" in raw[:8192] and encoding == "utf-8":
            raise Undecodable("spec/encoding", "this is a binary file") from wrong
        before = raw[: wrong.start].decode(encoding, "ignore").removeprefix("\ufeff")
        raise Undecodable(
            "spec/encoding",
            f"byte {raw[wrong.start]:#04x} is not {encoding.upper()} text",
            "save the file as UTF-8",
            position(line_starts(before), len(before)),
        ) from wrong
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        before = text[: text.index("\0")]
        raise Undecodable(
            "spec/encoding",
            "this is a binary file: it holds a NUL",
            at=position(line_starts(before), len(before)),
        )
    return text
