"""Token counters by name: an approximate one (the default), fixed numbers of characters per token, exact tokenizers.

Exact tokenizers are loaded only when requested, and nothing is downloaded. The tokenizer's rank file must be in
tiktoken's cache. It is verified and read here, because tiktoken's loader would download a missing or damaged file.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Literal

from omcli.base import lazily
from omcli.base.errors import BadConfiguration, BadUsage
from omcli.base.record import record, replace
from omcli.memory.message import Message, Role, TokenCounter

# Returns the number of tokens in text: 0 for empty text, never negative.
CountText = Callable[[str], int]


@record
class Counter:
    """An implementation of `memory.message.TokenCounter` made of functions and constants."""

    name: str
    count: CountText
    count_tool: CountText | None = None
    """Counts the text of tool calls and results. None means that they are counted like other text."""
    count_by_line: Callable[[], CountText] | None = None
    """Returns a `count` that is faster for texts with lines in common. None means that `count` is used for them too."""
    per_message: int = 0
    """Tokens added to each message of a user or an assistant. Nothing is added to tool calls and results, because they
    are part of such a message.
    """
    per_conversation: int = 0
    free_share: float = 0.0
    """Share of a budget that packs keep free because counts may be too low."""
    per_image: int = 1600
    """Tokens of each image. They are a constant, because an image has no text to count."""

    def text(self, text: str) -> int:
        return self.count(text)

    def message(self, message: Message) -> int:
        """Return the number of tokens in one message. For a call, those of its id, name and arguments are added up."""
        images = self.per_image * len(message.images)
        count_tool = self.count_tool or self.count
        if message.role is Role.CALL:
            return sum(map(count_tool, (message.call_id or "", message.tool or "", message.text))) + images
        if message.role is Role.RESULT:
            return count_tool(message.text) + images
        overhead = self.per_message if message.role in (Role.USER, Role.ASSISTANT) else 0
        return overhead + self.count(message.text) + images

    def remembering(self) -> Counter:
        return replace(self, count=self.count_by_line()) if self.count_by_line else self

    def conversation(self, messages: Iterable[Message]) -> int:
        return self.per_conversation + sum(map(self.message, messages))


# ---- approximate: within 20 % of o200k's count, by arithmetic on character classes
#
# A view maps every character to a class symbol, and gives short patterns of symbols a weight in hundredths of a token.
# The count is the sum of pattern occurrences times weights over all views, rounded up. For speed, it is computed by
# `bytes.translate`, `bytes.count` and arithmetic on one integer as long as the text.
#
# In patterns, a line break is always the first symbol (text is read as if preceded by one), or the last one of `"xn"`,
# which weighs less than a token. So lines are counted independently of each other, and for all texts
# `text(a + "\n" + b) <= text(a) + text(b) + 1`. Lines that fit by their own counts therefore also fit together.
#
# The weights are a non-negative least-squares fit of relative errors against o200k on prose, code, JSON, logs, Markdown
# and transcripts in several languages.

_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
_LETTERS = _LOWER + _UPPER
_VOWELS = b"aeiouyAEIOUY"
_BREAKS = b"\n\r\v\f"
_CONTROLS = bytes({*range(0x20), 0x7F} - {*_BREAKS, ord("\t")})
_PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# In UTF-8, a character beyond ASCII has a lead byte, which roughly determines its script, and 1 to 3 of these bytes.
_CONTINUATION = bytes(range(0x80, 0xC0))


_View = tuple[bytes, tuple[tuple[bytes, int], ...]]
"""A mapping of bytes to class symbols (`x` for unlisted bytes), and the weights of patterns of symbols."""


def _view(classes: Mapping[str, bytes], weights: Mapping[str, int]) -> _View:
    table = bytearray(b"x" * 256)
    for symbol, members in classes.items():
        for member in members:
            table[member] = ord(symbol)
    return bytes(table), tuple((pattern.encode(), weight) for pattern, weight in weights.items())


_LINE_END = 89
"""Weight of a line break that follows neither another one nor a gap (`_GAPS`)."""
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
        "I": b"\xe0\xe1",  # Indian scripts, Thai, Georgian
        "P": b"\xc2\xe2",  # dashes, bullets, arrows, boxes
        "J": b"\xe3",  # kana and CJK punctuation
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
_JOINER = "\u200d".encode()  # joins several emoji into one
_JOINER_WEIGHT = 318


def _count(text: str) -> int:
    return -(-_text_weight(text) // 100)


def _count_by_line() -> CountText:
    """Return a `_count` that weighs each distinct line only once. The weight of text is the sum of the weights of its
    lines and line ends.
    """
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
    """Return the weight of text in hundredths of a token."""
    encoded = ("\n" + text).encode("utf-8", "surrogatepass")
    if text.isascii():
        return _weight(encoded, _views("ascii"))
    joiners = _JOINER_WEIGHT * encoded.count(_JOINER)
    encoded = encoded.translate(None, _CONTINUATION)
    return joiners + _weight(encoded, _views("ascii")) + _weight(encoded, _views("other"))


@record
class _Views:
    """Several views combined for one pass. Bytes to which all views give equal symbols share a class."""

    classes: bytes
    """Class of each byte, 0 to 15. The class of a line break is 0."""
    pairs: bytes
    """Weights of two adjacent bytes, indexed by `16 * first class + second class`."""
    others: tuple[_View, ...]
    """Patterns that pairs cannot express: longer patterns, and doubled symbols, whose occurrences must not overlap."""


@cache
def _views(characters: Literal["ascii", "other"]) -> _Views:
    """Return the views for ASCII characters, or the one for all others, as a table of pairs and other patterns."""
    views = _VIEWS if characters == "ascii" else (_SCRIPTS,)
    tables = list(map(itemgetter(0), views))
    numbers: dict[bytes, int] = {}
    classes = bytearray(256)
    for byte in (ord("\n"), *range(256)):
        seen = bytes(map(itemgetter(byte), tables))
        classes[byte] = numbers.setdefault(seen, len(numbers))
    pairs = bytearray(256)
    others: list[_View] = []
    for symbols, (table, patterns) in zip(zip(*numbers, strict=True), views, strict=True):
        classes_of: defaultdict[int, list[int]] = defaultdict(list)
        for number, symbol in enumerate(symbols):
            classes_of[symbol].append(number)
        longer: list[tuple[bytes, int]] = []
        for pattern, weight in patterns:
            if len(pattern) > 2 or (len(pattern) == 2 and pattern[0] == pattern[1]):
                longer.append((pattern, weight))
                continue
            for first in classes_of[pattern[0]] if len(pattern) == 2 else range(len(symbols)):
                for second in classes_of[pattern[-1]]:
                    pairs[16 * first + second] += weight
        if longer:
            others.append((table, tuple(longer)))
    return _Views(classes=bytes(classes), pairs=bytes(pairs), others=tuple(others))


def _weight(encoded: bytes, views: _Views) -> int:
    """Return the weight of encoded text, which must begin with a line break."""
    number = int.from_bytes(encoded.translate(views.classes))
    # Each byte has its own class in the lower half and, by the shift, the class of the byte before in the upper half.
    weights = (number | number >> 4).to_bytes(len(encoded)).translate(views.pairs)
    total = sum(weights)
    for table, patterns in views.others:
        symbols = encoded.translate(table)
        for pattern, weight in patterns:
            total += weight * symbols.count(pattern)
    return total


# Of packs of coding sessions, 10 % had more tokens than this counts by o200k: 2 % had 4 % more, and the worst 7 %.
APPROXIMATE = Counter(name="o200k-approx", count=_count, count_by_line=_count_by_line, per_message=4, free_share=0.04)


# ---- exact


@record
class _Encoding:
    """A published tokenizer: its rank file, and the pattern that splits text before tokens are merged."""

    name: str
    file_name: str
    """Name in tiktoken's cache, which is the SHA-1 of the file's URL."""
    sha256: str
    pattern: str


_UPPERCASE, _LOWERCASE = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

_ENCODINGS: Mapping[str, _Encoding] = {
    "o200k": _Encoding(
        name="o200k_base",
        file_name="fb374d419588a4632f3f557e76b4b70aebbca790",
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern=rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPERCASE}]*[{_LOWERCASE}]+{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPERCASE}]+[{_LOWERCASE}]*{_SUFFIX}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "cl100k": _Encoding(
        name="cl100k_base",
        file_name="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}
EXACT = tuple(_ENCODINGS)


def counter_from_file(name: str, environment: Mapping[str, str] = os.environ) -> Counter:
    """Return the exact counter with this name.

    Raise BadConfiguration if its rank file is missing or is not the published one.
    """
    return Counter(name=name, count=_count_with(_ENCODINGS[name], environment), per_message=4)


def has_file(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the counter's rank file is on disk. Its hash is not checked."""
    return _file(_ENCODINGS[name], environment) is not None


