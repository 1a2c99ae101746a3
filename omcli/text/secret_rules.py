"""Secrets without a known prefix: private keys, and passwords in URLs, headers, cookies, files and commands.

`redaction.py` finds the candidates; the rules here and in `assigned_secrets.py` judge them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from omcli.base import lazily
from omcli.text.assigned_secrets import (
    CONTEXT,
    LINE_START,
    NAMES,
    TYPE,
    is_placeholder,
    is_possible,
    is_strong,
    named_after,
    named_secret,
)

# ---- private keys

# In PEM, and in PuTTY's files, where the lines of the key are counted, and followed by a check.
_BEGIN = lazily(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d{1,3}")
_END = lazily(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]{40,64}")
_NEXT = lazily("-----BEGIN |Private-Lines: ")
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
    """Return the range of the private key whose first line has the word KEY at index `at` or, in PuTTY's files, begins
    there. Return None if there is only the first line.
    """
    if text[at] != "P":
        at = text.rfind("-----BEGIN ", max(0, at - _MOST_OF_A_LINE), at)
    begin = _BEGIN.match(text, at) if at >= 0 else None
    if begin is None:
        return None
    following = _NEXT.search(text, begin.end(), begin.end() + _MOST_OF_A_KEY)
    limit = following.start() if following else begin.end() + _MOST_OF_A_KEY
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
    match. It must have at least `distinct` different characters.
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
    r"|(?:(?i:bearer|token|digest|apikey|ssws)\s{1,4})?(?=[A-Za-z._~+/=-]*[0-9])"
    # Any other word, before something with at least three digits.
    r"|(?!AWS4-)[A-Za-z][\w-]{1,20}\s{1,4}(?=(?:[A-Za-z._~+/-]*[0-9]){3}[\w.~+/-]*={0,2}(?:[\s\"'\\]|$))(?=\S{16}))"
    r"|(?i:bearer)\s{1,4}(?=[A-Za-z._~+/=-]*[0-9])(?=\S{16}))"
    r"(?!AWS4-)(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)(?![(\[{$<])"
)
_url_password = _matching(_URL)
_webhook = _matching(_WEBHOOK, distinct=8)


def _in_url(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password in a URL, or of the part of a webhook's URL that lets anyone use it."""
    return _url_password(text, at) or _webhook(text, at)


_AZURE = r"(?<=[\w~.-]{3}[0-9])Q~(?P<secret>[\w~.-]{31,34})(?![\w~.-])"
_SIGNATURE = r"(?i:(?<=si)g(?:nature)?)=(?P<secret>(?=[A-Za-z%+/]*[0-9])[A-Za-z0-9%+/]{40,600}={0,2})"

# Minimum number of distinct characters in a generated secret.
_DISTINCT = 8
_LEAST_OF_A_COOKIE = 16
_COOKIES = lazily(
    r"(?:cookies?(?P<name>\\*[\"'`])?\]?\s?[:= ]|(?<= -)b)\s?(?(name)\\*[\"'`]|(?:\\*[\"'`])?)"
    r"(?P<pairs>(?:[\w.%-]{1,80}=[^\s;,\"'`\\]{0,4096}(?:;\s?)?|[A-Za-z]{4,10};\s?)+)",
    re.IGNORECASE | re.ASCII,
)
_COOKIE = lazily(r"(?P<name>[\w.%-]{1,80})=(?P<value>[\w.%+/=:~|-]{8,})", re.ASCII)
_MOST_OF_A_COMMAND = 2000  # as browsers copy it, with all headers
_PLAIN_COOKIES = ("expires", "max-age", "domain", "path")
_DIGITS_AND_LETTERS = lazily(r"(?=.*[0-9])(?=.*[A-Za-z])(?!\d{4}-\d\d-\d\d)")
# Names of cookies whose values let anyone in, even if they are short or words.
_SESSION = lazily(r"sess|sid$|auth|token|jwt|secret|login", re.IGNORECASE)
_LONG_WORD = lazily("[A-Za-z]{12}")


def _is_of_session(name: str, value: str) -> bool:
    """Return True if a cookie's value could identify a session."""
    is_mixed = bool(_DIGITS_AND_LETTERS.match(value)) and len(set(value)) >= _DISTINCT
    if len(value) >= _LEAST_OF_A_COOKIE and is_mixed:
        return True
    return bool(_SESSION.search(name) and (is_mixed or _LONG_WORD.match(value))) and not is_placeholder(value)


