"""The default counter: within 20 % of o200k's count, by arithmetic on character classes, without a tokenizer.

A view maps every character to a class symbol, and gives weights, in hundredths of a token, to short patterns of
symbols. The count is the sum of pattern occurrences times weights over all views, rounded up. Everything runs inside
`bytes.translate`, `bytes.count` and arithmetic on one number as long as the text.

A line break is only ever the first symbol of a pattern (a text is read as if preceded by one), or the last of
`"x\\n"`, which weighs less than a token. So lines count independently of each other, and for all texts
`text(a + "\\n" + b) <= text(a) + text(b) + 1`: lines that fit by their own counts also fit together.

The weights are a non-negative least-squares fit of relative errors against o200k on prose, code, JSON, logs, Markdown
and transcripts in several languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from omcli.base.record import record
from omcli.tokenizers.counter import Counter, CountText

_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
_LETTERS = _LOWER + _UPPER
_VOWELS = b"aeiouyAEIOUY"
_BREAKS = b"\n\r\v\f"
_CONTROLS = bytes({*range(0x20), 0x7F} - {*_BREAKS, ord("\t")})
_PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# UTF-8: every character beyond ASCII has one lead byte, which roughly determines its script, and 1-3 of these.
_CONTINUATION = bytes(range(0x80, 0xC0))


_View = tuple[bytes, tuple[tuple[bytes, int], ...]]
"""A mapping of bytes to class symbols (all others to `x`), and the weights of patterns of symbols."""


def _view(classes: Mapping[str, bytes], weights: Mapping[str, int]) -> _View:
    table = bytearray(b"x" * 256)
    for symbol, members in classes.items():
        for member in members:
            table[member] = ord(symbol)
    return bytes(table), tuple((pattern.encode(), weight) for pattern, weight in weights.items())


_LINE_END = 89
"""Weight of a line break after anything but a gap."""
_GAPS = " \t\r\v\f"

_VIEWS = (
    # Words: one token, and more for longer words, rare letters and runs of consonants.
    _view({"w": _LETTERS}, {"xw": 47, "w": 11}),
    _view({"r": b"jkqvwxzJKQVWXZ"}, {"r": 45}),
    _view({"k": bytes(set(_LETTERS) - set(_VOWELS))}, {"kkkk": 47}),
    # Words are split where the case changes: parseJSON, HTTPServer, BASE64.
    _view({"l": _LOWER, "U": _UPPER}, {"lU": 34, "UU": 30, "UUl": 130}),
    # Digits form groups of three, and a space before them is a token of its own.
    _view({"d": _DIGITS}, {"xd": 130, "d": 17}),
    # Punctuation: a token per run, but a single mark may be part of a word's token.
    _view(
        {"w": _LETTERS, "d": _DIGITS, "s": b" \t", "n": _BREAKS, "p": _PUNCTUATION},
        {"sd": 68, "pd": 41, "ps": 75, "sp": 65, "np": 41, "ppw": 72, "pppp": 15},
    ),
    _view({"q": b"\"'`", "\\": b"\\", "/": b"/", "l": _LOWER, "c": _CONTROLS}, {"c": 100, "q": 22, "\\": 40, "/l": 83}),
    # Gaps: a run of spaces, an indentation, the end of a line.
    _view({"s": b" \t", "n": _BREAKS}, {"xss": 86, "ns": 92, "xn": _LINE_END}),
)
# Beyond ASCII, by lead bytes alone: the cost of a character, and the extra cost of a word or run.
_SCRIPTS = _view(
    {
        "L": bytes(range(0xC3, 0xCC)),  # Latin with marks
        "M": b"\xcc\xcd",  # combining marks
        "G": b"\xce\xcf",  # Greek
        "R": bytes(range(0xD0, 0xD6)),  # Cyrillic, Armenian
        "H": b"\xd6\xd7",  # Hebrew
        "A": bytes(range(0xD8, 0xE0)),  # Arabic
        "I": b"\xe0\xe1",  # India, Thai, Georgian
        "P": b"\xc2\xe2",  # dashes, bullets, arrows, boxes
        "J": b"\xe3",  # kana, and the punctuation beside it
        "C": bytes(range(0xE4, 0xEA)),  # Chinese characters
        "K": bytes(range(0xEA, 0xEE)),  # Hangul
        "F": b"\xee\xef",  # full-width forms, variation selectors
        "E": bytes(range(0xF0, 0xF8)),  # emoji
    },
    {
        "xL": 70,
        "M": 155,
        "G": 41,
        "xR": 88,
        "R": 18,
        "H": 47,
        "A": 33,
        "I": 39,
        "xP": 136,
        "PP": 47,
        "xJ": 90,
        "J": 48,
        "JC": 100,
        "C": 76,
        "xK": 96,
        "K": 40,
        "F": 60,
        "E": 212,
    },
)
_JOINER = "\u200d".encode()  # what holds a family of emoji together
_JOINER_WEIGHT = 318


def _count(text: str) -> int:
    return -(-_text_weight(text) // 100)


def _count_by_line() -> CountText:
    """Return `_count` for repeated lines: each line is weighed once, and texts are sums of their lines."""
    weights: dict[str, int] = {}

    def weight(line: str) -> int:
        if line not in weights:
            weights[line] = _text_weight(line)
        return weights[line]

    def count(text: str) -> int:
        *lines, last = text.split("\n")
        ends = sum(1 for line in lines if line and line[-1] not in _GAPS)
        return -(-(sum(map(weight, lines)) + weight(last) + _LINE_END * ends) // 100)

    return count


def _text_weight(text: str) -> int:
    encoded = ("\n" + text).encode("utf-8", "surrogatepass")
    if text.isascii():
        return _weight(encoded, _plain_views())
    joiners = _JOINER_WEIGHT * encoded.count(_JOINER)
    encoded = encoded.translate(None, _CONTINUATION)
    return joiners + _weight(encoded, _plain_views()) + _weight(encoded, _other_views())


@record
class _Views:
    """Several views combined for one pass. Bytes that no view distinguishes share a class."""

    classes: bytes
    """Byte to class, 0 to 15; a line break's is 0."""
    pairs: bytes
    """Weight of two adjacent bytes, by their classes: `16 * first + second`."""
    others: tuple[_View, ...]
    """Patterns that pairs cannot express: longer ones, and doubled symbols, which must not overlap."""