def _count_with(encoding: _Encoding, environment: Mapping[str, str]) -> CountText:
    ranks = _read_file(encoding, environment)
    import tiktoken  # noqa: PLC0415 - takes longer to import than the rest of om

    tokenizer = tiktoken.Encoding(encoding.name, pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens={})
    # `encode_ordinary`, because a transcript may contain the text of a special token.
    return lambda text: len(tokenizer.encode_ordinary(text))


def _read_file(encoding: _Encoding, environment: Mapping[str, str]) -> dict[bytes, int]:
    import base64  # noqa: PLC0415 - only for exact counters
    import hashlib  # noqa: PLC0415

    path = _file(encoding, environment)
    if path is None:
        searched = " or ".join(str(folder) for folder in _folders(environment))
        raise BadConfiguration(
            f"the rank file of {encoding.name} is not on this machine",
            hint=f"use the counter o200k-approx, or put the file as {encoding.file_name} into {searched}",
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadConfiguration(
            f"{path} cannot be read: {error.strerror}", hint="check its permissions, or use the counter o200k-approx"
        ) from error
    if hashlib.sha256(content).hexdigest() != encoding.sha256:
        raise BadConfiguration(
            f"{path} is not the rank file of {encoding.name}", hint="remove it, or use the counter o200k-approx"
        )
    fields = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in fields}