def _cookies(text: str, at: int) -> tuple[int, int] | None:
    """Return the range from the first to the last value of a cookie header that could identify a session."""
    header = _COOKIES.match(text, at)
    if header is None or (text[at] == "b" and text.rfind("curl", max(0, at - _MOST_OF_A_COMMAND), at) < 0):
        return None
    values = [
        cookie.span("value")
        for cookie in _COOKIE.finditer(text, *header.span("pairs"))
        if cookie["name"].lower() not in _PLAIN_COOKIES and _is_of_session(cookie["name"], cookie["value"])
    ]
    return (values[0][0], values[-1][1]) if values else None


# Hashes as `crypt` writes them, in /etc/shadow, for Apache and in directories. Whoever has one can guess its password.
_CRYPT = "[./+A-Za-z0-9]"
_HASH = (
    rf"(?:\$2[abxy]?\$\d\d\${_CRYPT}{{53}}"
    rf"|\$(?:apr1|[15-9]|g?y|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{{0,12}})\$(?:[./+\w=,-]{{1,64}}\$){{1,4}}"
    rf"(?:{_CRYPT}{{86}}|{_CRYPT}{{43}}|{_CRYPT}{{31}}|{_CRYPT}{{22}})"
    rf"|\{{S?SHA\d{{0,3}}\}}[A-Za-z0-9+/]{{27,120}}={{0,2}})(?![./+=A-Za-z0-9])"
)

# An argument that is a password: not a variable, an option, a placeholder, a port or an address with one.
_WORD = rf"(?!(?:{_EXAMPLE}|[\d.:/-]+)(?:[\s\"'\\]|$))[^\s\"'`\\$<>{{}}()\[\],/-][^\s\"'`\\<>]{{3,200}}"
# Between quotes, also blanks, but no options, and no variable that a shell replaces.
_PHRASE = (
    rf"(?!(?:{_EXAMPLE})[\"'\\]|[^\"'\n]*\$[A-Z_{{(][^\"'\n]*\")"
    r"[^\s\"'`\\$<>{}()\[\],;:/-](?:[^\s\"'`\\<>]| (?!-)){3,200}(?=\\*[\"'])"
)
_SECRET = rf"(?P<secret>(?(quote){_PHRASE}|(?!))|{_WORD})"
_ARGUMENT = rf"(?:\\*(?P<quote>[\"']))?{_SECRET}"
_WITHIN = r"[^\n;|&]{0,200}?\s"
_USER = r"(?:\\*[\"'])?[^\s:\"'\\$<\[-][^\s:\"'\\]{0,63}"
_USER_OF = r"(?:\\*[\"'])?[A-Za-z_][^\s:\"'\\$<>/%,@]{0,63}"
_UP_TO_HOST = rf"(?P<secret>(?!(?:{_EXAMPLE})(?:[@\s\"'\\]|$))[^\s\"'`\\$<>{{}}()\[\],/@-][^\s\"'`\\<>@]{{3,200}})"
_CURL = (
    rf"curl(?:\.exe)?\s{_WITHIN[:-2]}(?<=\s)(?:-u|--user|-U|--proxy-user)[ =]?"
    rf"(?:\\*(?P<quote>[\"']))?{_USER}:(?:\\*[\"'])?{_SECRET}"
)
_SSH_KEYGEN = rf"(?<=ssh-)keygen{_WITHIN}-N ?{_ARGUMENT}"
_REDIS = rf"(?<=redis-)cli\s{_WITHIN[:-2]}(?<=\s)-a ?{_ARGUMENT}"
_SQLPLUS = (
    r"(?:(?<=s)ql\w{2,4}|(?<=ex|im)pdp)\s(?:-\w{1,3}\s|target\s){0,3}" + rf"{_USER_OF}/(?=\S*[0-9@]){_UP_TO_HOST}"
)
_RABBITMQ = (
    rf"(?<=rabbitm)qctl{_WITHIN}(?:add_user|change_password|authenticate_user)\s{{1,4}}{_USER}\s{{1,4}}{_ARGUMENT}"
)
_SMBCLIENT = rf"(?<=[bc])client\s{_WITHIN[:-2]}(?<=\s)(?:-U|--user)[ =]?{_USER_OF}%{_ARGUMENT}"
_LFTP = rf"(?<=lft)p\s{_WITHIN[:-2]}(?<=\s)(?:-u|--user)[ =]?{_USER_OF},{_ARGUMENT}"
_HTPASSWD = (
    rf"(?<=ht)passwd(?=\s[^\n;|&]{{0,100}}?-\w{{0,4}}b)\s(?:-\w{{1,6}}\s{{1,4}}|\d\d?\s{{1,4}})+"
    rf"(?:\S{{1,100}}\s{{1,4}})??{_USER}\s{{1,4}}{_ARGUMENT}(?=\\*[\"']?\s{{0,4}}(?:$|[\n;|&>)\"'\\]))"
)
# In one line of `.netrc`, or in several.
_NETRC_BLANK = r"(?:\s|\\+[nrt]|[\d:|→]{1,6}+\t?){1,20}+"
_NETRC = (
    rf"(?<=lo)gin{_NETRC_BLANK}[^\s\"'\\$<]{{1,64}}{_NETRC_BLANK}(?:account\s\S{{1,64}}{_NETRC_BLANK})?password\s{{1,4}}"
    rf"(?P<secret>{_WORD})(?=[\s\"'\\]|$)(?=\s*(?:$|[\r\n\"'\\]|machine|default|account|macdef))"
)
_netrc = _matching(_NETRC)
_MACHINE = lazily(rf"(?:\b|(?<=\\n))machine\s{{1,4}}[^\s\"'\\]{{1,100}}{_NETRC_BLANK}lo$")
_MOST_OF_A_MACHINE = 160


