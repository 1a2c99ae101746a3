"""Secrets that are known by how they are made, and where they are in a text.

Patterns are tried only where they can match, since looking for a string is many times faster: keys, which are known by
their beginning, where a long run of letters, digits, `-` and `_` begins; everything else where a trigger stands.

A secret lies within one string of JSON and never ends in the middle of an escape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from omcli.base.patterns import lazily
from omcli.base.record import positional_record
from omcli.text.secrets.assigned import NAME_TRIGGERS, assigned_secret


@positional_record
class Secret:
    """A secret's place in a text, and the rule that knows it; the lower the rank, the surer."""

    start: int
    end: int
    rank: int
    rule: str


_DIGIT = r"(?=[A-Za-z_-]*[0-9])"
# Of short random keys, one in thirty has no digit.
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
# No key is shorter; of a random one, few characters are the same.
_LONG_RUN = b"k" * 20
_DISTINCT = 8
# How much of a run belongs to the escape it begins with: in JSON, a key may follow a line break.
_ESCAPED = {"n": 1, "r": 1, "t": 1, "u": 5}


# Start and end of the secret whose trigger stands at an index of a text, if there is one.
Find = Callable[[str, int], tuple[int, int] | None]


def _matching(pattern: str, *, distinct: int = 1) -> Find:
    """Where a pattern matches from the trigger on: its group `secret`, or all of it."""
    compiled = lazily(pattern, re.ASCII)
    group = "secret" if "(?P<secret>" in pattern else 0

    def find(text: str, at: int) -> tuple[int, int] | None:
        found = compiled.match(text, at)
        return found.span(group) if found and len(set(found[group])) >= distinct else None

    return find


_PEM_BREAK = r"(?:\s|\\+[nrt])*+"
_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    # To its end, also over the quotes of a list of lines; where it is cut off, as far as there is base64.
    r"(?:(?:[A-Za-z0-9+/=\s:,.()\"'\\]|-(?!-))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_PEM_BREAK}(?:[A-Za-z0-9+/=]{{16,}}+{_PEM_BREAK})++)"
)
_EXAMPLE = r"pass(?:word|wd)?|pwd|pw|secret|token|x+|\*+|\.+"  # what documentation writes for a password
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
# Rule, triggers in lower case that stand for any case, and what to look for where one of them stands.
_TRIGGERED: tuple[tuple[str, tuple[bytes, ...], Find], ...] = (
    ("private-key", (b"-----begin ",), _matching(_PEM)),
    ("url-password", (b"://",), _matching(_URL)),
    ("authorization", (b"authorization", b"bearer "), _matching(_AUTHORIZATION, distinct=6)),
    ("assigned-secret", NAME_TRIGGERS, assigned_secret),
)


def secrets(text: str) -> Iterator[Secret]:
    """Every secret in a text, in no order; they may overlap."""
    # One byte per character, so that a place in the bytes is a place in the text.
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
    """Secrets that are known by their beginning; `shape` has a `k` for every character that a key is made of."""
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
