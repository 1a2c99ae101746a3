"""Texts with and without secrets, by which redaction is measured.

The secrets are invented, and put together when the tests run: a scanner of repositories finds none in this file.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

ALPHANUMERIC = string.ascii_letters + string.digits
URL_SAFE = f"{ALPHANUMERIC}-_"
BASE64 = f"{ALPHANUMERIC}+/"
HEX = "0123456789abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def fake(length: int, alphabet: str = ALPHANUMERIC) -> str:
    """A string that looks random and is the same every time; with a digit at its beginning and a letter at its end."""
    choose = random.Random(f"{length} {alphabet}").choice
    last = "q" if "q" in alphabet and "Q" not in alphabet else "Q" if "Q" in alphabet else "a"
    return "7" + "".join(choose(alphabet) for _ in range(length - 2)) + last


def pem(kind: str) -> str:
    """A private key: its first line, five lines of base64, its last line."""
    lines = [fake(64, BASE64)[n:] + fake(64, BASE64)[:n] for n in range(5)]
    return "\n".join((f"-----{'BEGIN'} {kind}-----", *lines, f"-----{'END'} {kind}-----"))


@dataclass(frozen=True)
class Kind:
    """A text with a secret in it."""

    name: str
    before: str
    secret: str
    after: str = ""

    @property
    def text(self) -> str:
        """The whole text."""
        return self.before + self.secret + self.after


def _prefixed(lines: str, prefix: str) -> str:
    return "\n".join(prefix.format(n) + line for n, line in enumerate(lines.split("\n"), start=1))


def in_text(name: str, prefix: str, rest: str) -> Kind:
    return Kind(name, "use ", prefix + rest, ", please")


W = "hunter" + "2!x"
S = "Zx81" + "!Kq04" + "Lm72"
RSA = pem("RSA PRIV" + "ATE KEY")

KINDS = (
    # assignments
    Kind("dotted token", "VAULT_TOKEN=", "abc." + fake(24), "\n"),
    Kind("dotted token, two dots", "export SERVICE_TOKEN=", f"{fake(12)}.{fake(8)}.{fake(20)}"),
    Kind("dollar in the middle", "DB_PASSWORD=", "pa$$" + "w0rd17"),
    Kind("parenthesis in the middle", "DB_PASSWORD=", "k9(Wq" + "2vL8x"),
    Kind("ampersand", "MYSQL_PWD=", "ab7&" + "cd9&ef1x"),
    Kind("comma", "password: ", "Rt7,wq" + "9,Lm2x", "\n"),
    Kind("semicolon", "ADMIN_PASSWORD=", "Rt7;wq" + "9;Lm2x", "\nPORT=1"),
    Kind("pipe", "SMTP_PASSWORD=", "Rt7|wq" + "9|Lm2x", "\n"),
    Kind("quoted with spaces", 'password = "', "my dog Rex" + " 42!", '"'),
    Kind("passphrase of words", 'passphrase: "', "correct horse" + " battery staple", '"'),
    Kind("with the word example", "DB_PASSWORD=", "myexample" + "-Pw9x!k2"),
    Kind("with the word your", "API_TOKEN=", "9kYour" + fake(22)),
    Kind("with xxxx", 'api_key = "', "a8xxxx" + fake(24), '"'),
    Kind("upper-case KEY", "SENTRY_KEY=", fake(32, HEX)),
    Kind("app key", "DATADOG_APP_KEY: ", fake(40, HEX)),
    Kind("license key", 'NEW_RELIC_LICENSE_KEY="', fake(40), '"'),
    Kind("auth in JSON", '{"auths":{"registry.example.org":{"auth":"', "bGVuYTpodW50" + "ZXIyIXg=", '"}}}'),
    Kind("npmrc _auth", "//registry.example.org/:_auth=", "bGVuYTpodW50" + "ZXIyIXg="),
    Kind("npmrc _authToken", "//registry.npmjs.org/:_authToken=", fake(36)),
    Kind("psk", 'psk="', "wlan-" + "Geheim7x", '"'),
    Kind("wpa psk bare", "    psk=", "wlan" + "Geheim77x", "\n}"),
    Kind("pw", "pw=", W),
    Kind("pw, colon", "user: lena\npw: ", S, "\n"),
    Kind("pass", "pass: ", W, "\n"),
    Kind("pass in JSON", '{"user":"lena","pass":"', S, '"}'),
    Kind("Passwort", "Passwort: ", W),
    Kind("mot de passe", "mot de passe : ", W),
    Kind("contraseña", "contraseña: ", W),
    Kind("contraseña quoted", '"contraseña": "', S, '"'),
    Kind("пароль", "пароль: ", S),
    Kind("密码", "密码：", S),
    Kind("columns", "user       lena\npassword   ", S, "\nhost       db1"),
    Kind("Markdown table", "| password | ", S, " |"),
    Kind("Markdown table, code", "| API token | `", fake(32), "` |"),
    Kind("netrc", "machine api.example.org login lena password ", W),
    Kind("netrc on lines", "machine api.example.org\n  login lena\n  password ", S, "\n"),
    Kind("colour before the value", "\x1b[1mpassword\x1b[0m=\x1b[32m", W, "\x1b[0m"),
    Kind("colour, written out", '"\\u001b[1mtoken:\\u001b[0m \\u001b[33m', fake(32), '\\u001b[0m"'),
    Kind("environment", "export DB_PASSWORD=", W, " && ./run"),
    Kind("YAML", "db:\n  password: ", W, "\n  port: 5432"),
    Kind("JSON", '{"user": "lena", "password": "', W, '"}'),
    Kind("Python", 'connect(user="lena", password=\'', W, "')"),
    Kind("TOML", 'secret_key = "', fake(50), '"'),
    Kind("ini", "[client]\nuser=root\npassword=", S, "\n"),
    Kind("properties", "spring.datasource.password=", S, "\n"),
    Kind("docker-compose", "      POSTGRES_PASSWORD: ", S, "\n"),
    Kind("Dockerfile", "ENV ADMIN_PASSWORD=", S, "\n"),
    Kind("Dockerfile with blank", "ENV ADMIN_PASSWORD ", S, "\n"),
    Kind("flag", "shopctl login --password ", S, " --quiet"),
    Kind("flag with =", "shopctl --api-key=", fake(32), " --quiet"),
    Kind("query", "GET /v1?api_key=", fake(24), "&page=2"),
    Kind("access token query", "https://api.example.org/me?access_token=", fake(40), "&x=1"),
    Kind("XML", "<server><password>", W, "</password></server>"),
    Kind("XML attribute", '<add key="x" password="', S, '" />'),
    Kind("connection string", "Server=db1;User Id=sa;Password=", S, ";Encrypt=true"),
    Kind("Azure storage", "AccountName=shop;AccountKey=", fake(86, BASE64) + "==", ";EndpointSuffix=core"),
    Kind("Azure service bus", "SharedAccessKeyName=Root;SharedAccessKey=", fake(43, BASE64) + "="),
    Kind("AWS secret", "aws_secret_access_key = ", fake(40, BASE64)),
    Kind("AWS secret in JSON", '"SecretAccessKey": "', "/" + fake(39), '",'),
    Kind("AWS session", "AWS_SESSION_TOKEN=", fake(200, BASE64)),
    Kind("Kubernetes secret", "kind: Secret\ndata:\n  password: ", "aHVudGVy" + "MiF4MTIz", "\n"),
    Kind("Terraform", 'variable "x" {\n  db_password = "', S, '"\n}'),
    Kind("Ruby hash", ":password => '", S, "'"),
    Kind("PHP define", "define('DB_PASSWORD', '", S, "');"),
    Kind("setx", "setx API_KEY ", fake(40)),
    Kind("PowerShell", '$env:API_KEY = "', fake(40), '"'),
    Kind("numbered line", "    12\tDB_PASSWORD=", S, "\n    13\tDB_USER=lena"),
    Kind("line of a diff", "-DB_PASSWORD=", S, "\n+DB_PASSWORD=$DB_PASSWORD"),
    # private keys
    Kind("RSA key", "the key:\n", RSA, "\nends here"),
    Kind("OpenSSH key", "", pem("OPENSSH PRIV" + "ATE KEY")),
    Kind("PGP key", "", pem("PGP PRIV" + "ATE KEY BLOCK")),
    Kind("cut off key", "$ head -3 id_rsa\n", "\n".join(RSA.split("\n")[:3])),
    Kind("key with line numbers", "", _prefixed(RSA, "{:6d}\t")),
    Kind("key with arrows", "", _prefixed(RSA, "{:5d}→")),
    Kind("quoted key", "", _prefixed(RSA, "> ")),
    Kind("key with file names", "", _prefixed(RSA, "deploy/keys/id_rsa:{}:")),
    Kind("key in colours", "", _prefixed(RSA, "\x1b[32m{:4d}\x1b[0m ")),
    Kind("key in JSON", '{"private_key": "', RSA.replace("\n", "\\n"), '\\n"}'),
    Kind("key in a diff", "", _prefixed(RSA, "+")),
    Kind("cut off key with numbers", "", _prefixed("\n".join(RSA.split("\n")[:4]), "{:6d}\t"), "\n[12 more lines]"),
    # formats
    in_text("Anthropic", "sk-" + "ant-", "api03-" + fake(95, URL_SAFE)),
    in_text("OpenAI project", "sk-" + "proj-", fake(120, URL_SAFE)),
    in_text("GitHub", "gh" + "p_", fake(36)),
    in_text("AWS id", "AK" + "IA", fake(16, UPPER)),
    in_text("Vault", "hv" + "s.", "CAES" + fake(91, URL_SAFE)),
    in_text("DigitalOcean", "dop" + "_v1_", fake(64, HEX)),
    in_text("Docker", "dckr" + "_pat_", fake(27, URL_SAFE)),
    in_text("Shopify", "shp" + "at_", fake(32, HEX)),
    in_text("Databricks", "da" + "pi", fake(32, HEX)),
    in_text("Linear", "lin" + "_api_", fake(40)),
    in_text("Groq", "gs" + "k_", fake(52)),
    in_text("Replicate", "r" + "8_", fake(37)),
    in_text("Mailgun", "ke" + "y-", fake(32, HEX)),
    in_text("age", "AGE-SEC" + "RET-KEY-1", fake(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
    in_text("Google OAuth", "ya" + "29.", "a0Af" + fake(150, URL_SAFE)),
    in_text("Google API", "AI" + "za", fake(35, URL_SAFE)),
    in_text("GitLab", "gl" + "pat-", fake(20, URL_SAFE)),
    in_text("Slack bot", "xo" + "xb-", f"{fake(11, string.digits)[:-1]}-{fake(24)}"),
    in_text("npm", "np" + "m_", fake(36)),
    in_text("Stripe", "sk" + "_live_", fake(24)),
    in_text("Hugging Face", "h" + "f_", fake(34)),
    in_text("SendGrid", "S" + "G.", f"{fake(22, URL_SAFE)}.{fake(43, URL_SAFE)}"),
    in_text("JWT", "ey" + "J", f"{fake(33)}.ey{'J'}{fake(70, URL_SAFE)}.{fake(43, URL_SAFE)}"),
    # URLs and headers
    Kind(
        "Slack webhook",
        "POST https://hooks.sl" + "ack.com/services/",
        f"T{fake(9, UPPER)}/B{fake(9, UPPER)}/{fake(24)}",
    ),
    Kind(
        "Discord webhook",
        "https://disc" + "ord.com/api/webhooks/",
        f"{fake(18, string.digits)[:-1]}/{fake(68, URL_SAFE)}",
    ),
    Kind("Azure SAS", "https://shop.blob.core.windows.net/a?sv=2022-11-02&sig=", fake(42) + "%3D", "&se=2026"),
    Kind("URL", "postgres://shop:", "p4ss-" + "w0rd", "@db.internal:5432/shop"),
    Kind("Authorization", "curl -H 'Authorization: Bearer ", fake(40), "' https://api.example.org"),
    Kind("Basic", '"authorization": "Basic ', "bGVuYTpz" + "ZXNhbQ==", '"'),
    Kind("X-Api-Key", "x-api-key: ", fake(32)),
    Kind("Cookie", "Cookie: theme=dark; sessionid=", fake(32), "\r\nAccept: */*"),
    Kind("Set-Cookie", "set-cookie: sid=", fake(40), "; Path=/; HttpOnly"),
    # commands
    Kind("mysql -p", "mysql -u root -p", S, " shop < dump.sql"),
    Kind("sshpass", "sshpass -p ", S, " ssh lena@db1"),
    Kind("curl -u", "curl -s -u lena:", S, " https://api.example.org"),
    Kind("docker login", "docker login -u lena -p ", S, " registry.example.org"),
    Kind("ssh-keygen -N", "ssh-keygen -t ed25519 -N '", S, "' -f id"),
    Kind("Azure client", "AZURE_CLIENT: aB3" + "8Q~", fake(34, f"{URL_SAFE}.~"), " expires"),
    Kind("nginx", 'proxy_set_header Authorization "Basic ', "bGVuYTpz" + "ZXNhbQ==", '";'),
    Kind("Java property", 'System.setProperty("javax.net.ssl.keyStorePassword", "', S, '");'),
    Kind("SQL user", "CREATE USER 'shop'@'%' IDENTIFIED BY '", S, "';"),
    Kind("SQL user in small letters", "create user shop identified by '", S, "';"),
    Kind("SQL role", "ALTER ROLE shop WITH PASSWORD '", S, "';"),
    Kind("Rails", "  secret_key_base: ", fake(128, HEX), "\n"),
    Kind("kubeconfig", "    client-key-data: ", fake(200, BASE64), "\n"),
    Kind("AWS signature", "https://shop.s3.amazonaws.com/a?X-Amz-Signature=", fake(64, HEX), "&x=1"),
    Kind("Okta", "Authorization: SSWS ", "00" + fake(40)),
    Kind("redis-cli -a", "redis-cli -h cache -a ", S, " ping"),
)

HARMLESS = (
    "commit 9f2c4b7e01d83a6655c0e1f4a7b92d38c6415e0f",
    "id 0d3b8f7c-52a4-4a0e-9c1d-7be2b1f0a6d3 was seen",
    "sha256:4f8b1d5a9c7e20634f8b1d5a9c7e20634f8b1d5a9c7e20634f8b1d5a9c7e2063  shop.tar.gz",
    '"integrity": "sha512-' + fake(86, BASE64) + '=="',
    "![chart](data:image/png;base64,iVBORw0KGgo" + fake(400, BASE64) + "/AAAA=)",
    "http://localhost:3000@main/path",
    "git clone git@github.com:lena/shop.git",
    "https://example.org:8080/a@b?q=c:d@e",
    'password = os.environ["X"]',
    'api_key = os.environ.get("API_KEY", "")',
    "token_count=12 max_tokens=4096 total_tokens: 1234567890123456",
    '{"input_tokens": 18234, "cache_read_input_tokens": 201344}',
    'api_key = "<your-api-key>"',
    "export TOKEN=$TOKEN PASSWORD=${DB_PASSWORD}",
    "token: ${{ secrets.DEPLOY_TOKEN }}",
    'api_key: "your-api-key-goes-here-123"',
    "export API_KEY=xxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-...",
    'password: "********"',
    "def login(user: str, password: str, token: str | None = None) -> None:",
    "password = getpass()\nnew_password = old_password2\npassword = self.password",
    "if password == other:\n    return token != expected_token",
    "password: z.string().min(8).max(64),",
    "password: string;\n  token?: string;",
    "const token = await getToken(user.id, 'x1');",
    "token = line.split(';')[1]",
    "password: Annotated[str, Field(min_length=8)]",
    '"password": "Passwort", "passwordHint": "Mindestens 8 Zeichen"',
    '"password": "Please enter your password (8 characters or more)"',
    '"forgot_password": "Mot de passe oublié ?", "pass": "Passer"',
    "'contraseña': 'Introduzca su contraseña de 8 caracteres'",
    '<input type="password" name="password" placeholder="Your password" autocomplete="current-password">',
    "the password is stored in the keyring, and the token: it expires after 30 days; secret: none",
    "12 passed, 3 failed in 4.2s\nPASS: TestLogin2/with_token1 (0.00s)",
    "PASS  src/auth/login2.test.ts (5.123 s)",
    "pass: 42, fail: 3, skip: 1",
    "auth: required, auth=none, oauth: v2.0.1",
    '"auth": "oauth2", "author": "Lena Huber <lena@example.org>"',
    "PRIMARY KEY (id), FOREIGN KEY (user_id2) REFERENCES users(id)",
    "CACHE_KEY=user:1234:profile:v2:2026-03-04",
    'public_key = "' + fake(64, HEX) + '"',
    "S3_KEY=uploads/2026/05/report-2026-05-17.pdf",
    "sort_key: created_at_2026, partition_key=customer#1234567890",
    'keyboard: "us-intl-2026", monkey=banana12345678901',
    "-----BEGIN PUBLIC KEY-----\n" + fake(64, BASE64) + "\n-----END PUBLIC KEY-----",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text: raise ValueError("no keys please")',
    "-----BEGIN CERTIFICATE-----\n" + fake(64, BASE64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + fake(43, BASE64) + " lena@host",
    "curl -H 'Authorization: Bearer $TOKEN' https://api.example.org",
    'headers = {"Authorization": f"Bearer {token}", "X-Api-Key": api_key}',
    "Bearer authentication, bearer token required",
    "curl -u $USER:$PASS https://api.example.org && curl -u user:password https://x.example.org",
    "mkdir -p src/app2/pages && cp -pR a1 b2 && mysql -u root -p shop",
    "docker run -p 8080:80 -p 127.0.0.1:5432:5432 postgres:16",
    "ssh-keygen -t ed25519 -N '' -f id; ssh-keygen -lf id.pub",
    "Cookie: theme=dark; lang=en-US",
    'document.cookie = "consent=yes; max-age=31536000"',
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "clone https://user:password@example.org/repo.git, or postgres://USER:****@host/db",
    "redis://localhost:6379/0 amqp://rabbit:5672//",
    "task_test_configuration2026 and the-task-list-component-for-users2",
    "/home/lena/projects/shop/node_modules/@types/react-dom/index.d.ts:117:23",
    "C:\\Users\\lena\\AppData\\Local\\Programs\\Python\\Python312\\python.exe",
    "eyJ is how base64 of JSON begins; AKIA is how an id begins; SG. and hf_ as well",
    "2026-03-04T09:15:27.123456Z trace=4bf92f3577b34da6a3ce929d0e0e4736 span=00f067aa0ba902b7",
    "| name | type |\n|---|---|\n| password | string |\n| token | Token2 |",
    "pwd\n/home/lena/projects/shop2\npwd=/home/lena/shop2",
    "npm_config_registry=https://registry.npmjs.org sk_buff_data_alignment_helper_2",
    '{"kind":"token","start":117,"end":124,"type":"Identifier2"}',
    "secretName: shop-tls-2026\nsecretKeyRef:\n  name: shop\n  key: password-v2",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC12f",
    "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256",
    "E_BLANK_PASSWORD: Final = -2141913084\nSERVER_AUTH = '1.3.6.1.5.5.7.3.1'",
    "private_key: x25519.X25519PrivateKey\n  private_key: PKCS7PrivateKeyTypes,",
    "socks5h://<username>:<password>@proxy-host:1080",
    '{"nextToken": "eyJOZXh0VG9rZW4iOiBudWxsfQ==", "page_token": "c2VhcmNoQWxsVGFnc0lu"}',
    "all columns identified by \"aOrderBy\", and those identified by 'name'",
    "ALTER USER shop IDENTIFIED BY $1; CREATE ROLE shop WITH PASSWORD :password",
    "mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089",
    '"AWS::Redshift::EndpointAuthorization": "e72be424d109da1d"',
    "Authorization: AWS4-HMAC-SHA256 Credential=...",
    'password: "[redacted:assigned-secret]", token: "[redacted:jwt]"',
)
