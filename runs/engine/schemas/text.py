"""Text on its way to a page: hidden characters made visible, unstorable ones found."""

import unicodedata
from typing import Final

#: Controls, format characters (bidirectional marks, zero-width spaces), lone surrogates, and the
#: two separators that break a line without looking like it.
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    """Return ``text`` with every hidden character written as its escape, such as ``\\u202e``.

    Line feeds and tabs stay. The result can always be encoded as UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def storable(text: str) -> str:
    """Return ``text`` without what no page or database can carry: U+FFFD stands in its place."""
    return "".join(
        "\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character
        for character in text
    )


def unstorable(text: str) -> str | None:
    """Return a message if ``text`` holds NUL or a lone surrogate, ``None`` if it holds neither."""
    if "\0" in text:
        return "This holds a NUL character, which can't be kept. Remove it."
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "This holds half of a character (a lone surrogate), which can't be kept. Remove it."
    return None


def _escape(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
