"""Kinds of secrets that were looked at while the rules were written."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, LOWER, UPPER, URLSAFE, Kind, Planted, draw

__all__ = ["SECRETS"]

_FRAMES = (
    "export SERVICE_CREDENTIAL={}",
    "the deploy used {} and failed",
    "curl -H 'X-Auth: {}' https://api.internal.example/v1/jobs",
    'client = Client("{}")',
    "{}",
)


def _token(name: str, prefix: str, alphabet: str, length: int, suffix: str = "") -> Kind:
    def make(rng: random.Random) -> Planted:
        value = prefix + draw(rng, alphabet, length) + suffix
        return Planted(rng.choice(_FRAMES).format(value), (value,))

    return Kind(name, "secret", make)


def _framed(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        secret = value(rng)
        return Planted(rng.choice(frames).replace("%s", secret), (secret,))

    return Kind(name, "secret", make)


def _password(rng: random.Random) -> str:
    word = rng.choice(("winter", "Falcon", "copper", "Ledger", "monsoon"))
    return word + rng.choice("!#%_.-") + draw(rng, ALNUM, 6)


def _jwt(rng: random.Random) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(f'{{"sub":"{draw(rng, DIGITS, 10)}","iat":17}}'.encode()).decode().rstrip("=")
    return f"{head}.{body}.{draw(rng, URLSAFE, 43)}"


def _lines(rng: random.Random, count: int) -> str:
    return "\n".join(draw(rng, B64, 64) for _ in range(count))


def _pem(label: str, cut: str = "") -> Callable[[random.Random], Planted]:
    def make(rng: random.Random) -> Planted:
        body = _lines(rng, 6)
        begin, end = f"-----BEGIN {label}-----\n", f"\n-----END {label}-----"
        text = {"": begin + body + end, "tail": begin + body[:200], "head": body[-180:] + end}[cut]
        values = tuple(line for line in text.splitlines() if "-----" not in line and len(line) > 20)
        return Planted(f"$ cat deploy.pem\n{text}", values)

    return make


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"svc:{_password(rng)}".encode()).decode()


def _presigned(rng: random.Random) -> Planted:
    signature, credential = draw(rng, HEX, 64), f"AK{'IA'}{draw(rng, UPPER, 16)}"
    url = (
        f"https://bucket.s3.amazonaws.com/report.csv?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}"
        f"%2F20260101%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Signature={signature}"
    )
    return Planted(f"download {url} to /tmp", (signature, credential))


def _sas(rng: random.Random) -> Planted:
    signature = draw(rng, ALNUM, 40) + "%3D"
    return Planted(
        f"https://acct.blob.core.windows.net/c/x?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig={signature}", (signature,)
    )


def _cookie(rng: random.Random) -> Planted:
    one, two = draw(rng, HEX, 32), draw(rng, URLSAFE, 40)
    return Planted(f"> Cookie: sessionid={one}; csrftoken={two}; theme=dark", (one, two))


def _set_cookie(rng: random.Random) -> Planted:
    value = draw(rng, ALNUM, 36)
    return Planted(f"< set-cookie: sid={value}; Path=/; HttpOnly; SameSite=Lax", (value,))


def _webhook(host: str, tail: Callable[[random.Random], str]) -> Callable[[random.Random], Planted]:
    def make(rng: random.Random) -> Planted:
        value = tail(rng)
        return Planted(f"notify: https://{host}{value}", (value,))

    return make


SECRETS: tuple[Kind, ...] = (
    _token("aws access key", "AK" + "IA", UPPER.replace("0", "").replace("1", ""), 16),
    _token("github classic token", "ghp" + "_", ALNUM, 36),
    _token("github app token", "ghs" + "_", ALNUM, 36),
    _token("github fine-grained token", "github" + "_pat_", ALNUM, 82),
    _token("gitlab token", "glpat" + "-", URLSAFE, 20),
    _token("slack bot token", "xoxb" + "-", DIGITS, 12, "-" + "T" * 4),
    _token("stripe live key", "sk" + "_live_", ALNUM, 24),
    _token("openai key", "sk" + "-proj-", URLSAFE, 48),
    _token("openai legacy key", "sk" + "-", ALNUM, 48),
    _token("anthropic key", "sk" + "-ant-api03-", URLSAFE, 93),
    _token("openrouter key", "sk" + "-or-v1-", HEX, 64),
    _token("google api key", "AI" + "za", URLSAFE, 35),
    _token("google oauth token", "ya29" + ".", URLSAFE, 80),
    _token("google client secret", "GOCSPX" + "-", URLSAFE, 28),
    _token("hugging face token", "hf" + "_", ALNUM, 34),
    _token("twilio key", "SK", HEX, 32),
    _framed(
        "sendgrid key",
        lambda r: f"SG.{draw(r, URLSAFE, 22)}.{draw(r, URLSAFE, 43)}",
        *(f.replace("{}", "%s") for f in _FRAMES),
    ),
    _token("mailgun key", "key" + "-", HEX, 32),
    _token("npm token", "npm" + "_", ALNUM, 36),
    _token("pypi token", "pypi" + "-AgEIcHlwaS5vcmc", URLSAFE, 120),
    _token("docker token", "dckr" + "_pat_", URLSAFE, 27),
    _token("digitalocean token", "dop" + "_v1_", HEX, 64),
    _token("shopify token", "shpat" + "_", HEX, 32),
    _framed(
        "telegram token",
        lambda r: f"{draw(r, '123456789', 10)}:{draw(r, URLSAFE, 35)}",
        "bot %s started",
        "TELEGRAM_TOKEN=%s",
    ),
    _framed(
        "discord token",
        lambda r: f"M{draw(r, ALNUM, 23)}.{draw(r, ALNUM, 6)}.{draw(r, URLSAFE, 38)}",
        "client.run('%s')",
        "token: %s",
    ),
    _token("databricks token", "dapi", HEX, 32),
    _token("grafana token", "glsa" + "_", ALNUM, 32, "_1a2b3c4d"),
    _token("vault token", "hvs" + ".", URLSAFE, 90),
    _token("linear key", "lin" + "_api_", ALNUM, 40),
    _token("notion token", "ntn" + "_", ALNUM, 46),
    _token("new relic key", "NRAK" + "-", UPPER, 27),
    _token("figma token", "figd" + "_", URLSAFE, 40),
    _token("groq key", "gsk" + "_", ALNUM, 52),
    _token("replicate token", "r8" + "_", ALNUM, 37),
    _token("perplexity key", "pplx" + "-", ALNUM, 48),
    _token("tailscale key", "tskey" + "-auth-", ALNUM, 30),
    _token("tencent key", "AK" + "ID", ALNUM, 32),
    _token("alibaba key", "LT" + "AI", ALNUM, 20),
    _framed("jwt", _jwt, "Authorization: Bearer %s", '{"id_token": "%s"}', "got %s"),
    _framed("env password", _password, "DB_PASSWORD=%s", "export PGPASSWORD=%s", "MYSQL_ROOT_PASSWORD=%s"),
    _framed(
        "wordy env password",
        lambda r: r.choice(("correcthorse", "tulipgarden", "sommerregen")) + draw(r, string.ascii_lowercase, 5),
        "ADMIN_PASSWORD=%s",
    ),
    _framed("yaml password", _password, "  password: %s", "db:\n  user: app\n  password: '%s'"),
    _framed("json password", _password, '{"user": "app", "password": "%s"}'),
    _framed("code password", _password, 'connect(host="db", password="%s")', "const apiSecret = '%s';"),
    _framed("hex api key", lambda r: draw(r, HEX, 32), "api_key: %s", "DD_API_KEY=%s", '"apiKey": "%s"'),
    _framed(
        "aws secret key",
        lambda r: draw(r, B64, 40),
        "aws_secret_access_key = %s",
        "AWS_SECRET_ACCESS_KEY=%s",
        '"SecretAccessKey": "%s"',
    ),
    _framed(
        "flag password",
        _password,
        "mytool login --user app --password %s",
        "vault login --token=%s",
        "tool --api-key '%s' run",
    ),
    _framed("curl user", _password, "curl -sS -u app:%s https://api.internal.example/x"),
    _framed("mysql flag", _password, "mysql -h db -u root -p%s shop"),
    _framed("sshpass", _password, "sshpass -p %s ssh app@10.0.0.4 uptime", "sshpass -p '%s' scp x app@10.0.0.4:"),
    _framed(
        "url password",
        _password,
        "postgres://app:%s@db.internal.example:5432/shop",
        "git clone https://ci:%s@git.internal.example/x.git",
        "redis://:%s@cache:6379/0",
    ),
    _framed(
        "bearer header",
        lambda r: draw(r, URLSAFE, 40),
        "Authorization: Bearer %s",
        "-H 'Authorization: Bearer %s'",
        '"Authorization": "Bearer %s"',
    ),
    _framed("basic header", _basic, "Authorization: Basic %s", '{"headers": {"Authorization": "Basic %s"}}'),
    _framed("api key header", lambda r: draw(r, LOWER, 32), "X-Api-Key: %s", "PRIVATE-TOKEN: %s", "X-Vault-Token: %s"),
    Kind("private key block", "secret", _pem("RSA " + "PRIVATE KEY")),
    Kind("openssh key block", "secret", _pem("OPENSSH " + "PRIVATE KEY")),
    Kind("private key cut at the end", "secret", _pem("PRIVATE KEY", "tail")),
    Kind("private key cut at the start", "secret", _pem("EC " + "PRIVATE KEY", "head")),
    Kind("presigned s3 url", "secret", _presigned),
    Kind("azure sas url", "secret", _sas),
    Kind("cookie header", "secret", _cookie),
    Kind("set-cookie header", "secret", _set_cookie),
    Kind(
        "slack webhook",
        "secret",
        _webhook(
            "hooks.slack.com/services/", lambda r: f"T{draw(r, UPPER, 8)}/B{draw(r, UPPER, 10)}/{draw(r, ALNUM, 24)}"
        ),
    ),
    Kind(
        "discord webhook",
        "secret",
        _webhook("discord.com/api/webhooks/", lambda r: f"{draw(r, DIGITS, 18)}/{draw(r, URLSAFE, 68)}"),
    ),
    Kind(
        "feishu webhook",
        "secret",
        _webhook(
            "open.feishu.cn/open-apis/bot/v2/hook/", lambda r: f"{draw(r, HEX, 8)}-{draw(r, HEX, 4)}-{draw(r, HEX, 12)}"
        ),
    ),
    _framed(
        "query token",
        lambda r: draw(r, ALNUM, 32),
        "GET https://api.internal.example/x?access_token=%s&page=2",
        "wss://ws.internal.example/?token=%s",
    ),
    _framed(
        "azure account key",
        lambda r: draw(r, B64, 86) + "==",
        "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=%s;EndpointSuffix=core.windows.net",
    ),
    _framed("netrc", _password, "machine git.internal.example login app password %s"),
    _framed("npmrc", lambda r: draw(r, HEX, 36), "//registry.internal.example/:_authToken=%s"),
    _framed("bcrypt hash", lambda r: "$2b$12$" + draw(r, ALNUM + "./", 53), "app:%s", "hash %s stored"),
    _framed(
        "said password", _password, "the password is %s, please use it", "my password: %s", "Das Passwort lautet %s."
    ),
    _framed("pin", lambda r: draw(r, "123456789", 6), "PIN: %s", '{"otp": "%s"}'),
    _framed("random base62", lambda r: draw(r, ALNUM, 40), "value %s was rejected", "handshake {%s}"),
    _framed("random base64", lambda r: draw(r, B64, 43) + "=", "secret material %s", "x = '%s'"),
    _framed(
        "docker auth",
        lambda r: base64.b64encode(f"bot:{draw(r, ALNUM, 18)}".encode()).decode(),
        '{"auths": {"registry.internal.example": {"auth": "%s"}}}',
    ),
    _framed(
        "totp secret",
        lambda r: draw(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
        "otpauth://totp/app?secret=%s&issuer=app",
    ),
)
