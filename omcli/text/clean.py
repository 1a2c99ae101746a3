"""Making text safe to store, to print, or to put on one line or into JSON."""

from __future__ import annotations

from omcli.base import lazily

_REPLACEMENT = "\ufffd"
_UNSPACED = "\u2e80"
"""First character of a range with Chinese, Japanese and other scripts written without spaces between words."""

_WIDE = lazily("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff]")
_UNSTORABLE = lazily("[\0\ud800-\udfff]")
# Escape sequences: CSI (colours, cursor), OSC and similar ones up to their end on the same line, or two characters.
# A sequence also ends where another begins, so that the search for its end takes linear time.
_ANSI = lazily(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Marks that change the order in which the text after them is displayed, and invisible copies of ASCII that only a
# model reads. (Flags of regions end in such copies; without them, a black flag is left.)
_HIDDEN = lazily("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
# Invisible characters, some of which count as letters.
_UNSEEN = lazily(
    "[\xad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]+"
)
# Everything that a terminal, an editor or a model may show as the end of a line.
_LINE_END = lazily("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BREAKS = lazily("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_CONTROL = lazily("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = lazily("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
_UNNAMEABLE = lazily("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")

# Characters that are valid in JSON but move the cursor, reverse text, end lines or cannot be encoded.
_RAW = lazily("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """Return text that can be stored: lone surrogates and NUL become U+FFFD."""
    if "\0" not in text and _is_text(text):
        return text
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def printed_name(name: str) -> str:
    r"""Return a session's id as it can be printed and typed: with single spaces, and with control characters escaped
    (`\n`).
    """
    name = " ".join(filter(None, name.split(" ")))
    if name.isprintable():
        return name
    return _UNNAMEABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), name)


def one_line(text: str) -> str:
    """Return text on one line. Runs of white space and control characters become single spaces. Terminal escape
    sequences and marks that change the direction of text are removed.
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join(_CONTROL.sub(" ", _HIDDEN.sub("", _ANSI.sub("", text))).split())


def printable(text: str) -> str:
    """Return text that is safe to print on a terminal, without escape sequences and marks that change the direction of
    text. Line feeds and tabs are kept.

    Every line break, even an unusual one such as U+2028, becomes a line feed. Other control characters and lone
    surrogates become U+FFFD.
    """
    if text.replace("\n", "").replace("\t", "").isprintable() or not _UNPRINTABLE.search(text):
        return text
    text = _LINE_END.sub("\n", text)
    return _UNPRINTABLE.sub(_REPLACEMENT, _HIDDEN.sub("", _ANSI.sub("", text)))


def single_line(text: str) -> str:
    """Return the text on one line. A run of line breaks becomes one space. The rest is made `printable`."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def word_end(text: str, most: int, *, least: int = 1) -> int:
    """Return the end of the last whole word among the first `most` characters of text that go on, or of the last
    character of a script without spaces if that is later. Return 0 if it is below `least`.
    """
    end = max(0, text.rfind(" ", 0, max(0, most + 1)))
    if not text.isascii():
        end = max((wide.end() for wide in _WIDE.finditer(text, end, max(0, most))), default=end)
    return end if end >= least else 0


def short(text: str, limit: int) -> str:
    """Return text of at most `limit` characters. Longer text ends with an ellipsis after a word (see `word_end`) or, if
    more than half would be lost by that, inside one.
    """
    if len(text) <= limit:
        return text
    end = word_end(text, limit - 2, least=limit // 2)
    return f"{text[:end].rstrip()} …" if end else f"{text[: limit - 1]}…"


def visible(text: str) -> str:
    """Return text without invisible characters."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def json_line(value: object) -> str:
    """Return a value as JSON on one line. Characters that could disturb a terminal or fail to encode are escaped."""
    import json  # noqa: PLC0415 - not needed to print a pack as text

    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def quoted(text: str) -> str:
    """Return text escaped for use inside a JSON string, without quotes around it."""
    return json_line(text)[1:-1]


def is_word_split(text: str) -> bool:
    """Return True if text has no character from U+2E80 on, so none of Chinese, Japanese and the like, which are written
    without spaces between words.

    Callers can then skip patterns for these scripts, which are slow to compile because of their long character ranges.
    """
    return text.isascii() or max(text) < _UNSPACED


def below(directory: str | None, path: str) -> str:
    """Return a path relative to the directory if the directory contains it, otherwise unchanged."""
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


# ---- beginnings of rows, which `om context` reads too

USER = "User: "
"""Prefix of rows that quote a user. It is omitted in `MEMORY.md`."""
AGENT = "Agent: "
"""Prefix of rows that quote an agent."""
PASTED = "User pasted: "
"""Prefix of rows about what a user pasted."""

# ---- text that could be mistaken for a part of a pack

TIER_HEADINGS = ("From other sessions:", "This session:", "Last messages:")
"""Headings of a pack's tiers in a pack as text, in the order of the tiers."""

# The beginning of text that would, at the start of a line, be read as a part of a pack: a message, a heading, a date or
# time, or nothing, even behind `**` or a zero-width space; or else Markdown that opens or underlines a block.
PACK_PART = (
    r"[^\w\n]*(?:(?:user|assistant|system|developer|tool)\b[^:\n]{0,80}:|tool(?:Call|Result)\b"
    rf"|(?:{'|'.join(heading[:-1] for heading in TIER_HEADINGS)})(?:, [^:\n]{{0,40}})?:"
    r"|(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2})?|[0-9]{2}:[0-9]{2})[^\w\n]*\Z|\Z)"
)
OPENER = r"\s|<|\[|\#{1,6}(?:\s|\Z)|`{3}|~{3}|(?:[-+*>]|[0-9]{1,9}[.)])(?:\s|\Z)|[-=*_]{3,}\s*\Z"
LOOKS_STRUCTURAL = lazily(f"{OPENER}|{PACK_PART}")
