"""Making text safe to store, to print, or to put on one line or into JSON."""

from __future__ import annotations

from omcli.base import lazily

_REPLACEMENT = "\ufffd"
_UNSPACED = "\u2e80"
"""First character of the scripts written without spaces between words."""

_UNSTORABLE = lazily("[\0\ud800-\udfff]")
# Escape sequences: CSI (colours, cursor), OSC and similar ones up to their end on the same line, or two characters.
# A sequence also ends where another begins, so that the search for its end takes linear time.
_ANSI = lazily(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Marks that change the order in which the text after them is displayed.
_BIDI = lazily("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = lazily("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = lazily("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

# Characters that are valid in JSON but move the cursor, reverse text, end lines or cannot be encoded.
_RAW = lazily("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """Return text that can be stored: lone surrogates and NUL become U+FFFD."""
    if "\0" not in text and _is_text(text):
        return text
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def one_line(text: str) -> str:
    """Return text on one line. Runs of white space and control characters become single spaces. Terminal escape
    sequences and marks that change the direction of text are removed.
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join(_CONTROL.sub(" ", _BIDI.sub("", _ANSI.sub("", text))).split())


def printable(text: str) -> str:
    """Return text that is safe to print on a terminal, without escape sequences and marks that change the direction of
    text. Line feeds and tabs are kept.

    A carriage return, alone or before a line feed, becomes a line feed. Other control characters and lone surrogates
    become U+FFFD.
    """
    if text.replace("\n", "").replace("\t", "").isprintable() or not _UNPRINTABLE.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(_REPLACEMENT, _BIDI.sub("", _ANSI.sub("", text)))


def json_line(value: object) -> str:
    """Return a value as JSON on one line. Characters that could disturb a terminal or fail to encode are escaped."""
    import json  # noqa: PLC0415 - not needed to print a pack as text

    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def quoted(text: str) -> str:
    """Return text escaped for use inside a JSON string, without quotes around it."""
    return json_line(text)[1:-1]


def is_word_split(text: str) -> bool:
    """Return True if text contains no characters of scripts written without spaces between words.

    Callers can then skip patterns for these scripts, which are slow to compile because of their long character ranges.
    """
    return text.isascii() or max(text) < _UNSPACED


def below(directory: str | None, path: str) -> str:
    """Return a path relative to the directory if it is inside it, otherwise unchanged."""
    base = (directory or "").rstrip("/")
    return path.removeprefix(f"{base}/") if base else path


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
