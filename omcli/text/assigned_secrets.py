"""Secrets assigned to a name: `password = "…"`, `"client_secret": "…"`, `--token …`, `| password | … |`, and the like.

Name and value may be apart: `{"name": "DB_PASSWORD", "value": "…"}`, and columns of tables. The name must end right
before the separator (`max_tokens=100` sets no token), and the value must look like a real secret: code, types,
placeholders and prose are kept.
"""

from __future__ import annotations

import re

from omcli.base import lazily

# Secrets chosen by people may be short; generated ones are long. Brief names are also words of test reports and code.
_CHOSEN = (
    r"pass(?:word|wd|phrase|wort|code)|(?<=mot de )passe|(?<=_)pass|pwd|psk|contrase(?:ñ|\\+u00f1)a"
    r"|kennwort|пароль|密码|密碼|パスワード|비밀번호"
    r"|secret(?:[_-]?(?:access[_-]?)?key(?:[_-]base)?|[_-]?token)?"
)
_BRIEF = r"(?:(?<![a-z0-9_])|(?<=\\n))pass|(?:(?<![a-z0-9])|(?<=\\n))pw"  # `\n` as in JSON
_GLUED = r"(?<=[a-z0-9])(?<!com)(?<!by)(?<!tres)(?<!sur)(?<!multi)pass"  # `dbpass`, and `renderPass`
_GENERATED = (
    r"(?<=to)ken|key(?:[_-]data)?|(?:(?<![a-z])|(?<=\\n))auth"  # `token` is found by its `k`, the rarest letter
)
_KEY_OWNER = lazily(
    r"(?:api|access|private|account|auth|encrypt(?:ion)?|signing|master|app|application|license|licence|deploy"
    r"|consumer|client|storage|hmac|jwt|admin|webhook|ingest|subscription)[ _-]?$",
    re.IGNORECASE,
)
_PASS_OWNER = lazily(
    r"(?:db|sql|ftp|smtp|imap|mail|user|root|admin|ssh|http|proxy|ldap|vpn|vnc|wifi|redis|mongo|rabbit|store|key|login"
    r"|auth|app|web|server|service|client|luks|crypt|require|become|sudo|my|pg)$",
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
    begin = rf"\\{{{depth}}}{quote}"
    thrice = rf"(?:{begin}{begin}(?:\r?\n|\\+n)?[ \t]*)?"  # as in TOML, perhaps on a line of its own
    return rf"{begin}{thrice}(?P<value{depth}_{ord(quote)}>(?:{plain}|{escapes})++)"


_BARE = r"[^\s\"'`\\,;&|<>(){}\[\]$]"
_QUOTES = (('"', 15), ('"', 7), ('"', 3), ('"', 1), ("'", 1), ('"', 0), ("'", 0), ("`", 0))
_REST = lazily(f"{_BARE}*")
NAMES = (
    rf"(?:(?P<chosen>{_CHOSEN})|(?P<brief>{_BRIEF})|(?P<glued>{_GLUED})|{_GENERATED})\d{{0,2}}(?P<closing>\\*[\"'`])?"
)
# Between a name and its value in two parts: `"name": "…", "value": "…"`, perhaps with one more pair between them, the
# same in YAML and XML, and `variable "…" {` with a `default`. Lines may be numbered.
_NEXT_PART = r"[\s,\\nrt\"'0-9→|+-]{1,60}"
_NEXT_LINE = r"(?:\r?\n|\\+n)[ \t]{0,20}(?:\d{1,6}[→:|\t])?[ \t]{1,20}"
_APART = (
    rf"{_NEXT_PART}(?:\w{{1,20}}\\*[\"']:\s?[\w .\\\"'-]{{0,44}},{_NEXT_PART})?"
    rf"(?:parameter)?value\\*[\"']?[ \t]?[:=][ \t]{{0,4}}(?:[|>]-?{_NEXT_LINE})?"
    rf"|</(?:name|key)>(?:{_NEXT_PART})?<(?:value|string)>"
    r"|[ \t]{1,4}\{[^{}]{1,300}?\bdefault[ \t]{1,20}=[ \t]{1,4}(?=\\*[\"'])"
)
_ASSIGNED = lazily(
    rf"{NAMES}\]?"
    # `=`, `: type =`, `=>`, `:`, `:=`, `:**`, the space after a `--flag`, the line between columns, the `>` of
    # `<password>`, the comma of `define('PASSWORD', '…')`, the bracket of
    # `setPassword("…")`, `my password is …`, and what is between two parts, as in `<add key="Password" value="…"/>`.
    r"(?P<separator>[ \t]{0,4}(?:(?::[ \t]{0,4}[A-Za-z_][\w.\[\], |]{0,40})?=(?![=~])>?|:=?(?:\*\*)?|：)[ \t]{0,4}"
    rf"|(?P<apart>{_APART})|\((?=\\*[\"'])|[ \t]is:?[ \t]"
    r"|[ \t]{1,40}(?:\|[ \t]{1,4})?|>|,[ \t]{0,20}(?=\\*[\"']))"
    r"(?:[rbu]{1,2}(?=[\"']))?(?:"
    + "|".join(_quoted(quote, depth) for quote, depth in _QUOTES)
    + rf"|(?P<bare>{_BARE}{{6,64}}+)(?![(\[{{$])|(?P<special>[^\s\"'`\\<{{(\[$][^\s\"'`\\]{{5,199}}+))",
    re.IGNORECASE,
)
# What precedes a name whose value follows after a blank.
_BLANK = lazily(
    r"(?:^|[\s\"'`])-{1,2}[\w-]{0,30}$|\blogin\s{1,9}\S{1,64}\s[^A-Za-z]{0,40}$"
    r"|(?:^|\W|\\n)(?:ENV|ARG|setx|setenv|set -\w{1,3}|#define|\(setq)[ \t]{1,4}[\w-]{0,40}$"
    r"|\s(?:WITH|with|ENCRYPTED|encrypted)[ \t]{1,4}$"
    r"|(?:\b|(?<=\\n))(?:nmcli|mysqladmin)\s[^\n;|&]{0,150}$"
    r"|\sconfig(?:ure)?\s(?:set\s|--?\w+\s){0,3}[\w./:-]{0,80}$"
    r"|(?:^|[\n\"':→|]|\\n)[ \t]{0,20}require$"  # Redis
)
_OPTION = lazily(r"(?:^|[\s\"'`])-{1,2}[\w-]{0,30}$")
_UNINDENTED = lazily(r"[+-]?(?:[ ]{0,6}\d{1,6}[:\t→|])?(?:(?:export|set|ENV|ARG)[ \t]{1,4})?[\w.-]{0,60}")
_QUOTED_END = lazily(r"\\*[\"'`][;,]?[ \t]*(?:$|[\r\n\"'\\]|#)")
_SETTER = lazily(
    r"(?:\b(?:set|with)_?|\.(?!get|has|is|find|read|check|verify|validate|compare))\w{0,20}$", re.IGNORECASE
)
_DEFINE = lazily(r"(?:define|env|property)\(\\*[\"'][\w.]{0,60}$", re.IGNORECASE)
# What precedes a name that is the first on its line: in a file with settings the value extends to the end of the line.
_FIRST = lazily(
    r"[ \t+>-]{0,40}(?:[\w./-]{1,80}[:-](?=\d))?(?:\d{1,6}[:\t→| -]{1,4})?[ \t+>-]{0,40}"
    r"(?:(?:export|set|ENV|ARG)[ \t]{1,4})?[\w.-]{0,60}"
)
LINE_START = lazily(r"[\r\n\"']|\\n")  # a text in quotes begins like a line
_LINE_END = lazily(r"[ \t]*(?:$|[\r\n\"'\\]|#)")
_SHELL_WORD = lazily(r"[^\s\"'`\\,;&|<>(){}\[\]]{6,200}+(?=[\s\"'\\]|$)")
# How much before a name is looked at: for its own beginning, and for what the line is.
_OWNER, _NAME, CONTEXT = 20, 60, 160

_REFERENCE = lazily(r"<[^>]*>|\{[^}]*\}|^\$|\$\(|^%|%\(|\.\.\.|…|\*\*\*|[•●]{2}|^\[|^!\w+$")
_PLACEHOLDER = lazily(
    r"your|example|placeholder|change.?(?:me|it|this)|dummy|redacted|sample|insert|replace|undefined|required|optional"
    r"|x{4}|here$|^my[-_]|todo|\bfake|\btest",
    re.IGNORECASE,
)
_STAND_INS = frozenset(
    "your my the a an this it for is example placeholder change changeme changeit dummy redacted sample insert replace"
    " replaceme with undefined required optional here todo fake test testing password passwd pass pwd passphrase secret"
    " token key api auth access client user username name id value string goes put db database admin jwt app service"
    " super long random strong secure real new".split()
) | {""}
_FILLER = lazily(r"[xX]{3,}|(?:0?123456789|1234567?8?|0{3,})")
_PLAIN_PART = lazily(r"[A-Za-z]*+[0-9]{0,4}")
_BETWEEN_PARTS = lazily(r"[-_. ]+")
# Words of labels, hints and messages in programs, which a password of several words seldom has.
_PROSE = lazily(
    r"\b(?:the|your|an?|is|are|for|to|of|must|enter|please|or|not|with|new|old|at|least|minimum|characters?|letters?|digits?|if|no|passwords?|tokens?"
    r"|user(?:name)?|keys?|invalid|forgot|confirm|show|set|reset|change|ihre?|das|der|die|ein(?:geben)?|und|oder|zeichen"
    r"|mindestens|passwort|votre|le|la|de|mot|passe|su|tu|el|introduzca|contrase(?:ñ|\\+u00f1)a)\b",
    re.IGNORECASE,
)
_NUMBER = lazily(r"-\d+|\d+(?:\.\d+)+")
TYPE = lazily(r"(?:\w+\.)*[A-Z]\w*(?:Key|Token|Secret|Password|Types?|Str)\b\w*")
_RESOURCE = lazily(r"\barn:[\w:./-]*$")
# These follow the closing quote of a JSON string. No value starts with them.
_JSON_PUNCTUATION = (",", ":", "}", "]")
_NAME_LIKE = lazily(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
# Also the name of a file or of a package with its version, a line of /etc/passwd, and rules such as `string|min:8`.
_PATH = lazily(
    r"\.{0,2}/|~/|[A-Za-z]:\\|[A-Za-z][A-Za-z0-9+.-]*://|[\w.-]+(?:/[\w.-]+)+\.[A-Za-z]{1,5}$"
    r"|[\w.-]+\.(?:pub|pem|key|crt|p12|pfx|jks|keystore|json|ya?ml|toml|txt|md|py|[jt]sx?)$"
    r"|[\w./-]+@v?\d+\.[\w.-]+$|[\w-]+:[x*!]?:\d+:\d+:|[a-z_]+(?:\|[a-z_]+(?::\d+)?)+$"
)
_AWS_SECRET = lazily(r"(?=.*[0-9])[A-Za-z0-9/+]{40}")  # may well begin like a path
_ONE_DIGIT = lazily("[0-9]")
_DATE = lazily(r"\d{4}-\d\d-\d\d")
_CODE_PATH = lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CODE = lazily(
    r"[!&*]?[A-Za-z_][\w.?]*(?:\([^()]*\)|\(.*\)|\[.*\]|\($|<.*>)|.*(?:&&|\|\||=>|==|->|\$\{|\}\}|/>)|\w+\|\w+$"
)
_WORDS = lazily(r"[A-Za-z]+(?:[-_.][A-Za-z]+)*")
_KEY_TEXT = lazily(r"(?![0-9]+$)[\w.~+/=:@-]+")
_PERCENT = lazily("%[0-9A-Fa-f]{2}")
# An unquoted value with characters that end a word in a shell or a list, up to one that begins another value.
_WORD = lazily(
    r"(?:[^\s\"'`\\<>{}&;,|$]|[&;,|](?![&;,|]|[\w.-]{0,40}[=:])|\$(?!(?:[A-Z_][A-Z0-9_]*|[a-z_]+)(?![A-Za-z0-9_])|[({]))"
    r"{8,200}+"
)
_QUERY = lazily(r"[?&][\w.%\[-]{0,60}$")
_SYMBOLS = lazily(r"[^\w\s]")
_RANGES = lazily(r"a-z|A-Z|0-9|[a-z]{7}|\s.*\s.*\s.*\s.*\s")
_CHANGE = lazily(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]|(?<=[a-z])[A-Z]")
_WORDY = lazily(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})+\d{0,3}")
# Words that can be pronounced, with numbers between them: `JwtAuth2Provider`.
_NAMES_AND_NUMBERS = lazily(
    r"(?:(?=[A-Z]?[a-z]*[aeiouy]|[AEIOUY])[A-Z]?[a-z]++|[A-Z]{2,}+(?![a-z])|\d{1,4}(?=[A-Z_-]|$)|[-_.])+"
)
_AUTH_LIKE = lazily(
    r"auth|basic|bearer|digest|jwt|ldap|saml|sso|oidc|provider|client|server|service|session|user", re.IGNORECASE
)
# Symbols between the letters of a word, but for entities of HTML, formats and addresses of mail.
_INSIDE = lazily(r"(?<=\w)(?:[#$^*!~]|&(?!\w+;)|%(?![sdif]\b)|@(?!\w+\.\w))(?=\w)")
_MARKS = frozenset("@#!$%^&*~+?")
_COMMON = frozenset(".:=()[]{}/<>\"'-")
_VARIABLE = lazily(r"\$(?:[A-Z_]{2}|[({])|%[sdif]\b")


def named_secret(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the secret assigned to the name at index `at`, or None if there is none."""
    found = _ASSIGNED.match(text, at)
    if found is None or found.lastgroup is None:
        return None
    before = text[max(0, at - CONTEXT) : at]
    separator = "=" if found["apart"] else found["separator"].strip()
    is_bare = found.lastgroup in ("bare", "special")
    is_whole_line = not is_bare and _is_whole_line(text, before, found.end(found.lastgroup))
    is_column = separator in ("", "|") and not (separator == "" and (is_whole_line or _BLANK.search(before)))
    if is_column and not (separator or len(found["separator"]) > 1 or "\t" in found["separator"]):
        return None  # prose
    if _is_no_secret(found, separator, before, is_bare=is_bare):
        return None
    start, end = found.span(found.lastgroup)
    if is_bare:
        start, end = _extend(text, before, start, end, is_whole=found.lastgroup == "bare")
    value = text[start:end].rstrip(" \t")
    end = start + len(value)
    if len(set(value)) < 4 or _is_no_value(value, separator, is_bare=is_bare):
        return None
    is_sure = not is_column and separator not in ("(", "is", "is:")
    is_word = is_bare or bool(found["apart"])
    is_plain = _is_plain(found, before, is_bare=is_bare)
    if not is_possible(found, value, is_bare=is_word, is_setting=is_word and separator == "=", is_plain=is_plain):
        return None
    if not (is_sure or is_strong(value)):
        return None
    if is_bare:
        rest = _REST.match(text, end) if found.lastgroup == "bare" else None
        return start, rest.end() if rest else end
    return start, _end_of_lines(text, found.end("separator"), start, end)


def named_after(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the secret whose name at index `at` follows it: `"value": "…", "name": "DB_PASSWORD"`."""
    name = _NAMED_AFTER.match(text, at)
    found = _VALUE_BEFORE.search(text, max(0, at - 2 * CONTEXT), at) if name else None
    if name is None or found is None or not is_possible(name, found["value"], is_bare=True, is_setting=True):
        return None
    return found.span("value")


def _is_whole_line(text: str, before: str, end: int) -> bool:
    """Return True if a line consists of a name and a quoted value: `storePassword "…"`."""
    line = LINE_START.split(before)[-1]
    return len(line) < CONTEXT and bool(_FIRST.fullmatch(line) and _QUOTED_END.match(text, end))


def _is_plain(found: re.Match[str], before: str, *, is_bare: bool) -> bool:
    """Return True if the context rules out code: the value belongs to an option, to an environment variable, or to a
    setting that begins its line.
    """
    if found["closing"]:
        return False
    separator, is_upper = found["separator"], found[0][:3].isupper()
    if separator.strip() in ("", "=") and (_OPTION if separator == "=" else _BLANK).search(before):
        return True
    if is_upper and not is_bare:
        return separator.strip() in ("=", ":")
    if separator not in ("=", ":", ": "):
        return False
    if is_upper:
        return True
    line = LINE_START.split(before)[-1]
    return len(line) < CONTEXT and bool(_UNINDENTED.fullmatch(line))


def is_possible(name: re.Match[str], value: str, *, is_bare: bool, is_setting: bool, is_plain: bool = False) -> bool:
    """Return True if the value could be a secret of the kind that its name denotes.

    `is_bare`: judge the value as if it had no quotes. `is_setting`: the value of a name in capitals may be a word.
    `is_plain`: the context rules out code.
    """
    text, at = name.string, name.start()
    before = text[max(0, at - CONTEXT) : at]
    is_env = is_setting and text[at : at + 3].isupper()
    is_chosen = bool(name["chosen"] or (name["glued"] and _PASS_OWNER.search(before[-_OWNER:])))
    if is_chosen:
        is_option = not is_bare and not name["closing"] and bool(_OPTION.search(before))
        plausible = _is_chosen(value, is_bare=is_bare, is_env=is_env, is_plain=is_plain, is_option=is_option)
    elif name["brief"] or name["glued"]:
        plausible = is_strong(value) and not _WORDY.fullmatch(value)
    else:
        plausible = _is_named_for_a_secret(text, at, before, value)
        plausible = plausible and _is_key(value, is_bare=is_bare, is_plain=is_plain)
        if text[at : at + 4].lower() == "auth":
            is_key = plausible or (is_plain and (_has_capital(value) if is_env else _is_strong_key(value)))
            plausible = is_key and not (is_bare and _AUTH_LIKE.search(value))
    return plausible and (_is_long_random(value) or not is_placeholder(value, is_chosen=is_chosen))


def _end_of_lines(text: str, opening: int, start: int, end: int) -> int:
    """Return the end of a quoted value: between three quotes, the end of its last line."""
    thrice = _THRICE.match(text, opening)
    closing = text.find(thrice[0], end, end + _MOST_OF_LINES) if thrice else -1
    if closing < 0 or '"' in text[end:closing].rstrip("\\"):
        return end
    return start + len(_BLANK_END.sub("", text[start:closing]))


def _is_no_secret(found: re.Match[str], separator: str, before: str, *, is_bare: bool) -> bool:
    """Return True if this is no assignment of a secret, whatever the value is."""
    if separator == ",":
        return not _DEFINE.search(before)
    if separator == "(":
        return not _SETTER.search(before)
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
    return is_bare and (value.startswith("@") or (separator == ":" and bool(TYPE.fullmatch(value))))


def _extend(text: str, before: str, start: int, end: int, *, is_whole: bool) -> tuple[int, int]:
    """Return the range of an unquoted secret value: up to the end of the line if a setting begins the line, otherwise
    the word that a shell would read, or a random key. If none fits, it is the given range if `is_whole`, else empty.
    """
    line = LINE_START.split(before)[-1]
    word = _WHOLE.match(text, start) if len(line) < CONTEXT and _FIRST.fullmatch(line) else None
    if word and _LINE_END.match(text, word.end()):
        value = word[0].rstrip(",;")
        if (_is_mixed(value) or _is_marked(value)) and not _CODE.match(value):
            return start, start + len(value)
    word = _SHELL_WORD.match(text, start)
    if word and text[start - 1] == "=" and _is_mixed(word[0]) and "${" not in word[0]:
        return start, word.end()
    word = _WORD.match(text, start)
    value = word[0].rstrip(".,;:!?)]|&") if word else ""
    value = value.partition("&")[0] if _QUERY.search(before) else value
    if _is_random_key(value) and not _CODE.match(value):
        return start, max(end if is_whole else start, start + len(value))
    return start, end if is_whole else start


_NAMED_AFTER = lazily(rf"{NAMES}(?<=[\"'])", re.IGNORECASE)
_VALUE_BEFORE = lazily(
    r"value\\*[\"']\s?:\s?\\*[\"'](?P<value>[^\"'\\\n]{6,200})\\*[\"'],[\s\\nrt]{0,40}\\*[\"'](?:name|key)\\*[\"']\s?:\s?"
    r"\\*[\"'][\w.-]{0,60}$",
    re.IGNORECASE,
)
_THRICE = lazily(r"(\\*[\"'])\1\1")
_BLANK_END = lazily(r"(?:\s|(?<!\\)\\+[nr])+$")
_MOST_OF_LINES = 4096
_WHOLE = lazily(r"[^\s\"'`\\<{(\[$][^\s\"'`\\]{5,199}+")


def _is_mixed(value: str) -> bool:
    return bool(_ONE_DIGIT.search(value)) and any(character.isalpha() for character in value)


def _has_capital(value: str) -> bool:
    """Return True for eight characters or more with a digit, small letters and capitals."""
    return len(value) >= 8 and _is_mixed(value) and not (value.islower() or value.isupper())


def _is_marked(value: str) -> bool:
    """Return True if a value without blanks has symbols that neither code nor a list has together."""
    kinds = set(_SYMBOLS.findall(value)) - _COMMON
    if len(kinds) < 2 or (len(kinds) < 3 and not kinds & _MARKS):
        return False
    return any(map(str.isalpha, value)) and not (_VARIABLE.search(value) or _RANGES.search(value))


def _is_strong_key(value: str) -> bool:
    """Return True if the value could be a generated key: it is strong, contains a capital, and is not a name."""
    return _has_capital(value) and is_strong(value) and not _NAMES_AND_NUMBERS.fullmatch(value)


def is_strong(value: str) -> bool:
    """Return True if the value can hardly be a word: it has eight characters or more, letters and digits, and symbols
    or quick changes between letters and digits, or small letters and capitals.
    """
    if len(value) < 8 or not _is_mixed(value) or any(map(str.isspace, value)) or _PATH.match(value):
        return False
    has_symbol = any(not character.isalnum() and character not in "-_.:/," for character in value)
    return has_symbol or _is_random(value)


def _is_random(value: str) -> bool:
    """Return True if letters and digits, or small letters and capitals, alternate more often than in names."""
    return len(_CHANGE.findall(value)) >= max(3, len(value) // 6)


def _is_random_key(value: str) -> bool:
    """Return True if a value with any symbols is random: it has digits, small letters and capitals in quick change."""
    if len(value) < 10 or len(set(value)) < 8 or any(map(str.isspace, value)) or _PATH.match(value):
        return False
    is_mixed = _is_mixed(value) and not value.islower() and not value.isupper()
    return is_mixed and len(_CHANGE.findall(value)) >= max(4, len(value) * 3 // 10)


def _is_long_random(value: str) -> bool:
    """Return True for long random values with all kinds of symbols, such as WordPress generates."""
    return (
        len(value) >= 32 and _is_mixed(value) and len(set(_SYMBOLS.findall(value))) >= 8 and not _RANGES.search(value)
    )


def is_placeholder(value: str, *, is_chosen: bool = False) -> bool:
    """Return True if the value stands for a secret: a reference, or words such as `your-key-here`. If `is_chosen`, a
    value with a digit must consist of such words and numbers, because people choose passwords such as `changeme123`.
    """
    if _REFERENCE.search(value):
        return True
    if not _PLACEHOLDER.search(value):
        return False
    rest = _FILLER.sub("", value)
    parts = _BETWEEN_PARTS.split(rest)
    if is_chosen and _ONE_DIGIT.search(rest):
        return all(part.isdecimal() or part.lower() in _STAND_INS for part in parts)
    return len(rest) < 6 or all(_PLAIN_PART.fullmatch(part) and not _is_random(part) for part in parts)


def _is_named_for_a_secret(text: str, at: int, before: str, value: str) -> bool:
    """Return True unless the name means something else: the key of a table, a cache or a map, or a token that only
    continues a list or identifies a request.
    """
    if text[at : at + 3].lower() == "ken":
        return not _PUBLIC_TOKEN.search(before[-_OWNER:])
    if text[at : at + 3].lower() != "key" or _KEY_OWNER.search(before[-_OWNER:]):
        return True
    return text[at : at + 3] == "KEY" and bool(_NAMED_KEY.search(before[-_NAME:])) and _is_random(value)


def _is_chosen(value: str, *, is_bare: bool, is_env: bool, is_plain: bool, is_option: bool) -> bool:
    """Return True if the value could be a password chosen by a person."""
    if _AWS_SECRET.fullmatch(value):
        return True
    if len(value) < 6 or _PATH.match(value):
        return False
    if any(map(str.isspace, value)):
        return is_option or _is_phrase(value)
    if is_bare and (_is_code_path(value) or (value.isidentifier() and _NAME_LIKE.search(value))):
        return is_plain and value.isidentifier() and _has_capital(value)
    value = value.rstrip(":*.!?")
    if not _WORDS.fullmatch(value):
        return value.isascii() or any(map(str.isdecimal, value)) or bool(_INSIDE.search(value))
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
    if any(map(str.isdecimal, value)) or _INSIDE.search(value):
        return True
    return len(words) >= 4 and value.replace(" ", "").islower()


def _is_code_path(value: str) -> bool:
    """Return True for `settings.token2`, and False for a token with dots."""
    return bool(_CODE_PATH.fullmatch(value)) and not _is_random(value)


def _is_key(value: str, *, is_bare: bool, is_plain: bool) -> bool:
    """Return True if the value could be a generated key: long, and with at least three digits or a digit and mixed
    case. A plain or quoted one may be short if it is random.
    """
    value = _PERCENT.sub("", value)
    if _is_strong_key(value) and (is_plain or not is_bare) and (is_plain or _is_random_key(value)):
        return True
    digits = len(_ONE_DIGIT.findall(value))
    if len(value) < (16 if is_bare else 12) or not digits:
        return False
    if not _KEY_TEXT.fullmatch(value):
        return _is_long_random(value) or (_is_random_key(value) and not _CODE.match(value))
    if _AWS_SECRET.fullmatch(value):
        return True
    if _PATH.match(value) or _DATE.match(value) or _is_code_path(value):
        return False
    if is_bare and _NAMES_AND_NUMBERS.fullmatch(value):
        return False
    return digits >= 3 or (not value.islower() and not value.isupper())
