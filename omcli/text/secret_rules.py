"""Secrets without a known prefix: assigned to a name, in URLs, headers, cookies and commands, and private keys.

`redaction.py` finds the candidates; the rules here judge them. An assigned secret is `password = "…"`, `API_KEY=…`,
`"client_secret": "…"`, `--token …` or `| password | … |`. Its name must end right before the separator
(`max_tokens=100` sets no token), and the value must look like a real secret: code, types, placeholders and prose are
kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from omcli.base import lazily

# Secrets chosen by people may be short; generated ones are long. Brief names are also words of test reports and code.
_CHOSEN = (
    r"pass(?:word|wd|phrase|wort|code)|(?<=mot de )passe|(?<=_)pass|pwd|psk|contrase(?:ñ|\\+u00f1)a"
    r"|пароль|密码|密碼|パスワード|비밀번호"
    r"|secret(?:[_-]?(?:access[_-]?)?key(?:[_-]base)?|[_-]?token)?"
)
_BRIEF = r"(?:(?<![a-z0-9_])|(?<=\\n))pass|(?:(?<![a-z0-9])|(?<=\\n))pw"  # `\n` as in JSON
_GENERATED = (
    r"(?<=to)ken|key(?:[_-]data)?|(?:(?<![a-z])|(?<=\\n))auth"  # `token` is found by its `k`, the rarest letter
)
_KEY_OWNER = lazily(
    r"(?:api|access|private|account|auth|encrypt(?:ion)?|signing|master|app|application|license|licence|deploy"
    r"|consumer|client|storage|hmac|jwt|admin|webhook|ingest|subscription)[_-]?$",
    re.IGNORECASE,
)
# Tokens that only continue a list or identify a request: `nextToken`, `PublicKeyToken`.
_PUBLIC_TOKEN = lazily(r"(?:public_?key|next|page|continuation|idempotency|client_?request)[_-]?to$", re.IGNORECASE)
# In upper case, any key is secret, except these.
_NAMED_KEY = lazily(
    r"(?<![A-Z])(?!(?:\w+_)?(?:PUBLIC|PRIMARY|FOREIGN|CACHE|SORT|PARTITION|INDEX|ROW|HASH|OBJECT|S3|BUCKET|GROUP|UNIQUE"
    r"|ORDER|LOOKUP|STORE|HOST|KNOWN|REDIS|STATE|QUERY)_$)[A-Z][A-Z0-9_]{0,40}_$"
)


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
    rf"(?:(?P<chosen>{_CHOSEN})|(?P<brief>{_BRIEF})|{_GENERATED})\d{{0,2}}(?P<closing>\\*[\"'`])?\]?"
    # `=`, `: type =`, `=>`, `:`, `:=`, `:**`, the space after a `--flag`, the line between columns, the `>` of
    # `<password>`, the comma of `define('PASSWORD', '…')`.
    r"(?P<separator>[ \t]{0,4}(?:(?::[ \t]{0,4}[A-Za-z_][\w.\[\], |]{0,40})?=(?![=~])>?|:=?(?:\*\*)?|：)[ \t]{0,4}"
    r"|[ \t]{1,40}(?:\|[ \t]{1,4})?|>|,[ \t]?(?=\\*[\"']))"
    r"(?:[rbu]{1,2}(?=[\"']))?(?:"
    + "|".join(_quoted(quote, depth) for quote, depth in _QUOTES)
    + rf"|(?P<bare>{_BARE}{{6,64}}+)(?![(\[{{$])|(?P<special>[^\s\"'`\\<{{(\[$][^\s\"'`\\]{{5,199}}+))",
    re.IGNORECASE,
)
# What precedes a name whose value follows after a blank.
_BLANK = lazily(
    r"(?:^|[\s\"'`])--[\w-]{0,30}$|\blogin\s{1,9}\S{1,64}\s[^A-Za-z]{0,40}$"
    r"|(?:^|\W|\\n)(?:ENV|ARG|setx)[ \t]{1,4}\w{0,40}$|\s(?:WITH|with|ENCRYPTED|encrypted)[ \t]{1,4}$"
)
_DEFINE = lazily(r"(?:define|env|property)\(\\*[\"'][\w.]{0,60}$", re.IGNORECASE)
# What precedes a name that is the first on its line: in a file with settings the value extends to the end of the line.
_FIRST = lazily(
    r"[ \t+>-]{0,40}(?:[\w./-]{1,80}[:-](?=\d))?(?:\d{1,6}[:\t→| -]{1,4})?[ \t+>-]{0,40}"
    r"(?:(?:export|set|ENV|ARG)[ \t]{1,4})?[\w.-]{0,60}"
)
_LINE_START = lazily(r"[\r\n\"']|\\n")  # a text in quotes begins like a line
_LINE_END = lazily(r"[ \t]*(?:$|[\r\n\"'\\]|#)")
_SHELL_WORD = lazily(r"[^\s\"'`\\,;&|<>(){}\[\]]{6,200}+(?=[\s\"'\\]|$)")
# How much before a name is looked at: for its own beginning, and for what the line is.
_OWNER, _NAME, _CONTEXT = 20, 60, 160

_REFERENCE = lazily(r"<[^>]*>|\{[^}]*\}|^\$|\$\(|^%|%\(|\.\.\.|…|\*\*\*|[•●]{2}|^\[|^!\w+$")
_PLACEHOLDER = lazily(
    r"your|example|placeholder|change.?(?:me|it|this)|dummy|redacted|sample|insert|replace|undefined|required|optional"
    r"|x{4}|here$|^my[-_]|todo|\bfake|\btest",
    re.IGNORECASE,
)
_FILLER = lazily(r"[xX]{3,}|(?:0?123456789|1234567?8?|0{3,})")
_PLAIN_PART = lazily(r"[A-Za-z]*+[0-9]{0,4}")
_BETWEEN_PARTS = lazily(r"[-_. ]+")
# Words of labels, hints and messages in programs, which a password of several words seldom has.
_PROSE = lazily(
    r"\b(?:the|your|an?|is|are|for|to|of|must|enter|please|or|not|with|new|old|at|characters?|if|no|passwords?|tokens?"
    r"|user(?:name)?|keys?|invalid|forgot|confirm|show|set|reset|change|ihre?|das|der|die|ein(?:geben)?|und|oder|zeichen"
    r"|mindestens|passwort|votre|le|la|de|mot|passe|su|tu|el|introduzca|contrase(?:ñ|\\+u00f1)a)\b",
    re.IGNORECASE,
)
_NUMBER = lazily(r"-\d+|\d+(?:\.\d+)+")
_TYPE = lazily(r"(?:\w+\.)*[A-Z]\w*(?:Key|Token|Secret|Password|Types?|Str)\b\w*")
_RESOURCE = lazily(r"\barn:[\w:./-]*$")
# These follow the closing quote of a JSON string. No value starts with them.
_JSON_PUNCTUATION = (",", ":", "}", "]")
_NAME_LIKE = lazily(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_PATH = lazily(r"\.{0,2}/|~/|[A-Za-z]:\\|[A-Za-z][A-Za-z0-9+.-]*://|[\w.-]+(?:/[\w.-]+)+\.[A-Za-z]{1,5}$")
_AWS_SECRET = lazily(r"(?=.*[0-9])[A-Za-z0-9/+]{40}")  # may well begin like a path
_ONE_DIGIT = lazily("[0-9]")
_DATE = lazily(r"\d{4}-\d\d-\d\d")
_CODE_PATH = lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CODE = lazily(
    r"[!&*]?[A-Za-z_][\w.?]*(?:\([^()]*\)|\(.*\)|\[.*\]|\($|<.*>)|.*(?:&&|\|\||=>|==|->|\$\{|\}\}|/>)|\w+\|\w+$"
)
_WORDS = lazily(r"[A-Za-z]+(?:[-_.][A-Za-z]+)*")
_KEY_TEXT = lazily(r"(?![0-9]+$)[\w.~+/=:@-]+")
_CHANGE = lazily(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]|(?<=[a-z])[A-Z]")
_WORDY = lazily(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})+\d{0,3}")


def named_secret(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the secret assigned to the name at index `at`, or None if there is none."""
    found = _ASSIGNED.match(text, at)
    if found is None or found.lastgroup is None:
        return None
    before = text[max(0, at - _CONTEXT) : at]
    separator = found["separator"].strip()
    is_bare = found.lastgroup in ("bare", "special")
    is_column = separator in ("", "|") and not (separator == "" and _BLANK.search(before))
    if is_column and not (separator or len(found["separator"]) > 1 or "\t" in found["separator"]):
        return None  # prose
    if _is_something_else(found, separator, before, is_bare=is_bare):
        return None
    start, end = found.span(found.lastgroup)
    if is_bare:
        start, end = _extended(text, before, start, end, is_whole=found.lastgroup == "bare")
    value = text[start:end]
    if len(set(value)) < 4 or _is_no_value(value, separator, is_bare=is_bare):
        return None
    if found["chosen"]:
        is_env = is_bare and separator == "=" and text[at : at + 3].isupper()
        plausible = _is_chosen(value, is_bare=is_bare, is_env=is_env)
    elif found["brief"]:
        plausible = _is_strong(value) and not _WORDY.fullmatch(value)
    else:
        plausible = _is_named_for_a_secret(text, at, before, value) and _is_key(value, is_bare=is_bare)
    if not plausible or (is_column and not _is_strong(value)) or _is_placeholder(value):
        return None
    rest = _REST.match(text, end) if found.lastgroup == "bare" else None
    return start, rest.end() if rest else end


