"""Redaction: removing secrets and <private> blocks from text before it is stored or sent.

Secrets are keys of a known form, passwords in URLs and headers, and values assigned to a name such as `password`. For
speed, patterns are tried only at places found by string search. Keys with a known prefix are tried at the start of a
long run of letters, digits, `-` and `_`. Everything else is tried at a trigger, a string such as `token`.

No match ends inside an escape sequence or takes only one of a JSON string's quotes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from omcli.base import lazily
from omcli.base.record import positional_record, record


@record
class Redacted:
    """Redacted text, and the number of removals by rule (`private` for <private> blocks)."""

    text: str
    counts: Mapping[str, int]


def redact(text: str) -> Redacted:
    """Replace every secret with `[redacted:<rule>]` and remove <private> blocks.

    An unclosed block ends with the text or, in JSON, with the string that contains it. Redacted JSON is still valid
    JSON. Redacting text again changes nothing.
    """
    counts: Counter[str] = Counter()
    while True:
        if blocks := _private_blocks(text):
            text = _replaced(text, ((start, end, "") for start, end in blocks))
            counts["private"] += len(blocks)
        elif found := _apart(each_secret(text)):
            text = _replaced(text, ((secret.start, secret.end, f"[redacted:{secret.rule}]") for secret in found))
            counts.update(secret.rule for secret in found)
        else:
            return Redacted(text=text, counts=dict(counts))


@positional_record
class Secret:
    """A secret's range in text, and the rule that found it. Rules with a lower rank are more reliable."""

    start: int
    end: int
    rank: int
    rule: str


_START, _RANK = attrgetter("start"), attrgetter("rank")