def _in_entry(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password in `machine HOST login USER password PASSWORD`; the `g` is at index `at`."""
    return _netrc(text, at) if _MACHINE.search(text[max(0, at - _MOST_OF_A_MACHINE) : at]) else None


_LOGIN = (  # `client.login("user", "password")`
    r"(?<=lo)gin\(\\*[\"'][^\"'\\\n]{1,64}\\*[\"'],\s?(?:\w{1,20}=)?(?=\\*[\"'][^\"'\n]*[0-9])"
    + _ARGUMENT
    + r"(?=\\*[\"'])"
)
# In routers' settings: with a key that everyone knows.
_CISCO = r"(?i:password|secret)\s{1,4}7\s{1,4}(?P<secret>[0-9]{2}[0-9A-F]{6,})(?![0-9A-Za-z])"
# In small letters it may as well be prose: then only a value with a digit.
_IDENTIFIED = (
    r"(?:IDENTIFIED\s{1,4}(?:WITH\s{1,4}\S{1,40}\s{1,4})?BY"
    r"|identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by(?=\s{1,4}\\*'[^'\s]{0,64}[0-9]))"
    rf"\s{{1,4}}(?=\\*[\"']){_ARGUMENT}"
)
_GITHUB = rf"(?<=gh )secret set{_WITHIN}(?:-b|--body)[ =]?{_ARGUMENT}"
_LDAP = rf"(?<=lda)p[a-z]{{3,8}}\s{_WITHIN[:-2]}(?<=\s)-w ?{_ARGUMENT}"
_BASIC = (  # `auth=("user", "password")`, `HTTPBasicAuth("user", "password")`
    r"(?i:auth)=?\(\\*[\"'][^\"'\\\n]{1,64}\\*[\"'],\s?(?=\\*[\"'][^\"'\n]*[0-9])" + _ARGUMENT + r"(?=\\*[\"'])"
)
# Host, port, database, user and password in `.pgpass`, from before the port.
_PGPASS = rf"(?<=[\w*.-]):[\d*]{{1,5}}:[\w*.-]{{1,64}}:[\w.-]{{1,64}}:{_ARGUMENT}(?=[\s\"'\\]|$)"
_CHPASSWD = rf"chpasswd\s?<<(?:<\s?|-?\s?[\\\"']{{0,3}}\w{{1,20}}[\\\"']{{0,3}}?(?:\r?\n|\\+n)){_USER}:{_ARGUMENT}"
# Piped into a command that reads a password, after a user's name and a colon if it is `chpasswd`.
_ECHO = r"(?<=e)cho\s(?:-\w{1,3}\s)?"
_PIPE = r"\\*[\"']?\s?\|\s?[^|\n]{0,80}?\b"
_PIPED_PAIR = rf"{_ECHO}{_USER}:{_ARGUMENT}{_PIPE}chpasswd\b"
_PIPED = rf"{_ECHO}{_ARGUMENT}{_PIPE}(?:sudo\s(?:-\w+\s){{0,3}}-\w*S\b|password-stdin\b|passphrase-fd\b)"
_identified = _matching(_IDENTIFIED)
_MOST_OF_A_CLAUSE = 70


def _in_command(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password after `IDENTIFIED BY`, whose last word is at index `at`."""
    start = max(text.rfind(word, max(0, at - _MOST_OF_A_CLAUSE), at) for word in ("IDENTIFIED", "identified"))
    return _identified(text, start) if start >= 0 else None


_OPTION = lazily(rf"(?<= [-/])[pP](?P<apart>w?[ =]|:|){_ARGUMENT}", re.ASCII)
_COMMAND = r"(?:\b|(?<=\\n))(?:{})(?:\s[^\n;|&]*)? {}$"
# Commands that take a password after an option, by what is between its letter and the password.
_TAKES = {
    "": lazily(_COMMAND.format(r"mysql\w*|mariadb[\w-]*|7z\w?|sshpass", "-p")),
    " ": lazily(
        _COMMAND.format(r"sshpass|mongo\w*|\w+ login|psexec(?:64)?(?:\.exe)?", "-p")
        + "|"
        + _COMMAND.format(r"(?:un)?zip|sqlcmd|bcp|[io]sql|ssh-keygen", "-P")
    ),
    "w": lazily(_COMMAND.format(r"(?:plink|pscp|psftp|putty)(?:\.exe)?", "-p")),
    ":": lazily(_COMMAND.format(r"[xw]l?freerdp\w*(?:\.exe)?", "/p"), re.IGNORECASE),
}
_LINE = 200


def _secret_option(text: str, at: int) -> tuple[int, int] | None:
    """Return the range of the password after the option `-p` or `-P` of a command that takes one. The letter is at
    index `at`.
    """
    if not (found := _OPTION.match(text, at)):
        return None
    takes = _TAKES[found["apart"].replace("=", " ")[:1]]
    return found.span("secret") if takes.search(text[max(0, at - _LINE) : at + 1]) else None


# ---- columns

# In the first line of a table: its names, and what is between them.
_COLUMN_NAME = lazily(rf"{NAMES}(?=[ \t]{{0,40}}(?:[,;|\t\r\n]|\\+[nrt]))", re.IGNORECASE)
_DELIMITER = lazily(r"[,;|\t]|\\+t")
_HEAD = lazily(r"[\w ,;|\t.\\\"'→-]*")
_REST_OF_HEAD = lazily(
    r"(?P<columns>[ \t]{0,40}(?:(?:[,;|\t]|\\+t)(?:[\w ,;|\t.\"'-]|\\+[\"'t]){0,300})?)(?:\r?\n|(?:\\+r)?\\+n)"
)
_LINES = lazily(r"\r?\n|(?:\\+r)?\\+n")
_MOST_MISSES = 8  # rows without a secret


def in_column(text: str, at: int) -> list[tuple[int, int]]:
    """Return the ranges of the secrets in a column of a table (CSV or Markdown). The column's name, in the table's
    first line, is at index `at`.
    """
    name = _COLUMN_NAME.match(text, at)
    if name is None or name["brief"] or not (rest := _REST_OF_HEAD.match(text, name.end())):
        return []
    head = _LINES.split(text[max(0, at - 2 * CONTEXT) : at])[-1]
    head = head if name["closing"] else LINE_START.split(head)[-1]
    delimiters = _DELIMITER.findall(head) or _DELIMITER.findall(rest["columns"])
    is_list = not _DELIMITER.search(head) and not any(map(str.isalnum, rest["columns"]))  # one name, and a comma
    if not delimiters or is_list or not _HEAD.fullmatch(head):
        return []
    delimiter = re.escape(delimiters[-1])
    columns = head.count(delimiters[-1])
    cell = re.compile(
        rf"(?:(?:\\*\"[^\"\n]*\"|(?!{delimiter})[^\"])*+{delimiter}){{{columns}}}[ \t]{{0,40}}"
        rf"(?:\\*[\"'](?P<quoted>[^\"'\\\n]{{6,200}})\\*[\"']|(?P<bare>(?:(?!{delimiter})[^\s\"'\\]){{6,200}}))"
    )
    spans: list[tuple[int, int]] = []
    start, misses = rest.end(), 0
    while misses < _MOST_MISSES and start < len(text):
        ends = _LINES.search(text, start)
        end = ends.start() if ends else len(text)
        if not (found := cell.match(text, start, end)):
            misses += not text.find(delimiters[-1], start, end) >= 0
        elif _is_in_column(name, found[found.lastgroup or 0]):
            spans.append(found.span(found.lastgroup or 0))
            misses = 0
        else:
            misses += "[redacted" not in found[0]
        start = ends.end() if ends else len(text)
    return spans


def _is_in_column(name: re.Match[str], value: str) -> bool:
    if not is_strong(value) or TYPE.fullmatch(value):
        return False
    return is_possible(name, value, is_bare=True, is_setting=False)


# ---- the rules

_AUTHORIZED = (3, "authorization", _matching(_AUTHORIZATION, distinct=6))
_NAMED = (9, "assigned-secret", named_secret)
_NAMED_AFTER = (9, "assigned-secret", named_after)
_CISCO_7 = (6, "assigned-secret", _matching(_CISCO))


def _command(pattern: str) -> tuple[int, str, Find]:
    return 6, "command-password", _matching(pattern)


def _once(find: Find) -> Callable[[str, int], Sequence[tuple[int, int]]]:
    """Return a function that returns the result of `find` in a tuple, which is empty if the result is None."""

    def each(text: str, at: int) -> Sequence[tuple[int, int]]:
        span = find(text, at)
        return (span,) if span else ()

    return each


_SINGLE: Mapping[str, tuple[tuple[int, str, Find], ...]] = {
    "url": ((1, "url-password", _in_url),),
    "hash": ((2, "password-hash", _matching(_HASH, distinct=_DISTINCT)),),
    "pgpass": ((6, "assigned-secret", _matching(_PGPASS)),),
    "signature": (
        (2, "url-signature", _matching(_SIGNATURE, distinct=_DISTINCT)),
        (6, "assigned-secret", _matching(_LOGIN)),
        (6, "assigned-secret", _in_entry),
    ),
    "azure": (
        (8, "azure-secret", _matching(_AZURE, distinct=_DISTINCT)),
        _command(_SQLPLUS),
        _command(_RABBITMQ),
    ),
    "bearer": (_AUTHORIZED, (4, "cookie", _cookies), (6, "command-password", _in_command)),
    "authorization": (_AUTHORIZED, (6, "assigned-secret", _matching(_BASIC)), _NAMED, _NAMED_AFTER),
    "cookie": (
        (4, "cookie", _cookies),
        _command(_CURL),
        _command(_REDIS),
        _command(_SMBCLIENT),
        _command(_CHPASSWD),
        _command(_PIPED_PAIR),
        _command(_PIPED),
        _NAMED,
        _NAMED_AFTER,
    ),
    "key": ((1, "private-key", private_key), (7, "command-password", _matching(_SSH_KEYGEN)), _NAMED, _NAMED_AFTER),
    "password": (
        (1, "private-key", private_key),
        (5, "command-password", _secret_option),
        _command(_LDAP),
        _command(_SQLPLUS),
        _command(_LFTP),
        _command(_HTPASSWD),
        _CISCO_7,
        _NAMED,
        _NAMED_AFTER,
    ),
    "secret": (_CISCO_7, _command(_GITHUB), _NAMED, _NAMED_AFTER),
}
# Rank, name and function of the rules that are tried at a candidate, by the name of its pattern.
RULES: Mapping[str, Sequence[tuple[int, str, Callable[[str, int], Sequence[tuple[int, int]]]]]] = {
    name: (
        *((rank, rule, _once(find)) for rank, rule, find in rules),
        *(((9, "assigned-secret", in_column),) if _NAMED in rules else ()),
    )
    for name, rules in _SINGLE.items()
}
