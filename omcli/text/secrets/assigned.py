"""Secrets that only their name gives away: `password = "…"`, `API_KEY=…`, `"client_secret": "…"`, `--token …`.

The name has to end right before the separator (`max_tokens=100` sets no token), and the value has to look like one
that somebody uses: code, types, placeholders and prose stay.
"""

from __future__ import annotations

import re

from omcli.base.patterns import lazily

# In lower case: where a name with one of them stands, a secret may follow.
NAME_TRIGGERS = (b"pass", b"pwd", b"secret", b"token", b"key")

# What somebody chose or was given may be any short text; what was generated is long.
_CHOSEN = r"pass(?:word|wd|phrase)|(?<=_)pass|pwd|secret(?:[_-]?(?:access[_-]?)?key|[_-]?token)?"
_KEY_KINDS = ("api", "access", "private", "account", "auth", "encryption", "signing", "master")
_GENERATED = "token|" + "|".join(f"(?<={kind})key|(?<={kind}[_-])key" for kind in _KEY_KINDS)


def _quoted(quote: str, depth: int) -> str:
    r"""A value whose quotes stand behind `depth` backslashes: 0 in plain text, 1 in JSON, 3 in JSON within JSON ….

    It is taken in whole escape sequences, and without a `"` that could end a JSON string around it.
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
# After a quote that closed a JSON string; a value never starts so.
_JSON_PUNCTUATION = (",", ":", "}", "]")
_NAME_LIKE = lazily(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_PATH = lazily(r"\.{0,2}/|~/|[A-Za-z]:\\|[A-Za-z][A-Za-z0-9+.-]*://")
_AWS_SECRET = lazily(r"(?=.*[0-9])[A-Za-z0-9/+]{40}")  # may well begin like a path
_DIGIT = lazily("[0-9]")
_DATE = lazily(r"\d{4}-\d\d-\d\d")
_CODE_PATH = lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_WORDS = lazily(r"[A-Za-z]+(?:[-_.][A-Za-z]+)*")
_KEY_LETTERS = lazily(r"(?![0-9]+$)[\w.~+/=:@-]+")


def assigned_secret(text: str, at: int) -> tuple[int, int] | None:
    """Start and end of the secret that is given to the name with a trigger at this index, if one is."""
    found = _ASSIGNED.match(text, at)
    if found is None or found.lastgroup is None:
        return None
    value, is_bare, is_chosen = found[found.lastgroup], found.lastgroup == "bare", found["chosen"] is not None
    if not found["separator"].strip() and not _FLAG.search(text[max(0, at - 40) : at]):
        return None
    if is_bare and found["closing"]:
        return None  # a quoted name without a quoted value: a number, or code
    is_env = is_bare and found["separator"] == "=" and text[at : at + 3].isupper()
    plausible = _is_password(value, is_bare=is_bare, is_env=is_env) if is_chosen else _is_key(value, is_bare=is_bare)
    if not plausible or value.startswith(_JSON_PUNCTUATION) or len(set(value)) < 4 or _PLACEHOLDER.search(value):
        return None
    start, end = found.span(found.lastgroup)
    rest = _REST.match(text, end) if is_bare else None
    return start, rest.end() if rest else end


def _is_password(value: str, *, is_bare: bool, is_env: bool) -> bool:
    """Whether this could be a password somebody chose or was given."""
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
    """Whether this could be a generated key: long, with letters and several digits, or a digit and both cases."""
    digits = len(_DIGIT.findall(value))
    if len(value) < (16 if is_bare else 12) or not digits or not _KEY_LETTERS.fullmatch(value):
        return False
    if _PATH.match(value) or _DATE.match(value) or _CODE_PATH.fullmatch(value):
        return False
    return digits >= 3 or (not value.islower() and not value.isupper())