def _is_something_else(found: re.Match[str], separator: str, before: str, *, is_bare: bool) -> bool:
    """Return True if this is no assignment of a secret, whatever the value is."""
    if separator == ",":
        return not _DEFINE.search(before)
    if separator == ":" and "arn:" in before and _RESOURCE.search(before):
        return True
    if is_bare and found["closing"] and separator != "|":
        return True  # a quoted name without a quoted value: a number, or code
    # A test report: `pass 12`, `PASS: test_x`.
    return bool(found["brief"]) and (separator in ("", "|") or (found[0][:2].isupper() and separator != "="))


def _is_no_value(value: str, separator: str, *, is_bare: bool) -> bool:
    """Return True for punctuation, a number, an annotation, and the rest of `<password>@host`."""
    if value.startswith(_JSON_PUNCTUATION) or _NUMBER.fullmatch(value):
        return True
    return is_bare and (value.startswith("@") or (separator == ":" and bool(_TYPE.fullmatch(value))))


def _extended(text: str, before: str, start: int, end: int, *, is_whole: bool) -> tuple[int, int]:
    """Return the range of an unquoted value: up to the end of the line if a setting begins the line, otherwise as far
    as a shell would read a word. Without either, it is empty unless `is_whole`.
    """
    line = _LINE_START.split(before)[-1]
    word = _WHOLE.match(text, start) if len(line) < _CONTEXT and _FIRST.fullmatch(line) else None
    if word and _LINE_END.match(text, word.end()):
        value = word[0].rstrip(",;")
        if _is_mixed(value) and not _CODE.match(value):
            return start, start + len(value)
    word = _SHELL_WORD.match(text, start)
    if word and text[start - 1] == "=" and _is_mixed(word[0]) and "${" not in word[0]:
        return start, word.end()
    if not is_whole:
        return start, start
    return start, end


