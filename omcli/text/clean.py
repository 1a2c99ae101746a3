"""Functions that make text safe to store, to print, or to put on one line, and JSON likewise."""

from __future__ import annotations

from omcli.base import lazily

_REPLACEMENT = "\ufffd"
_UNSPACED = "\u2e80"
"""First character of the scripts that don't separate words with spaces."""

_UNSTORABLE = lazily("[\0\ud800-\udfff]")
# Terminal control: CSI (colours, cursor), OSC and its like up to their end on the same line, two-character sequences.
# A sequence also ends where another begins, so that the search for its end stays linear.
_ANSI = lazily(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Marks that reorder the text after them, so that it reads differently.
_BIDI = lazily("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = lazily("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = lazily("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

# Valid in JSON, but they move a terminal's cursor, reverse its text, end lines or can't be encoded.
_RAW = lazily("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """Return the text with U+FFFD for lone surrogates and NUL, so that it can be stored."""
    if "\0" not in text and _is_text(text):
        return text
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def one_line(text: str) -> str:
    """Return the text on one line: white space and control characters become single spaces, terminal control is
    removed."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join(_CONTROL.sub(" ", _BIDI.sub("", _ANSI.sub("", text))).split())


def printable(text: str) -> str:
    """Return the text for a terminal: line breaks and tabs stay, terminal control is removed.

    Every line break becomes `\n`; other control characters and lone surrogates become U+FFFD.
    """
    if text.replace("\n", "").replace("\t", "").isprintable() or not _UNPRINTABLE.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(_REPLACEMENT, _BIDI.sub("", _ANSI.sub("", text)))


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with characters escaped that upset terminals or encoders."""
    import json  # noqa: PLC0415 - a pack as text is printed without

    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def quoted(text: str) -> str:
    """Return text escaped for a JSON string, without the quotes."""
    return json_line(text)[1:-1]


def is_word_split(text: str) -> bool:
    """Return True if spaces separate words in text: it has no characters of scripts written without spaces.

    If so, callers need not compile patterns for such scripts, whose long character ranges are slow to compile.
    """
    return text.isascii() or max(text) < _UNSPACED


def below(directory: str | None, path: str) -> str:
    """Return a path relative to a directory if it is inside it, else unchanged."""
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