def _file(encoding: _Encoding, environment: Mapping[str, str]) -> Path | None:
    files = (folder / encoding.file_name for folder in _folders(environment))
    return next((path for path in files if path.is_file()), None)


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of tiktoken's cache."""
    import tempfile  # noqa: PLC0415 - imports many modules

    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if environment.get(variable):
            yield Path(environment[variable])
    yield Path(environment.get("TMPDIR") or tempfile.gettempdir(), "data-gym-cache")


# ---- by name

# Chinese characters and Hangul syllables. Kana are counted like Latin, as lango does.
_CJK = lazily("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def _by_length(characters_in_ten_tokens: int) -> CountText:
    return lambda text: -(-10 * len(text) // characters_in_ten_tokens)


def _by_language(text: str) -> int:
    cjk = 0 if text.isascii() else len(_CJK.findall(text))
    return (len(text) - cjk) // 4 + cjk // 2


CHARACTER_COUNTERS = (
    Counter(name="chars-2.5", count=_by_length(25), per_message=4, per_conversation=24),
    Counter(name="chars-3.2", count=_by_length(32)),
    Counter(name="chars-3.5-3", count=_by_length(35), count_tool=_by_length(30)),
    Counter(name="chars-4", count=_by_length(40)),
    Counter(name="chars-4-cjk-2", count=_by_language, per_message=4),
)

_BUILT_IN = {built_in.name: built_in for built_in in (APPROXIMATE, *CHARACTER_COUNTERS)}
DEFAULT = APPROXIMATE.name
NAMES = (*_BUILT_IN, *EXACT)


def counter(name: str = DEFAULT) -> TokenCounter:
    """Return the counter with this name.

    Raise BadUsage if the name is unknown, and BadConfiguration if an exact counter's rank file is missing or damaged.
    """
    if name in EXACT:
        return counter_from_file(name)
    try:
        return _BUILT_IN[name]
    except KeyError:
        raise BadUsage(f"unknown token counter {name!r}", hint=f"one of: {', '.join(NAMES)}") from None