_WHOLE = lazily(r"[^\s\"'`\\<{(\[$][^\s\"'`\\]{5,199}+")


def _is_mixed(value: str) -> bool:
    return bool(_ONE_DIGIT.search(value)) and any(character.isalpha() for character in value)


def _is_strong(value: str) -> bool:
    """Return True if the value can hardly be a word: it has letters, digits, and capitals or symbols among them."""
    if len(value) < 8 or not _is_mixed(value) or any(map(str.isspace, value)) or _PATH.match(value):
        return False
    has_symbol = any(not character.isalnum() and character not in "-_.:/," for character in value)
    return has_symbol or _is_random(value)


def _is_random(value: str) -> bool:
    """Return True if letters and digits, or small letters and capitals, alternate more often than in names."""
    return len(_CHANGE.findall(value)) >= max(3, len(value) // 6)


def _is_placeholder(value: str) -> bool:
    """Return True if the value stands for a secret: a reference, or words such as `your-key-here`."""
    if _REFERENCE.search(value):
        return True
    if not _PLACEHOLDER.search(value):
        return False
    rest = _FILLER.sub("", value)
    parts = _BETWEEN_PARTS.split(rest)
    return len(rest) < 6 or all(_PLAIN_PART.fullmatch(part) and not _is_random(part) for part in parts)


def _is_named_for_a_secret(text: str, at: int, before: str, value: str) -> bool:
    """Return True unless the name ends in `key` and names the key of a table, a cache or a map."""
    if text[at : at + 3].lower() == "ken":
        return not _PUBLIC_TOKEN.search(before[-_OWNER:])
    if text[at : at + 3].lower() != "key" or _KEY_OWNER.search(before[-_OWNER:]):
        return True
    return text[at : at + 3] == "KEY" and bool(_NAMED_KEY.search(before[-_NAME:])) and _is_random(value)


def _is_chosen(value: str, *, is_bare: bool, is_env: bool) -> bool:
    """Return True if the value could be a password chosen by a person."""
    if _AWS_SECRET.fullmatch(value):
        return True
    if len(value) < 6 or _PATH.match(value):
        return False
    if any(map(str.isspace, value)):
        return _is_phrase(value)
    if is_bare and (_is_code_path(value) or (value.isidentifier() and _NAME_LIKE.search(value))):
        return False
    value = value.rstrip(":*.!?")
    if not _WORDS.fullmatch(value):
        return value.isascii() or any(character.isdecimal() for character in value)
    if _NAME_LIKE.search(value):
        return False
    if is_bare:
        return is_env and len(value) >= 8
    return (value.islower() and value.isalpha() and len(value) >= 8) or len(re.split("[-_.]", value)) >= 4


def _is_phrase(value: str) -> bool:
    """Return True if words with spaces between them could be a pass phrase, and not a label or a message."""
    words = value.split()
    if value != " ".join(words) or _PROSE.search(value) or value.endswith((".", ":", "?")) or "," in value:
        return False
    return any(map(str.isdecimal, value)) or (len(words) >= 4 and value.replace(" ", "").islower())


def _is_code_path(value: str) -> bool:
    """Return True for `settings.token2`, and False for a token with dots."""
    return bool(_CODE_PATH.fullmatch(value)) and not _is_random(value)


def _is_key(value: str, *, is_bare: bool) -> bool:
    """Return True if the value could be a generated key: long, and with at least three digits or a digit and mixed
    case.
    """
    digits = len(_ONE_DIGIT.findall(value))
    if len(value) < (16 if is_bare else 12) or not digits or not _KEY_TEXT.fullmatch(value):
        return False
    if _AWS_SECRET.fullmatch(value):
        return True
    if _PATH.match(value) or _DATE.match(value) or _is_code_path(value):
        return False
    return digits >= 3 or (not value.islower() and not value.isupper())


# ---- private keys

_BEGIN = lazily(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = lazily(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_MOST_OF_A_KEY = 32_768
# Lines of a key, whatever is printed before each of them: numbers, `>`, arrows, file names, quotes.
_KEY_LINE = lazily(r"(?<!\\)[A-Za-z0-9+/]{24,}={0,2}")
_LEAST_OF_A_KEY = 40
_MOST_OF_A_LINE = 64
_LINE_BREAK = lazily(r"[\r\n]|\\[nr]|[\"'],")
# Without its last line, a key goes on while the same is printed between its lines, but for numbers.
_NUMBERS = lazily(r"[0-9 ]+")
_MOST_BETWEEN_LINES = 160


def private_key(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the private key whose first line has the word KEY at index `at`, or None if there is only its
    first line.
    """
    at = text.rfind("-----BEGIN ", max(0, at - _MOST_OF_A_LINE), at)
    begin = _BEGIN.match(text, at) if at >= 0 else None
    if begin is None:
        return None
    following = text.find("-----BEGIN ", begin.end(), begin.end() + _MOST_OF_A_KEY)
    limit = following if following >= 0 else begin.end() + _MOST_OF_A_KEY
    end = _END.search(text, begin.end(), limit)
    lines = list(_KEY_LINE.finditer(text, begin.end(), end.start() if end else limit))
    if end:
        inside = sum(len(line[0]) for line in lines)
        is_key = inside >= max(_LEAST_OF_A_KEY, (end.start() - begin.end()) // 4)
        return (at, end.end()) if is_key else None
    last = begin.end()
    first = None
    for line in lines:
        between = text[last : line.start()]
        printed = _NUMBERS.sub("", between)
        first = first if first is not None else printed
        if printed != first or len(between) > _MOST_BETWEEN_LINES:
            break
        if not (between.isspace() or _LINE_BREAK.search(between)):
            break
        if last == begin.end() and len(line[0]) < _LEAST_OF_A_KEY:
            break
        last = line.end()
    return (at, last) if last > begin.end() else None


# ---- passwords in URLs, headers and commands


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


_EXAMPLE = r"pass(?:word|wd)?|pwd|pw|secret|token|x+|\*+|\.+"  # placeholders that documentation uses
_URL = (
    # Not the port of `localhost:3000@main`.
    rf"://[^\s/:@\"'`\\<>{{}}$]{{0,100}}:(?!(?:{_EXAMPLE}|\d{{1,5}})@|\$)"
    r"(?P<secret>[^\s/?#\"'`\\<>{}\[\]]{1,200})@(?=[A-Za-z0-9\[])"
)
_WEBHOOK = (
    r"://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
    r"|(?:\w{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/|[\w-]{1,60}\.webhook\.office\.com/webhookb2/"
    r"|hooks\.zapier\.com/hooks/catch/)(?P<secret>[\w/@-]{16,})"
)
_AUTHORIZATION = (
    r"(?:(?:(?<![A-Za-z])|(?<=\\n))(?i:authorization)(?P<name>\\*[\"'`])?\]?(?:\s?[:=]\s?|\s(?=\\*[\"']))(?(name)\\*[\"'`]|(?:\\*[\"'`])?)"
    r"(?:(?i:basic)\s{1,4}(?=[A-Za-z+/]*(?:[0-9]|[a-z][A-Z]))"
    r"|(?:(?i:bearer|token|digest|apikey|ssws)\s{1,4})?(?=[A-Za-z._~+/=-]*[0-9]))"
    r"|(?i:bearer)\s{1,4}(?=[A-Za-z._~+/=-]*[0-9])(?=\S{16}))"
    r"(?!AWS4-)(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)(?![(\[{$<])"
)
_url_password = _matching(_URL)
_webhook = _matching(_WEBHOOK, distinct=8)


def _in_url(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password in a URL, or of the part of a webhook's URL that lets anyone use it."""
    return _url_password(text, at) or _webhook(text, at)


_AZURE = r"(?<=[\w~.-]{3}[0-9])Q~(?P<secret>[\w~.-]{31,34})(?![\w~.-])"
_SIGNATURE = r"(?i:sig(?:nature)?)=(?P<secret>(?=[A-Za-z%+/]*[0-9])[A-Za-z0-9%+/]{40,600}={0,2})"

# Minimum number of distinct characters in a generated secret.
_DISTINCT = 8
_COOKIES = lazily(
    r"cookies?(?P<name>\\*[\"'`])?\]?\s?[:= ]\s?(?(name)\\*[\"'`]|(?:\\*[\"'`])?)"
    r"(?P<pairs>(?:[\w.%-]{1,80}=[^\s;,\"'`\\]{0,4096}(?:;\s?)?|[A-Za-z]{4,10};\s?)+)",
    re.IGNORECASE | re.ASCII,
)
_COOKIE = lazily(r"(?P<name>[\w.%-]{1,80})=(?P<value>[\w.%+/=:~|-]{16,})", re.ASCII)
_PLAIN_COOKIES = ("expires", "max-age", "domain", "path")
_DIGITS_AND_LETTERS = lazily(r"(?=.*[0-9])(?=.*[A-Za-z])(?!\d{4}-\d\d-\d\d)")


def _cookies(text: str, at: int) -> tuple[int, int] | None:
    """Return the range from the first to the last value of a cookie header that could identify a session."""
    header = _COOKIES.match(text, at)
    if header is None:
        return None
    values = [
        cookie.span("value")
        for cookie in _COOKIE.finditer(text, *header.span("pairs"))
        if cookie["name"].lower() not in _PLAIN_COOKIES
        and _DIGITS_AND_LETTERS.match(cookie["value"])
        and len(set(cookie["value"])) >= _DISTINCT
    ]
    return (values[0][0], values[-1][1]) if values else None


# An argument that is a password: not a variable, an option, a placeholder, a port or an address with one.
_ARGUMENT = (
    r"(?:\\*[\"'])?"
    rf"(?P<secret>(?!(?:{_EXAMPLE}|[\d.:/-]+)(?:[\s\"'\\]|$))[^\s\"'`\\$<>{{}}()\[\],/-][^\s\"'`\\<>]{{3,200}})"
)
_WITHIN = r"[^\n;|&]{0,200}?\s"
_USER = r"(?:\\*[\"'])?[^\s:\"'\\$<-][^\s:\"'\\]{0,63}"
_CURL = rf"curl(?:\.exe)?\s{_WITHIN[:-2]}(?<=\s)(?:-u|--user|-U|--proxy-user)[ =]?{_USER}:{_ARGUMENT}"
_SSH_KEYGEN = rf"(?<=ssh-)keygen{_WITHIN}-N ?{_ARGUMENT}"
_REDIS = rf"(?<=redis-)cli\s{_WITHIN[:-2]}(?<=\s)-a ?{_ARGUMENT}"
# In small letters it may as well be prose: then only a value with a digit.
_IDENTIFIED = (
    r"(?:IDENTIFIED\s{1,4}(?:WITH\s{1,4}\S{1,40}\s{1,4})?BY"
    r"|identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by(?=\s{1,4}\\*'[^'\s]{0,64}[0-9]))"
    rf"\s{{1,4}}(?=\\*[\"']){_ARGUMENT}"
)
_OPTION = lazily(rf"(?<= -)p(?P<apart>[ =]?){_ARGUMENT}", re.ASCII)
_TAKES_GLUED = lazily(r"(?:\b|(?<=\\n))(?:mysql\w*|mariadb[\w-]*)(?:\s[^\n;|&]*)?$")
_TAKES_APART = lazily(r"(?:\b|(?<=\\n))(?:sshpass|mongo\w*|\w+ login)(?:\s[^\n;|&]*)?$")
_LINE = 200


def _password_option(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password after the option `-p` of a command that takes one. The `p` is at index `at`."""
    if not (found := _OPTION.match(text, at)):
        return None
    takes = _TAKES_APART if found["apart"] else _TAKES_GLUED
    return found.span("secret") if takes.search(text[max(0, at - _LINE) : at - 2]) else None


_AUTHORIZED = (3, "authorization", _matching(_AUTHORIZATION, distinct=6))
_NAMED = (9, "assigned-secret", named_secret)
# Rank, name and function of the rules that are tried at a candidate, by the name of its pattern.
RULES: Mapping[str, tuple[tuple[int, str, Find], ...]] = {
    "url": ((1, "url-password", _in_url),),
    "signature": ((2, "url-signature", _matching(_SIGNATURE, distinct=_DISTINCT)),),
    "azure": ((8, "azure-secret", _matching(_AZURE, distinct=_DISTINCT)),),
    "bearer": (_AUTHORIZED,),
    "authorization": (_AUTHORIZED, _NAMED),
    "cookie": (
        (4, "cookie", _cookies),
        (6, "command-password", _matching(_CURL)),
        (6, "command-password", _matching(_REDIS)),
        _NAMED,
    ),
    "key": ((1, "private-key", private_key), (7, "command-password", _matching(_SSH_KEYGEN)), _NAMED),
    "password": ((5, "command-password", _password_option), _NAMED),
    "secret": (_NAMED,),
    "identified": ((6, "command-password", _matching(_IDENTIFIED)),),
}