def _apart(found: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order of position. Overlapping ones are merged under the more reliable rule."""
    apart: list[Secret] = []
    for secret in sorted(found, key=_START):
        if apart and secret.start < apart[-1].end:
            last = apart.pop()
            surest = min(last, secret, key=_RANK)
            apart.append(Secret(last.start, max(last.end, secret.end), surest.rank, surest.rule))
        else:
            apart.append(secret)
    return apart


def _replaced(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, replacement in replacements:
        parts += (text[at:start], replacement)
        at = end
    return "".join((*parts, text[at:]))


_TAG = r"<(?P<close>\\?/)?[Pp]rivate>"
_IN_TEXT = lazily(_TAG)
_IN_JSON = lazily(rf'{_TAG}|\\.|(?P<quote>")', re.DOTALL)


def _private_blocks(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the outermost <private> blocks. In JSON, no block extends beyond the string in which it
    starts.
    """
    blocks: list[tuple[int, int]] = []
    if "rivate>" not in text:
        return blocks
    depth = start = 0
    for found in (_IN_JSON if _is_json(text) else _IN_TEXT).finditer(text):
        if found[0].lower() == "<private>":
            start = start if depth else found.start()
            depth += 1
        elif depth and found.lastgroup:
            ends_string = found.lastgroup == "quote"
            depth = 0 if ends_string else depth - 1
            if not depth:
                blocks.append((start, found.start() if ends_string else found.end()))
    return [*blocks, (start, len(text))] if depth else blocks


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# ---- assigned secrets: `password = "…"`, `API_KEY=…`, `"client_secret": "…"`, `--token …`
#
# The name must end right before the separator (`max_tokens=100` sets no token), and the value must look like a real
# secret: code, types, placeholders and prose are kept.

# In lower case. A name that contains one of these may have a secret as its value.
NAME_TRIGGERS = (b"pass", b"pwd", b"secret", b"token", b"key")

# Secrets chosen by people may be short; generated ones are long.
_CHOSEN = r"pass(?:word|wd|phrase)|(?<=_)pass|pwd|secret(?:[_-]?(?:access[_-]?)?key|[_-]?token)?"
_KEY_KINDS = ("api", "access", "private", "account", "auth", "encryption", "signing", "master")
_GENERATED = "token|" + "|".join(f"(?<={kind})key|(?<={kind}[_-])key" for kind in _KEY_KINDS)


def _quoted(quote: str, depth: int) -> str:
    r"""Return a pattern for a value whose quotes follow `depth` backslashes: 0 in text, 1 in JSON, 3 in nested JSON.

    The value contains only whole escape sequences, and no `"` that could end a JSON string around it.
    """
    plain = rf'[^"\\\n{quote}]'
    escapes = rf"\\{{{2 * depth + 2}}}|\\{{{2 * depth + 1}}}{quote}|\\{{{depth + 1}}}{plain}"
    if quote != '"' and depth == 0:
        escapes += r'|\\"'
    return rf"\\{{{depth}}}{quote}(?P<value{depth}_{ord(quote)}>(?:{plain}|{escapes})++)"


_BARE = r"[^\s\"'`\\,;&|<>(){}\[\]$]"
_QUOTES = (('"', 15), ('"', 7), ('"', 3), ('"', 1), ("'", 1), ('"', 0), ("'", 0), ("`", 0))
_REST = lazily(f"{_BARE}*")
_ASSIGNED = lazily(
    rf"(?:(?P<chosen>{_CHOSEN})|{_GENERATED})\d{{0,2}}(?P<closing>\\*[\"'`])?\]?"
    # `=`, `: type =`, `=>`, `:`, `:=`, the space after a `--flag`, the `>` of `<password>`.
    r"(?P<separator>[ \t]{0,4}(?:(?::[ \t]{0,4}[A-Za-z_][\w.\[\], |]{0,40})?=(?![=~])>?|:=?)[ \t]{0,4}|[ \t]{1,4}|>)"
    r"(?:[rbu]{1,2}(?=[\"']))?(?:"
    + "|".join(_quoted(quote, depth) for quote, depth in _QUOTES)
    + rf"|(?P<bare>{_BARE}{{6,64}}+)(?![(\[{{$]))",
    re.IGNORECASE,
)
_FLAG = lazily(r"(?:^|[\s\"'`])--[\w-]{0,30}$")

_PLACEHOLDER = lazily(
    r"<[^>]*>|\{[^}]*\}|^\$|\$\(|^%|%\(|\.\.\.|…|\*\*\*|x{4}|[•●]{2}|^\[|\s"
    r"|your|example|placeholder|change.?me|dummy|redacted|sample|insert|replace|undefined|required|optional",
    re.IGNORECASE,
)
# These follow the closing quote of a JSON string. No value starts with them.
_JSON_PUNCTUATION = (",", ":", "}", "]")
_NAME_LIKE = lazily(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_PATH = lazily(r"\.{0,2}/|~/|[A-Za-z]:\\|[A-Za-z][A-Za-z0-9+.-]*://")
_AWS_SECRET = lazily(r"(?=.*[0-9])[A-Za-z0-9/+]{40}")  # may well begin like a path
_ONE_DIGIT = lazily("[0-9]")
_DATE = lazily(r"\d{4}-\d\d-\d\d")
_CODE_PATH = lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_WORDS = lazily(r"[A-Za-z]+(?:[-_.][A-Za-z]+)*")
_KEY_TEXT = lazily(r"(?![0-9]+$)[\w.~+/=:@-]+")


def named_secret(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the secret assigned to the name at index `at`, or None if there is none."""
    found = _ASSIGNED.match(text, at)
    if found is None or found.lastgroup is None:
        return None
    value, is_bare, is_chosen = found[found.lastgroup], found.lastgroup == "bare", found["chosen"] is not None
    if not found["separator"].strip() and not _FLAG.search(text[max(0, at - 40) : at]):
        return None
    if is_bare and found["closing"]:
        return None  # a quoted name without a quoted value: a number, or code
    is_env = is_bare and found["separator"] == "=" and text[at : at + 3].isupper()
    plausible = _is_chosen(value, is_bare=is_bare, is_env=is_env) if is_chosen else _is_key(value, is_bare=is_bare)
    if not plausible or value.startswith(_JSON_PUNCTUATION) or len(set(value)) < 4 or _PLACEHOLDER.search(value):
        return None
    start, end = found.span(found.lastgroup)
    rest = _REST.match(text, end) if is_bare else None
    return start, rest.end() if rest else end


def _is_chosen(value: str, *, is_bare: bool, is_env: bool) -> bool:
    """Return True if the value could be a password chosen by a person."""
    if _AWS_SECRET.fullmatch(value):
        return True
    if len(value) < 6 or _PATH.match(value):
        return False
    if is_bare and (_CODE_PATH.fullmatch(value) or (value.isidentifier() and _NAME_LIKE.search(value))):
        return False
    value = value.rstrip(":*.!?")
    if not _WORDS.fullmatch(value):
        return value.isascii() or any(character.isdecimal() for character in value)
    if _NAME_LIKE.search(value):
        return False
    if is_bare:
        return is_env and len(value) >= 8
    return (value.islower() and value.isalpha() and len(value) >= 8) or len(re.split("[-_.]", value)) >= 4


def _is_key(value: str, *, is_bare: bool) -> bool:
    """Return True if the value could be a generated key: long, and with at least three digits or a digit and mixed
    case.
    """
    digits = len(_ONE_DIGIT.findall(value))
    if len(value) < (16 if is_bare else 12) or not digits or not _KEY_TEXT.fullmatch(value):
        return False
    if _PATH.match(value) or _DATE.match(value) or _CODE_PATH.fullmatch(value):
        return False
    return digits >= 3 or (not value.islower() and not value.isupper())


# ---- keys of a known form

_DIGIT = r"(?=[A-Za-z_-]*[0-9])"
# One in thirty short random keys has no digit.
_MIXED = r"(?=[a-z_-]*[0-9A-Z])"
_KEY_PATTERNS = {
    "anthropic-key": rf"sk-ant-{_DIGIT}[\w-]{{16,}}",
    "openrouter-key": rf"sk-or-{_DIGIT}[\w-]{{16,}}",
    "openai-key": rf"sk-{_DIGIT}(?:(?:proj|svcacct|admin)-[\w-]{{16,}}|[A-Za-z0-9]{{20,}})",
    "github-token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}",
    "aws-key-id": r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}",
    "slack-token": r"(?:xox[abeoprs](?:\.xox[abp])?|xapp-[0-9])-[\w-]{10,}",
    "google-key": r"AIza[\w-]{35}",
    "gitlab-token": rf"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|oas|wt)-{_MIXED}[\w-]{{20,}}(?:\.[\w.]{{8,}})?",
    "npm-token": r"npm_[A-Za-z0-9]{30,}",
    "pypi-token": r"pypi-Ag[\w-]{40,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{30,}",
    "stripe-key": rf"(?:[sr]k_(?:live|test)|whsec)_{_MIXED}[A-Za-z0-9]{{16,}}",
    "xai-key": r"xai-[A-Za-z0-9]{40,}",
    "sendgrid-key": r"(?<=SG\.)[\w-]{20,}\.[\w-]{16,}",
    "telegram-token": r"(?<=[0-9]{8}:)AA[\w-]{32,34}(?![\w-])",
    "jwt": r"eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*){0,3}",
}
_ONE_OF_THEM = "|".join(f"(?P<{rule.replace('-', '_')}>{pattern})" for rule, pattern in _KEY_PATTERNS.items())
_KEY = lazily(rf"(?:{_ONE_OF_THEM})(?![A-Za-z0-9])", re.ASCII)
_KEY_LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"
_SHAPE = bytes(ord("k") if byte in _KEY_LETTERS else ord(" ") for byte in range(256))
# Minimum length of a key, and minimum number of distinct characters in it.
_LONG_RUN = b"k" * 20
_DISTINCT = 8
# Number of characters after a backslash to skip: in JSON, a key may follow an escape sequence such as a line break.
_ESCAPED = {"n": 1, "r": 1, "t": 1, "u": 5}


# Returns start and end of the secret whose trigger is at an index of the text, or None.
Find = Callable[[str, int], tuple[int, int] | None]


def _matching(pattern: str, *, distinct: int = 1) -> Find:
    """Return a `Find` function for a pattern. The secret is its group `secret` if it has one, otherwise the whole
    match.
    """
    compiled = lazily(pattern, re.ASCII)
    group = "secret" if "(?P<secret>" in pattern else 0

    def find(text: str, at: int) -> tuple[int, int] | None:
        found = compiled.match(text, at)
        return found.span(group) if found and len(set(found[group])) >= distinct else None

    return find


_PEM_BREAK = r"(?:\s|\\+[nrt])*+"
_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    # Up to the END line, even if the lines are quoted in a list. Without END, up to the end of the base64.
    r"(?:(?:[A-Za-z0-9+/=\s:,.()\"'\\]|-(?!-))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_PEM_BREAK}(?:[A-Za-z0-9+/=]{{16,}}+{_PEM_BREAK})++)"
)
_EXAMPLE = r"pass(?:word|wd)?|pwd|pw|secret|token|x+|\*+|\.+"  # placeholders that documentation uses
_URL = (
    rf"://[^\s/:@\"'`\\<>{{}}$]{{0,100}}:(?!(?:{_EXAMPLE})@)"
    r"(?P<secret>[^\s/?#\"'`\\<>{}\[\]$]{1,200})@(?=[A-Za-z0-9\[])"
)
_AUTHORIZATION = (
    r"(?:(?i:authorization)(?P<name>\\*[\"'`])?\]?\s?[:=]\s?(?(name)\\*[\"'`]|(?:\\*[\"'`])?)"
    r"(?:(?i:basic)\s{1,4}(?=[A-Za-z+/]*(?:[0-9]|[a-z][A-Z]))"
    r"|(?:(?i:bearer|token|digest|apikey)\s{1,4})?(?=[A-Za-z._~+/=-]*[0-9]))"
    r"|(?i:bearer)\s{1,4}(?=[A-Za-z._~+/=-]*[0-9])(?=\S{16}))"
    r"(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)(?![(\[{$<])"
)
# Rule, its triggers (in lower case, matched in any case), and the function called at each occurrence.
_TRIGGERED: tuple[tuple[str, tuple[bytes, ...], Find], ...] = (
    ("private-key", (b"-----begin ",), _matching(_PEM)),
    ("url-password", (b"://",), _matching(_URL)),
    ("authorization", (b"authorization", b"bearer "), _matching(_AUTHORIZATION, distinct=6)),
    ("assigned-secret", NAME_TRIGGERS, named_secret),
)


def each_secret(text: str) -> Iterator[Secret]:
    """Yield every secret in text, in no particular order. Secrets may overlap."""
    # One byte per character, so that byte indexes are also indexes into the text.
    flat = text.encode("latin-1", "replace")
    yield from _keys(text, flat.translate(_SHAPE))
    lowered = flat.lower()
    for rank, (rule, triggers, find) in enumerate(_TRIGGERED, start=1):
        for trigger in triggers:
            at = lowered.find(trigger)
            while at >= 0:
                found = find(text, at)
                if found:
                    yield Secret(*found, rank, rule)
                at = lowered.find(trigger, max(at + 1, found[1] if found else 0))


def _keys(text: str, shape: bytes) -> Iterator[Secret]:
    """Yield secrets with a known prefix. `shape` has a `k` in place of every character that a key may contain."""
    at = shape.find(_LONG_RUN)
    while at >= 0:
        found = _KEY.match(text, at)
        if not found and text[at - 1 : at] == "\\":
            found = _KEY.match(text, at + _ESCAPED.get(text[at], 0))
        end = found.end() if found else 0
        if found and found.lastgroup and len(set(found[0])) >= _DISTINCT:
            yield Secret(*found.span(), 0, found.lastgroup.replace("_", "-"))
        run_end = shape.find(b" ", at)
        at = -1 if run_end < 0 else shape.find(_LONG_RUN, max(run_end, end))
