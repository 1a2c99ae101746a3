"""Text made safe: to store, to show, to put on one line."""

from __future__ import annotations

from omcli.base.patterns import lazily

_REPLACEMENT = "\ufffd"
_UNSPACED = "\u2e80"
"""The first character of scripts that part no words by spaces, and of their marks."""

_UNSTORABLE = lazily("[\0\ud800-\udfff]")
# Terminal control: CSI (colours, cursor), OSC and its like up to their end on the same line, two-character sequences.
# Where another one begins, that one has no end: so that none is looked for again and again.
_ANSI = lazily(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Marks that reorder what is shown after them, so that it reads as something else.
_BIDI = lazily("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = lazily("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = lazily("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text as it can be stored: lone surrogates and NUL become U+FFFD."""
    if "\0" not in text and _is_unicode(text):
        return text
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def one_line(text: str) -> str:
    """The text on one line: runs of white space and control characters are one space, terminal control is gone."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join(_CONTROL.sub(" ", _BIDI.sub("", _ANSI.sub("", text))).split())


def printable(text: str) -> str:
    """The text as it can be shown on a terminal: line breaks and tabs stay, terminal control is gone.

    Every line break is written `\\n`; other control characters and lone surrogates become U+FFFD.
    """
    if text.replace("\n", "").replace("\t", "").isprintable() or not _UNPRINTABLE.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(_REPLACEMENT, _BIDI.sub("", _ANSI.sub("", text)))


def is_spaced(text: str) -> bool:
    """Whether no character of a script that parts no words by spaces is in a text.

    Most patterns for such scripts take longer to compile than most texts to be read: their ranges are long.
    """
    return text.isascii() or max(text) < _UNSPACED


def below(directory: str | None, path: str) -> str:
    """A path as rows name it: below a directory without that."""
    base = (directory or "").rstrip("/")
    return path.removeprefix(f"{base}/") if base else path


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
