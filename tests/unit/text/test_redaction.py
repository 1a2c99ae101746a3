"""No secret gets into the store or to a model, and nothing else is lost.

The secrets are invented, and put together when the tests run: a scanner of repositories finds none in this file.
"""

from __future__ import annotations

import json
import string
import sysconfig
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.text.redaction import each_secret, redact
from tests.shared import TRANSCRIPTS, needs_shared
from tests.soak import first_only
from tests.unit.text.secret_kinds import ALPHANUMERIC, BASE64, HEX, UPPER, URL_SAFE, Kind, fake, in_text, pem

PASSWORD = "hunter" + "2!x"
JWT = ".".join(("ey" + "J" + fake(33), "ey" + "J" + fake(70, URL_SAFE), fake(43, URL_SAFE)))
# What each is called here, and the secret with the name of its rule.
FAKES = {
    "RSA key": Kind("private-key", "the key:\n", pem("RSA PRIV" + "ATE KEY"), "\nends here"),
    "OpenSSH key": Kind("private-key", "", pem("OPENSSH PRIV" + "ATE KEY")),
    "PGP key": Kind("private-key", "", pem("PGP PRIV" + "ATE KEY BLOCK")),
    "cut off key": Kind("private-key", "$ head -3 id_rsa\n", "\n".join(pem("PRIV" + "ATE KEY").split("\n")[:3])),
    "Anthropic": in_text("anthropic-key", "sk-" + "ant-", "api03-" + fake(95, URL_SAFE)),
    "OpenRouter": in_text("openrouter-key", "sk-" + "or-", "v1-" + fake(64, HEX)),
    "OpenAI, old": in_text("openai-key", "sk" + "-", fake(48)),
    "OpenAI, project": in_text("openai-key", "sk-" + "proj-", fake(120, URL_SAFE)),
    "GitHub, personal": in_text("github-token", "gh" + "p_", fake(36)),
    "GitHub, server": in_text("github-token", "gh" + "s_", fake(36)),
    "GitHub, fine-grained": in_text("github-token", "github" + "_pat_", fake(82, f"{ALPHANUMERIC}_")),
    "AWS id": in_text("aws-key-id", "AK" + "IA", fake(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")),
    "AWS temporary id": in_text("aws-key-id", "AS" + "IA", fake(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")),
    "AWS secret": Kind("assigned-secret", "aws_secret_access_key = ", fake(40, BASE64)),
    "Slack bot": in_text("slack-token", "xo" + "xb-", f"{fake(11, string.digits)[:-1]}-{fake(24)}"),
    "Slack app": in_text("slack-token", "xa" + "pp-1-", fake(60)),
    "Google": in_text("google-key", "AI" + "za", fake(35, URL_SAFE)),
    "GitLab": in_text("gitlab-token", "gl" + "pat-", fake(20, URL_SAFE)),
    "GitLab, without a digit": in_text("gitlab-token", "gl" + "pat-", fake(21, string.ascii_letters)[1:]),
    "npm": in_text("npm-token", "np" + "m_", fake(36)),
    "Python index": in_text("pypi-token", "py" + "pi-Ag", fake(150, URL_SAFE)),
    "Hugging Face": in_text("huggingface-token", "h" + "f_", fake(34)),
    "Stripe": in_text("stripe-key", "sk" + "_live_", fake(24)),
    "Stripe, without a digit": in_text("stripe-key", "sk" + "_live_", fake(25, string.ascii_letters)[1:]),
    "Stripe webhook": in_text("stripe-key", "whs" + "ec_", fake(32)),
    "xAI": in_text("xai-key", "xa" + "i-", fake(80)),
    "SendGrid": Kind("sendgrid-key", "S" + "G.", f"{fake(22, URL_SAFE)}.{fake(43, URL_SAFE)}"),
    "Telegram": Kind("telegram-token", "bot 8123456789:", "A" + "A" + fake(33, URL_SAFE), " is up"),
    "JWT": Kind("jwt", "cookie: session=", JWT, "; path=/"),
    "URL": Kind("url-password", "postgres://shop:", "p4ss-" + "w0rd", "@db.internal:5432/shop"),
    "URL without user": Kind("url-password", "redis://:", fake(20), "@cache:6379/0"),
    "bearer": Kind("authorization", "curl -H 'Authorization: Bearer ", fake(40), "' https://api.example.org"),
    "basic": Kind("authorization", '"authorization": "Basic ', "bGVuYTpz" + "ZXNhbQ==", '"'),
    "bearer alone": Kind("authorization", "sends bearer ", fake(32), " with it"),
    "environment": Kind("assigned-secret", "export DB_PASSWORD=", PASSWORD, " && ./run"),
    "environment, words": Kind("assigned-secret", "SMTP_PASS=", "correct" + "horse", "\nNEXT=1"),
    "JSON": Kind("assigned-secret", '{"user": "lena", "password": "', PASSWORD, '"}'),
    "escaped JSON": Kind("assigned-secret", r'{"body":"{\"password\": \"', PASSWORD, r'\"}"}'),
    "doubly escaped JSON": Kind("assigned-secret", r"\\\"client_secret\\\":\\\"", fake(24), r"\\\","),
    "YAML": Kind("assigned-secret", "db:\n  password: ", PASSWORD, "\n  port: 5432"),
    "Python": Kind("assigned-secret", 'connect(user="lena", password=\'', PASSWORD, "')"),
    "annotated": Kind("assigned-secret", 'API_KEY: Final[str] = "', fake(32), '"'),
    "flag": Kind("assigned-secret", "shopctl login --token ", fake(32), " --quiet"),
    "query": Kind("assigned-secret", "https://api.example.org/v1?api_key=", fake(24), "&page=2"),
    "header": Kind("assigned-secret", "x-api-key: ", fake(32)),
    "AWS secret like a path": Kind("assigned-secret", 'SecretAccessKey": "', "/" + fake(39), '",'),
    "XML": Kind("assigned-secret", "<server><password>", PASSWORD, "</password></server>"),
    "TOML": Kind("assigned-secret", 'password = """\n', PASSWORD, '\n"""\nport = 1'),
    ".NET": Kind("assigned-secret", '<add key="ApiSecret" value="', PASSWORD, '"/>'),
    "setter": Kind("assigned-secret", 'pool.setPassword("', "Hx7" + "!tre9Lw", '");'),
    "told": Kind("assigned-secret", "my password is ", "Hx7" + "!tre9Lw", ", as you know"),
    "PuTTY": Kind("private-key", "", f"Private-Lines: 1\n{fake(48, BASE64)}\nPrivate-MAC: {fake(64, HEX)}"),
    "shadow": Kind("password-hash", "root:", "$6$" + fake(16) + "$" + fake(86), ":19000:0:99999:7:::"),
    "pgpass": Kind("assigned-secret", "db1:5432:shop:lena:", PASSWORD, "\n"),
    "chpasswd": Kind("command-password", "echo 'lena:", PASSWORD, "' | chpasswd"),
    "unzip": Kind("command-password", "unzip -P ", PASSWORD, " backup.zip"),
    "ldapsearch": Kind("command-password", "ldapsearch -x -w ", PASSWORD, " -b dc=example"),
    "glued": Kind("github-token", "prefix_", "gh" + "p_" + fake(36), " x"),
    "credentials": Kind("aws-key-id", "id,secret\n", f"{'AK' + 'IA'}{fake(16, UPPER)},{fake(40, BASE64)}", "\n"),
    "pass phrase": Kind("assigned-secret", '"passphrase": "', "seven-small-green-" + "apples", '"'),
}

BENIGN = (
    "commit 9f2c4b7e01d83a6655c0e1f4a7b92d38c6415e0f and 0d3b8f7c-52a4-4a0e-9c1d-7be2b1f0a6d3",
    "the task-list-component-for-users2 and disk-usage-analyzer-version-2026 packages, task_test_configuration2026",
    "def login(user: str, password: str, token: str | None = None) -> None:",
    "password = None\npassword = getpass()\npassword = self.password\nnew_password = old_password2",
    'api_key = os.environ["API_KEY"]\nsecret_key: SecretStr\nkey = os.environ.get("SECRET_KEY", "")',
    "token_count = 4096\nmax_tokens=100\nprompt_tokens: 1234567890123456\n{'input_tokens': 18234}",
    "token: ${{ secrets.DEPLOY_TOKEN }}\npassword: $PASSWORD\nPASSWORD=${DB_PASSWORD}\nsecret: {{ vault_secret }}",
    'api_key = "<your-api-key>"\napi_key: "your-api-key-goes-here-123"\nexport API_KEY=xxxxxxxxxxxxxxxx',
    'password: "********"\n"password": "[redacted:assigned-secret]"\ntoken = "..."',
    f"![chart](data:image/png;base64,iVBORw0KGgo{fake(400, BASE64)}/AAAA=)",
    "see https://example.org:8080/a@b and http://localhost:3000/?q=a:b@c and git@github.com:lena/shop.git",
    "clone https://user:password@example.org/repo.git, or postgres://USER:****@host/db",
    "if password == other:\n    return token != expected_token",
    "the password is stored in the keyring, and the token: it expires after 30 days; secret: none",
    'headers = {"Authorization": f"Bearer {token}", "X-Api-Key": api_key}',
    "curl -H 'Authorization: Bearer $TOKEN' # Bearer authentication, bearer token required",
    '<input type="password" name="password" placeholder="Your password" autocomplete="current-password">',
    '"password": "Password:", "pwd": "Kennwort*", <label for="password">Password1</label>, pwd: "C:\\\\Users\\\\lena"',
    '"password": "Passwort", "secretName": "shop-tls-2026", "token_type": "bearer", "passwordField": "input2"',
    '{"token": 12345678901234567890, "password": true, "secret": {"name": "x"}, "pwd": "/home/lena/shop2"}',
    'page = "-----BEGIN PUBLIC KEY-----"; if "-----BEGIN RSA PRIVATE KEY-----" in text: raise ValueError',
    "2026-03-04T09:15:27Z eyJ is how base64 of JSON begins; AKIA is how an id begins; SG. and hf_ as well",
)


@pytest.mark.parametrize("kind", FAKES)
def test_a_secret_is_replaced_and_the_text_around_it_kept(kind: str) -> None:
    """F46, invariant 9."""
    example = FAKES[kind]
    redacted = redact(example.text)
    assert redacted.text == example.text.replace(example.secret, f"[redacted:{example.name}]")
    assert redacted.counts == {example.name: 1}


def test_there_are_more_than_twenty_three_kinds_of_secret() -> None:
    """F46."""
    assert len(FAKES) > 23
    assert len({example.name for example in FAKES.values()}) == 22


@pytest.mark.parametrize("text", BENIGN)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    redacted = redact(text)
    assert redacted.text == text
    assert redacted.counts == {}


def test_secrets_are_counted_by_rule() -> None:
    text = "\n".join(example.text for example in FAKES.values())
    assert redact(text).counts == Counter(example.name for example in FAKES.values())


@pytest.mark.parametrize("before", ["\\n", "\\t", "\\\\n", '\\"', "\n", "=", ":", "(", "'", '"', "密", "\\u0020"])
def test_a_key_is_found_after_every_kind_of_boundary(before: str) -> None:
    key = "sk-" + "ant-" + fake(95, URL_SAFE)
    assert redact(f"{before}{key}").text == f"{before}[redacted:anthropic-key]"


def test_a_secret_known_by_two_rules_is_named_by_the_surer_one() -> None:
    key = "gh" + "p_" + fake(36)
    assert redact(f'{{"github_token": "{key}"}}').text == '{"github_token": "[redacted:github-token]"}'
    assert redact(f"https://x-access-token:{key}@github.com/a/b").counts == {"github-token": 1}


def test_a_key_in_a_list_of_lines_is_taken_out_whole() -> None:
    text = json.dumps({"key": pem("PRIV" + "ATE KEY").split("\n"), "next": 1})
    assert json.loads(redact(text).text) == {"key": ["[redacted:private-key]"], "next": 1}


@pytest.mark.parametrize(
    ("text", "left", "blocks"),
    [
        ("a<private>b</private>c", "ac", 1),
        ("a<private>b", "a", 1),
        ("a<private>b<private>c</private>d</private>e<private>f</private>g", "aeg", 2),
        ("a</private>b", "a</private>b", 0),
        ("<pri<private>a</private>vate>b", "", 2),
        ('{"a":"x<private>b","c":["d</private>"]}', '{"a":"x","c":["d</private>"]}', 1),
        (r'{"a":"x<private>\"b\\","c":1}', '{"a":"x","c":1}', 1),
        (r'{"a":"x<private>b<\/private>c"}', '{"a":"xc"}', 1),
        ('{"a":"x<private>b"', '{"a":"x', 1),
    ],
)
def test_a_private_block_is_left_out(text: str, left: str, blocks: int) -> None:
    redacted = redact(text)
    assert redacted.text == left
    assert redacted.counts.get("private", 0) == blocks


_PIECES = st.sampled_from(
    [
        *(example.text for example in FAKES.values()),
        *(example.secret for example in FAKES.values()),
        *("<private>", "</private>", "<pri", "vate>", "\\", '"', "\\n", "\n", "'", " ", "=", ": ", "@", "://u:", "-"),
        *("password", "token", "API_KEY=", "Authorization: ", "sk-", "[redacted:jwt]", "é", "漢", "🎉", "\ud800", "İ"),
    ]
)
_TEXTS = st.lists(_PIECES | st.text(max_size=8), max_size=8).map("".join)
_VALUES = st.recursive(
    _TEXTS | st.integers() | st.booleans() | st.none(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(_TEXTS | st.just("password"), values, max_size=3),
    max_leaves=6,
)


@given(_TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text).text
    again = redact(once)
    assert again.text == once
    assert again.counts == {}


@given(_VALUES, st.booleans(), st.sampled_from([None, 2]), st.integers(min_value=1, max_value=3))
def test_redacted_json_is_json(value: object, ensure_ascii: bool, indent: int | None, depth: int) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
    for _ in range(depth - 1):
        text = json.dumps({"body": text}, ensure_ascii=ensure_ascii)
    redacted = redact(text).text
    json.loads(redacted)


@given(st.sampled_from(sorted(FAKES)), st.text(alphabet=" .,;\n\"'\\(){}", max_size=5), st.integers(0, 2))
def test_a_secret_in_json_is_found_however_deep(kind: str, around: str, depth: int) -> None:
    example = FAKES[kind]
    text = f"{around} {example.text} {around}"
    for _ in range(depth):
        text = json.dumps({"body": text})
    assert json.dumps(example.secret)[1:-1] not in redact(text).text


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "=",
            "sk-",
            "eyJ",
            "eyJaaaaaaaaaaaaaaaaaaaaa.",
            "://",
            "://a:",
            "token=",
            "token:",
            "API_KEY:7",
            "key : ",
        ),
        *("password='", "password=xxxx", "password=a1b2", 'secret\\"', "pwd:", "--token ", "A1-_", "\\n", " 7Aa\\"),
        *(
            "curl -u ",
            "mysql -p",
            "cookie: a1=b2; ",
            "ssh-keygen ",
            "\x1b[1m",
            "pass | ",
            "my_sk-",
            "echo a1b2c3 | sudo -S ",
            "echo a:b1b2b3b4|chpasswd ",
            ":5432:a1:a1:",
            "$6$a1b2c3d4$",
            "Private-Lines: 1\n",
            "ldapadd -w a1 ",
            "IDENTIFIED BY '",
            '"key":"a1b2"',
            "k",
            " -b a=",
            '"name":"password","value":"a',
            'password"}',
            "a,password\n",
            "a,password\nb,Hx7!tre9Lw\n",
            'variable "token" {',
            "htpasswd -b a b ",
            "sqlplus a/",
            "rabbitmqctl add_user ",
            'login("a","b1',
            "machine a login b password ",
            "login 1111",
            "machine 1:1|login 1:1|",
            "Cookie: auth=a; ",
            "Authorization: Key-",
            "sshpass -p 'a b",
            "curl -u 'a:b c",
            "gh secret set a -b ",
            "PASSWORD=a@b,c",
            "dbpass=passwordpass",
            "API_KEY=aA",
            "auth: A1b2C3d4-",
            "│ password ",
            "api key 1",
            'storePassword "a1b2c3"',
            "--password 'a b ",
        ),
        *("<private>", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----AAAA", "Authorization: Bearer "),
    ],
)
def test_much_of_anything_is_redacted_in_a_moment(piece: str) -> None:
    text = piece * (40_000 // len(piece))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 2


@needs_shared
@pytest.mark.parametrize("every", first_only([3, 1]))
def test_few_things_in_real_transcripts_are_taken_for_secrets(every: int) -> None:
    """Read by eye: passwords in examples, synthetic page tokens; no key was ever in these files."""
    counts: Counter[str] = Counter()
    for path in sorted(TRANSCRIPTS.rglob("*.json*"))[::every]:
        counts.update(redact(path.read_text(encoding="utf-8", errors="replace")).counts)
    assert set(counts) <= {"assigned-secret"}
    assert sum(counts.values()) < 40


def test_the_standard_library_holds_no_keys() -> None:
    files = list(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    counts: Counter[str] = Counter()
    for path in files:
        counts.update(redact(path.read_text(encoding="utf-8", errors="replace")).counts)
    assert len(files) > 100
    assert sum(counts.values()) <= 2, f"found {dict(counts)}"
    assert set(counts) <= {"assigned-secret", "url-password"}


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: abcd1234password=Zx81!Kq04Lm72#tail",
        "Authorization: abcd1234password=Zx81!Kq04,rest",
    ],
)
def test_secrets_that_overlap_are_taken_out_to_the_end_of_the_last(text: str) -> None:
    """F46: two rules find parts of one text; nothing of either part is left behind."""
    found = sorted(each_secret(text), key=lambda secret: secret.start)
    assert len(found) > 1
    assert found[1].start < found[0].end
    redacted = redact(text).text
    for secret in found:
        for at in range(secret.start, secret.end - 3):
            assert text[at : at + 4] not in redacted
