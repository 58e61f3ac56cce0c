"""Text of strangers made safe for a terminal, and how wide it is there."""

from __future__ import annotations

_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(character: str) -> str:
    """One character that must not reach a terminal, as a visible escape."""
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """The text on one line, control, direction and other invisible characters as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else escaped(one) for one in text)


def width(character: str) -> int:
    """Columns that a printable character takes: 0 for marks on others, 2 for wide ones."""
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