@cache
def _plain_views() -> _Views:
    return _combined(_VIEWS)


@cache
def _other_views() -> _Views:
    return _combined((_SCRIPTS,))


def _combined(views: Sequence[_View]) -> _Views:
    numbers: dict[bytes, int] = {}
    classes = bytearray(256)
    for byte in (ord("\n"), *range(256)):
        seen = bytes(table[byte] for table, _ in views)
        classes[byte] = numbers.setdefault(seen, len(numbers))
    pairs = bytearray(256)
    for symbols, weights in zip(zip(*numbers, strict=True), (dict(weights) for _, weights in views), strict=True):
        for first, before in enumerate(symbols):
            for second, symbol in enumerate(symbols):
                both = bytes((before, symbol)) if before != symbol else b""
                pairs[16 * first + second] += weights.get(bytes((symbol,)), 0) + weights.get(both, 0)
    others = ((table, tuple(each for each in weights if not _is_short(each[0]))) for table, weights in views)
    return _Views(classes=bytes(classes), pairs=bytes(pairs), others=tuple(view for view in others if view[1]))


def _is_short(pattern: bytes) -> bool:
    return len(pattern) == 1 or (len(pattern) == 2 and pattern[0] != pattern[1])


def _weight(encoded: bytes, views: _Views) -> int:
    """Return the weight of a text that begins with a line break."""
    number = int.from_bytes(encoded.translate(views.classes))
    # A byte holds a class in its lower half, and by the shift the class before it in its upper half.
    weights = (number | number >> 4).to_bytes(len(encoded)).translate(views.pairs)
    total = sum(weights)
    for table, patterns in views.others:
        symbols = encoded.translate(table)
        for pattern, weight in patterns:
            total += weight * symbols.count(pattern)
    return total


APPROXIMATE = Counter(name="o200k-approx", count=_count, count_by_line=_count_by_line, per_message=4)
