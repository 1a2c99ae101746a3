"""Redaction: removing secrets and <private> blocks from text before it is stored or sent.

Secrets are keys of a known form (the table `FORMATS`), and what the rules in `secret_rules.py` find, such as values
assigned to a name like `password`, private keys, cookies, and passwords in URLs and commands. For speed, patterns are
tried only at candidates found by a fast search. Keys of a known form are tried at the start of a long run of letters,
digits, `-` and `_`. Colour codes are skipped.

No match ends inside an escape sequence or takes only one of a JSON string's quotes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any

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


def each_secret(text: str) -> list[Secret]:
    """Return every secret in text, in no particular order. Secrets may overlap."""
    if "\x1b" in text or "u001b[" in text:
        return _under_colour(text)
    return _each_in(text)


_COLOUR = lazily(r"(?:\x1b|\\+u001b)\[[0-9;:]{0,20}[mK]", re.IGNORECASE)


def _under_colour(text: str) -> list[Secret]:
    """Find the secrets in a text without its colour codes. Return their ranges in the text with the colour codes."""
    parts: list[str] = []
    lengths, shifts = [0], [0]
    at = length = 0
    for code in _COLOUR.finditer(text):
        parts.append(text[at : code.start()])
        length += code.start() - at
        at = code.end()
        lengths.append(length)
        shifts.append(at - length)
    parts.append(text[at:])
    secrets: list[Secret] = []
    for secret in _each_in("".join(parts)):
        start, last = (place + shifts[bisect_right(lengths, place) - 1] for place in (secret.start, secret.end - 1))
        secrets.append(Secret(start, last + 1, secret.rank, secret.rule))
    return secrets


# ---- the search
#
# A candidate is a place where a secret may be. It is found by a pattern that begins with one letter or a fixed string,
# which Python searches for fastest, and that checks as much of the place as it cheaply can: a pass takes less than a
# millisecond per megabyte, and leaves few candidates to the rules.

# The end of a name: digits, a closing quote, a bracket; then `=`, `:`, `>` or `|` before something that may be a value,
# a comma or a bracket with a quote, `value` with no other words, `{` and `default`, the end of an object, or the
# line of a table's head, or a blank, or ` is `, with a value that is not just words. A wide colon is a `?` here.
_NAME_END = (
    rb"[0-9]{0,2}(?:\\*[\"'`])?\]?"
    rb"(?:[ \t]{0,40}(?:=(?![=~])|[:>|])(?![ \t]{0,4}[$<{(\[])|[ \t]{0,4}\?|(?:,[ \t]{0,20}|\()\\*[\"']"
    rb"|[\s,\\nrt\"'0-9?|+-]{1,60}(?:\w{1,20}\\*[\"'][^\n{}]{3,80})?(?:parameter)?value\b"
    rb"|</(?:name|key)>|[ \t]{1,4}\{[^{}]{1,300}?\bdefault\s|(?<=[\"'])[\s\\nrt]{0,40}\}"
    rb"|(?:(?:[,;|\t]|\\+t)[\w ,;|\t.\\\"'-]{0,200})?[ \t]{0,4}(?:\r?\n|\\+n)[^\n,;|\t]{0,80}?(?:[,;|\t]|\\+t)"
    rb"|[ \t]{1,40}(?:is:?[ \t])?(?!-)[^\s0-9]{0,64}[0-9]|[ \t]{1,4}\\*[\"'](?![\s\"'$<{\\]))"
)
# Candidates by the name of the rules that are tried at each (`secret_rules.RULES`).
_CANDIDATES = tuple(
    (name, lazily(pattern))
    for name, pattern in (
        ("url", rb"://[^\s\"']{0,100}(?:[:@]|hook)"),
        (
            "signature",
            rb"g(?:(?<=sig)(?:nature)?=[0-9a-z%+/]{40}|in(?<=login)(?:\(\\*[\"']|[\s\\][^\"'({]{2,200}?password\s))",
        ),
        ("azure", rb"q(?:~[\w~.-]{31}|l(?:plus|ldr|cl)\s|ctl\s)"),
        ("bearer", rb"b(?:earer\s|y\s{1,4}\\*[\"']|(?<= -b) ?\\*[\"']?[\w.%-]{1,80}=)"),
        ("authorization", rb"auth(?:orization|=?\(\\*[\"'][^\"'\n]{1,64}[\"'],|" + _NAME_END + rb")"),
        (
            "cookie",
            (
                rb"c(?:ookies?\\*[\"'`]?\]?\s?[:= ]|url(?:\.exe)?\s|li(?:\s(?<=redis-cli.)|ent\s(?<=[bc]client.))"
                rb"|hpasswd\s?<|ho\s(?<=echo.)[^\n|]{1,250}\||ontrase(?:.|\\+u00f1)a)"
            ),
        ),
        (
            "key",
            rb"k(?:eygen\s|ey(?: block)?-----|(?:ey(?:(?<=[a-z_-]key)|(?<=[is] key)(?=.{1,9}[0-9]))(?:[_-]data)?"
            rb"|en(?:(?<=token)|nwort))" + _NAME_END + rb")",
        ),
        (
            "password",
            rb"p(?:(?<= -p)|:(?<= /p.)|\s(?<=lftp.)|asswd\s(?<=htpasswd.)|dp\s(?<=[xm]pdp.)|rivate-lines: [0-9]"
            rb"|[acdmpsw](?<=ldap.)[a-z]{2,7}\s|(?:ass(?:word|wd|phrase|wort|code|e)?|wd?|sk)" + _NAME_END + rb")",
        ),
        ("hash", rb"\$(?:2[abxy]?|apr1|[15-9]|g?y|argon2id?|argon2d|scrypt|pbkdf2[\w-]{0,12})\$[./+\w=,$-]{20}"),
        ("hash", rb"\{ss?ha[0-9]{0,3}\}[a-z0-9+/]{27}"),
        ("pgpass", rb":(?:543[0-9]|6432|6543|\*):[\w*.-]{1,64}:[\w.-]{1,64}:"),
        ("secret", rb"secret(?: set\s|(?:[_-]?(?:access[_-]?)?key(?:[_-]base)?|[_-]?token)?" + _NAME_END + rb")"),
    )
)
# Names that the patterns cannot see.
_FOREIGN_NAMES = ("пароль", "Пароль", "密码", "密碼", "パスワード", "비밀번호")


def _each_in(text: str) -> list[Secret]:
    text = text if text.isascii() else text.replace("│", "|").replace("┃", "|").replace("║", "|")
    # One byte per character, so that byte indexes are also indexes into the text.
    flat = text.encode("latin-1", "replace")
    found = _keys(text, flat.translate(_SHAPE))
    lowered = flat.lower()
    for name, pattern in _CANDIDATES:
        if pattern.search(lowered):
            found += _at_each(pattern.finditer(lowered), name, text)
    if not text.isascii() and b"??" in flat:
        for name in _FOREIGN_NAMES:
            if name in text:
                found += _at_each(re.finditer(name, text), "password", text)
    return found


def _at_each(candidates: Iterable[re.Match[Any]], name: str, text: str) -> list[Secret]:
    """Return the secrets at candidates, by the rules with this name. Candidates within a secret are skipped."""
    from omcli.text.secret_rules import RULES  # noqa: PLC0415 - not needed for most messages

    found: list[Secret] = []
    end = 0
    for candidate in candidates:
        if (at := candidate.start()) < end:
            continue
        for rank, rule, find in RULES[name]:
            for span in find(text, at):
                found.append(Secret(*span, rank, rule))
                end = span[1]
    return found


# ---- keys of a known form

_KEY_LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"
_SHAPE = bytes(ord("k") if byte in _KEY_LETTERS else ord(" ") for byte in range(256))
# Minimum length of the first part of a key, up to the first character that is none of `_KEY_LETTERS`.
_LONG_RUN = b"k" * 17
# Number of characters after a backslash that belong to the escape sequence.
_ESCAPED = {"n": 1, "r": 1, "t": 1, "u": 5}


def _keys(text: str, shape: bytes) -> list[Secret]:
    """Return secrets with a known prefix. `shape` has a `k` in place of every character that a key may contain."""
    keys: list[Secret] = []
    at = shape.find(_LONG_RUN)
    while at >= 0:
        found, before = None, text[at - 1 : at]
        if text[at : at + 3] in _HEADS or before in _OUTSIDE:
            found = _key_at(text, at)
        if not found and (before in _ESCAPING or text[at] == "-"):
            # After an escape sequence, such as a line break in JSON or `%3D`, or in a line removed by a diff.
            found = _key_at(text, at + (_ESCAPED.get(text[at], 0) if before == "\\" else 2 if before == "%" else 1))
        run_end = shape.find(b" ", at + len(_LONG_RUN))
        run_end = run_end if run_end >= 0 else len(shape)
        if not found and run_end - at >= _LEAST_GLUED:
            for place in islice(_GLUED.finditer(text, at, run_end), _MOST_GLUED):
                found = _key_at(text, place.start() + 1)
                if found and _ONE_DIGIT.search(text, *found[1:]):
                    break
                found = None
        if found:
            rule, start, end = found
            keys.append(Secret(start, end, 0, rule))
        at = shape.find(_LONG_RUN, max(run_end, found[2] if found else 0))
    return keys


_DIGIT = r"(?=[A-Za-z_-]*[0-9])"
# One in thirty short random keys has no digit.
_MIXED = r"(?=[a-z_-]*[0-9A-Z])"
_CAPITAL = r"(?=[a-z0-9_-]*[A-Z])"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_LETTERS = "[A-Za-z0-9]"
_HEX = "[a-f0-9]"
_URL = r"[\w-]"
_B64 = "[A-Za-z0-9+/]"

# Name of the rule, one or more prefixes, and what follows the prefix. If a prefix has characters other than
# letters, digits, `-` and `_`, its part up to the last of them is not redacted.
FORMATS: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", rf"{_DIGIT}{_URL}{{16,}}"),
    ("openrouter-key", "sk-or-", rf"{_DIGIT}{_URL}{{16,}}"),
    ("langfuse-key", "sk-lf-", _UUID),
    ("openai-key", "sk-", rf"{_DIGIT}(?:(?:proj|svcacct|admin|None)-{_URL}{{16,}}|{_LETTERS}{{20,}})"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_LETTERS}{{30,}}"),
    ("github-token", "github_pat_", r"\w{30,}"),
    # In a file with credentials, the secret follows the id.
    ("aws-key-id", "AKIA ASIA ABIA ACCA", rf"[A-Z0-9]{{16}}(?:[,;:\t] ?(?=[A-Za-z/+]*[0-9]){_B64}{{40}})?"),
    ("aws-key", "ABSK", rf"{_DIGIT}{_B64}{{109,}}={{0,2}}"),
    ("aws-key", "bedrock-api-key-", rf"{_B64}{{30,}}={{0,2}}"),
    ("slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", rf"{_URL}{{10,}}"),
    ("slack-token", "xoxe.", rf"xox[abp]-{_URL}{{10,}}"),
    ("google-key", "AIza", rf"{_URL}{{35}}"),
    ("google-token", "ya29.", rf"{_URL}{{20,}}(?:\.{_URL}+)*"),
    ("google-token", "1//0", rf"{_DIGIT}{_URL}{{40,}}"),
    ("google-secret", "GOCSPX-", rf"{_URL}{{28}}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- gloas- glwt-",
        rf"{_MIXED}{_URL}{{20,}}(?:\.[\w.]{{8,}})?",
    ),
    ("gitlab-token", "GR1348941", rf"{_URL}{{20}}"),
    ("npm-token", "npm_", rf"{_LETTERS}{{30,}}"),
    ("pypi-token", "pypi-Ag", rf"{_URL}{{40,}}"),
    ("rubygems-key", "rubygems_", rf"{_HEX}{{48}}"),
    ("crates-token", "cio", rf"(?=[A-Za-z]*[0-9]){_CAPITAL}{_LETTERS}{{32}}"),
    ("clojars-token", "CLOJARS_", "[a-f0-9]{60}"),
    ("nuget-key", "oy2", "(?=[a-z]*[0-9])[a-z0-9]{43}"),
    ("huggingface-token", "hf_ api_org_", rf"{_LETTERS}{{30,}}"),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", rf"{_MIXED}{_LETTERS}{{16,}}"),
    ("stripe-key", "whsec_", rf"{_MIXED}{_B64}{{16,}}={{0,2}}"),
    ("elevenlabs-key", "sk_", rf"{_HEX}{{48}}"),
    ("xai-key", "xai-", rf"{_LETTERS}{{40,}}"),
    ("groq-key", "gsk_", rf"{_LETTERS}{{40,}}"),
    ("replicate-token", "r8_", rf"{_MIXED}{_LETTERS}{{37}}"),
    ("perplexity-key", "pplx-", rf"{_LETTERS}{{40,}}"),
    ("fireworks-key", "fw_", rf"{_MIXED}{_LETTERS}{{22,}}"),
    ("together-key", "tgp_v1_", rf"{_URL}{{40,}}"),
    ("cerebras-key", "csk-", rf"{_LETTERS}{{40,}}"),
    ("nvidia-key", "nvapi-", rf"{_URL}{{40,}}"),
    ("tavily-key", "tvly-", rf"{_MIXED}(?:dev-|prod-)?{_LETTERS}{{20,}}"),
    ("firecrawl-key", "fc-", rf"{_HEX}{{32}}"),
    ("jina-key", "jina_", rf"{_URL}{{50,}}"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),
    ("wandb-key", "wandb_v1_", rf"{_URL}{{40,}}"),
    ("sendgrid-key", "SG.", rf"{_URL}{{20,}}\.{_URL}{{16,}}"),
    ("mailgun-key", "key-", rf"{_HEX}{{32}}"),
    ("brevo-key", "xkeysib- xsmtpsib-", rf"{_HEX}{{64}}-{_LETTERS}{{16}}"),
    ("resend-key", "re_", rf"{_MIXED}{_LETTERS}{{8}}_{_LETTERS}{{20,}}"),
    ("telegram-token", ":AA", rf"(?<=[0-9]{{8}}:AA){_URL}{{32,34}}(?![\w-])"),
    ("discord-token", "MT Mj Mz ND NT Nj Nz OD OT", rf"{_URL}{{22,26}}\.{_URL}{{6}}\.{_URL}{{27,38}}"),
    ("vault-token", "hvs. hvb. hvr.", rf"{_URL}{{20,}}"),
    ("terraform-token", "atlasv1.", rf"{_URL}{{60,}}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{64}}"),
    ("docker-token", "dckr_pat_ dckr_oat_", rf"{_URL}{{20,}}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[a-fA-F0-9]{32}"),
    ("databricks-token", "dapi", rf"{_HEX}{{32}}(?:-[0-9])?"),
    ("linear-key", "lin_api_ lin_oauth_", rf"{_LETTERS}{{32,}}"),
    ("age-key", "AGE-SECRET-KEY-1", "[A-Z0-9]{58}"),
    ("1password-token", "ops_eyJ", rf"{_B64}{{100,}}={{0,3}}"),
    ("1password-key", "A3-", "[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("adobe-secret", "p8e-", rf"{_LETTERS}{{32}}"),
    ("airtable-token", "pat", rf"{_LETTERS}{{14}}\.{_HEX}{{64}}"),
    ("alibaba-key-id", "LTAI", rf"{_CAPITAL}(?=[A-Z]*[0-9a-z]){_LETTERS}{{20}}"),
    ("artifactory-key", "AKCp", rf"{_LETTERS}{{60,}}"),
    ("artifactory-token", "cmVmd", rf"{_LETTERS}{{59}}"),
    ("atlassian-token", "ATATT3 ATCTT3", rf"{_URL}{{60,}}(?:=[A-F0-9]{{8}})?"),
    ("bitbucket-token", "ATBB", rf"{_MIXED}{_LETTERS}{{32}}"),
    ("buildkite-token", "bkua_", rf"{_HEX}{{40}}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", r"\w{20,}"),
    ("clickhouse-key", "4b1d", rf"{_CAPITAL}{_LETTERS}{{38}}"),
    ("cloudflare-key", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{146}"),
    ("contentful-token", "CFPAT-", rf"{_URL}{{40,}}"),
    ("doppler-token", "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", rf"(?:[\w-]{{2,35}}\.)?{_LETTERS}{{40,44}}"),
    ("duffel-token", "duffel_test_ duffel_live_", rf"{_URL}{{40,}}"),
    ("dynatrace-token", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("easypost-key", "EZAK EZTK", rf"{_LETTERS}{{54}}"),
    ("facebook-token", "EAA", rf"(?=[A-Za-z]*[0-9]){_LETTERS}{{80,}}"),
    ("figma-token", "figd_", rf"{_URL}{{36,}}"),
    ("flutterwave-key", "FLWSECK-", rf"{_LETTERS}{{32}}-X"),
    ("flutterwave-key", "FLWSECK_TEST-", rf"{_LETTERS}{{12,32}}(?:-X)?"),
    ("fly-token", "fo1_", rf"{_URL}{{43}}"),
    ("fly-token", "fm1r_ fm1a_ fm2_", rf"{_B64}{{100,}}={{0,3}}"),
    ("frameio-token", "fio-u-", rf"{_URL}{{60,}}"),
    ("grafana-token", "glc_", rf"{_B64}{{32,}}={{0,3}}"),
    ("grafana-token", "glsa_", rf"{_LETTERS}{{32}}_[A-Fa-f0-9]{{8}}"),
    ("grafana-key", "eyJrIjoi", rf"{_LETTERS}{{60,}}={{0,3}}"),
    ("harness-key", "pat. sat.", rf"{_URL}{{22}}\.{_LETTERS}{{24}}\.{_LETTERS}{{20}}"),
    ("heroku-key", "HRKU-", rf"{_MIXED}{_URL}{{36,}}"),
    ("honeycomb-key", "hcaik_ hcxik_ hcamk_", "[a-z0-9]{58}"),
    ("hubspot-token", "pat-na1- pat-eu1-", _UUID),
    ("infracost-key", "ico-", rf"{_MIXED}{_LETTERS}{{32}}"),
    ("netlify-token", "nfp_", rf"{_LETTERS}{{36,}}"),
    ("neon-key", "napi_", "[a-z0-9]{60,}"),
    ("newrelic-key", "NRAK-", "[A-Z0-9]{27}"),
    ("newrelic-key", "NRII- NRIQ-", rf"{_URL}{{32}}"),
    ("notion-token", "ntn_", rf"[0-9]{{11}}{_LETTERS}{{35}}"),
    ("notion-token", "secret_", rf"{_DIGIT}{_CAPITAL}{_LETTERS}{{43}}"),
    ("octopus-key", "API-", "(?=[A-Z]*[0-9])[A-Z0-9]{25,32}"),
    ("openshift-token", "sha256~", rf"{_URL}{{43}}"),
    ("plaid-token", "access-sandbox- access-development- access-production-", _UUID),
    ("pinecone-key", "pcsk_", rf"{_LETTERS}{{4,8}}_{_LETTERS}{{40,}}"),
    ("planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w=.-]{32,}"),
    ("postman-key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("posthog-key", "phx_", rf"{_LETTERS}{{40,}}"),
    ("prefect-token", "pnu_", rf"{_LETTERS}{{36}}"),
    ("pulumi-token", "pul-", rf"{_HEX}{{40}}"),
    ("readme-token", "rdme_", "[a-z0-9]{70}"),
    ("render-key", "rnd_", rf"{_MIXED}{_LETTERS}{{28,}}"),
    ("scalingo-token", "tk-us-", rf"{_URL}{{48}}"),
    ("sentry-token", "sntrys_", rf"eyJ{_B64}{{40,}}={{0,2}}_{_B64}{{43}}"),
    ("sentry-token", "sntryu_", rf"{_HEX}{{64}}"),
    ("shippo-token", "shippo_live_ shippo_test_", "[a-fA-F0-9]{40}"),
    ("sonar-token", "squ_ sqp_ sqa_", rf"{_HEX}{{40}}"),
    ("sourcegraph-token", "sgp_", "(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    ("square-token", "EAAA sq0atp- sq0csp-", rf"{_DIGIT}{_CAPITAL}{_URL}{{22,60}}"),
    ("supabase-key", "sbp_", rf"{_HEX}{{40}}"),
    ("supabase-key", "sb_secret_", rf"{_URL}{{30,}}"),
    ("tailscale-key", "tskey-auth- tskey-api- tskey-client- tskey-scim-", rf"{_LETTERS}{{8,}}-{_LETTERS}{{20,}}"),
    ("twilio-key", "SK", rf"{_HEX}{{32}}"),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAA", r"\w{1,80}%[\w%]{20,}"),
    ("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rf"{_LETTERS}{{40,}}"),
    ("yandex-key", "AQVN", rf"{_URL}{{35,38}}"),
    ("jwt", "eyJ", rf"{_URL}{{10,}}\.{_URL}{{10,}}(?:\.{_URL}*){{0,3}}"),
    ("jwt", "ZXlK", rf"{_B64}{{60,}}={{0,2}}"),
)


def _key_at(text: str, at: int) -> tuple[str, int, int] | None:
    """Return rule, start and end of the key whose prefix ends or begins at the start of a run, or None."""
    index = _formats()
    head = text[at : at + 3]
    formats = index.get(head) or index.get(head[:2])  # a long prefix is found by its first three characters
    if formats is None:
        if text[at - 1 : at] not in _OUTSIDE:
            return None
        formats = index.get((text[max(0, at - 2) : at],))
    if formats is not None and (found := _one_of(formats).match(text, at)) and len(set(found[0])) >= _DISTINCT:
        return formats[int((found.lastgroup or "_0")[1:])][0], found.start(), found.end()
    return None


# Keys after a word and `_` or `-`: minimum length of the run, and maximum number of places in it that are tried.
_LEAST_GLUED, _MOST_GLUED = 22, 4
_PREFIXES = tuple(prefix for _, prefixes, _ in FORMATS for prefix in prefixes.split())
# These are words as well, or as short as parts of names.
_NEVER_GLUED = ("key-", "API-", "re_", "fc-", "fw_", "sk_", "secret_")
_GLUED = lazily(
    "[_-](?:A[KS]IA|"
    + "|".join(each for each in _PREFIXES if each[-1] in "_-" and "." not in each and each not in _NEVER_GLUED)
    + ")"
)
_ONE_DIGIT = lazily("[0-9]")
# Characters before a run in the middle of a prefix or after an escape sequence, and the first three characters of all
# other runs with a key.
_OUTSIDE = frozenset("./~")
_ESCAPING = frozenset("\\%")
_HEADS = frozenset(
    head + third
    for head in (prefix.rpartition(":")[2][:3] for prefix in _PREFIXES)
    for third in (_KEY_LETTERS.decode() if len(head) == 2 else ("",))
)
# Minimum number of distinct characters in a key.
_DISTINCT = 8
_KEPT = lazily(r"(?:.*[^\w-])?", re.DOTALL)
_Formats = tuple[tuple[str, str], ...]
# By the first two or three characters of a run, or, in a tuple, by the two characters before it.
_Index = dict[str | tuple[str], _Formats]


@cache
def _formats() -> _Index:
    index: _Index = {}
    for rule, prefixes, shape in FORMATS:
        for prefix in prefixes.split():
            kept = _KEPT.match(prefix)[0]  # type: ignore[index]  # matches anything
            begins = prefix[len(kept) :]
            head = begins[:3] if len(begins) > 1 else (kept[-2:],)
            before = f"(?<={re.escape(kept)})" if kept else ""
            index[head] = (*index.get(head, ()), (rule, before + re.escape(begins) + shape))
    for head, formats in list(index.items()):
        if len(head) == 3 and head[:2] in index:
            index[head] = (*formats, *index[head[:2]])
    return index


@cache
def _one_of(formats: _Formats) -> re.Pattern[str]:
    """Return a pattern that matches any of the formats, each in a group named after its position."""
    alternatives = "|".join(f"(?P<_{at}>{pattern})" for at, (_, pattern) in enumerate(formats))
    return lazily(rf"(?:{alternatives})(?![A-Za-z0-9])", re.ASCII)
