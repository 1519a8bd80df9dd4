"""Kinds that were held out at first, measured, and then used to improve the rules."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable

from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, LOWER, UPPER, URLSAFE, Kind, Planted, draw
from tests.suite.corpus_people import card_number, person

__all__ = ["LATER"]


def _kind(group: str, name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, group, make)


def _listed(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,), (text,))

    return Kind(name, "personal", make)


def _pw(rng: random.Random) -> str:
    return (
        rng.choice(("Kestrel", "granite", "Bosporus", "tundra"))
        + draw(rng, DIGITS, 3)
        + rng.choice("!$*@")
        + draw(rng, ALNUM, 3)
    )


def _quiet(rng: random.Random) -> str:
    return rng.choice(("kestrel", "granite", "bosporus", "tundra")) + draw(rng, DIGITS, 4)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _phrase(rng: random.Random) -> str:
    stock = "abandon ability cactus dolphin ember fabric galaxy harvest island jungle kiwi ladder magnet nectar".split()  # noqa: SIM905
    return " ".join(rng.choice(stock) for _ in range(12))


_SECRETS = (
    _kind(
        "secret",
        "mongodb url",
        _pw,
        "mongodb+srv://svc:%s@cluster0.internal.example/app",
        "MONGO_URI=mongodb://root:%s@db:27017",
    ),
    _kind("secret", "amqp url", _quiet, "amqp://broker:%s@mq:5672/vhost"),
    _kind("secret", "jdbc url", _quiet, "jdbc:mysql://db:3306/shop?user=svc&password=%s&useSSL=true"),
    _kind("secret", "ado connection string", _pw, "Server=db;Database=shop;User Id=svc;Password=%s;Encrypt=true"),
    _kind("secret", "kafka jaas", _pw, 'ScramLoginModule required username="svc" password="%s";'),
    _kind(
        "secret",
        "kubernetes secret",
        lambda r: base64.b64encode(_pw(r).encode()).decode(),
        "apiVersion: v1\nkind: Secret\ndata:\n  password: %s",
    ),
    _kind("secret", "helm value", _quiet, "helm upgrade db ./chart --set auth.password=%s --wait"),
    _kind(
        "secret",
        "wireguard key",
        lambda r: draw(r, B64, 43) + "=",
        "[Interface]\nPrivateKey = %s\nAddress = 10.8.0.2/24",
    ),
    _kind("secret", "wifi key", _quiet, 'network={\n  ssid="office"\n  psk="%s"\n}'),
    _kind("secret", "rails secret", lambda r: draw(r, HEX, 128), "secret_key_base: %s"),
    _kind(
        "secret", "django secret", lambda r: draw(r, LOWER + "!@#$%^&*(-_=+)", 50), "SECRET_KEY = 'django-insecure-%s'"
    ),
    _kind("secret", "laravel key", lambda r: draw(r, B64, 43) + "=", "APP_KEY=base64:%s"),
    _kind("secret", "sentry dsn", lambda r: draw(r, HEX, 32), "SENTRY_DSN=https://%s@o4505.ingest.sentry.io/4506"),
    _kind("secret", "okta token", lambda r: "00" + draw(r, URLSAFE, 40), "Authorization: SSWS %s"),
    _kind("secret", "hubspot token", lambda r: f"pat-na1-{_uuid(r)}", "HUBSPOT=%s", "hubspot key %s"),
    _kind("secret", "circleci token", lambda r: f"CCIPAT_{draw(r, ALNUM, 22)}_{draw(r, HEX, 40)}", "circleci: %s"),
    _kind(
        "secret",
        "buildkite token",
        lambda r: "bkua_" + draw(r, HEX, 40),
        "curl -H 'Authorization: Bearer %s' x",
        "using %s",
    ),
    _kind("secret", "plaid token", lambda r: f"access-production-{_uuid(r)}", "plaid %s linked"),
    _kind("secret", "asana token", lambda r: f"1/{draw(r, DIGITS, 16)}:{draw(r, HEX, 32)}", "asana pat %s"),
    _kind("secret", "htpasswd flag", _pw, "htpasswd -b .htpasswd svc %s"),
    _kind("secret", "openssl pass", _quiet, "openssl rsa -in k.pem -passin pass:%s"),
    _kind("secret", "ldap flag", _quiet, "ldapsearch -x -D cn=svc -w %s -b dc=x"),
    _kind("secret", "samba user", _quiet, "smbclient //nas/share -U svc%%s"),
    _kind("secret", "powershell secure string", _pw, 'ConvertTo-SecureString "%s" -AsPlainText -Force'),
    _kind("secret", "net user", _pw, "net user svc %s /add"),
    _kind(
        "secret", "xml password", _pw, "<server><id>repo</id><username>svc</username><password>%s</password></server>"
    ),
    _kind("secret", "app config", lambda r: draw(r, ALNUM, 28), '<add key="ApiSecret" value="%s" />'),
    _kind("secret", "psql keyword string", _quiet, 'psql "host=db user=svc password=%s dbname=shop"'),
    _kind("secret", "go struct", _quiet, 'cfg := Config{User: "svc", Password: "%s"}'),
    _kind("secret", "ethereum key", lambda r: "0x" + draw(r, HEX, 64), "private_key: %s", "PRIVATE_KEY=%s"),
    _kind("secret", "seed phrase", _phrase, "seed phrase: %s", 'mnemonic = "%s"'),
    _kind("secret", "chinese password", _quiet, "密码：%s", "服务器密码是 %s"),
    _kind(
        "secret",
        "pgp block",
        lambda r: draw(r, B64, 64),
        "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\n%s\n=abcd\n-----END PGP " + "PRIVATE KEY BLOCK-----",
    ),
    _kind("secret", "ansible vault", lambda r: draw(r, DIGITS, 80), "$ANSIBLE_VAULT;1.1;AES256\n%s"),
    _kind(
        "secret", "oauth code", lambda r: "4/0A" + draw(r, URLSAFE, 60), "http://localhost:8085/?code=%s&scope=email"
    ),
    _kind(
        "secret",
        "mailjet pair",
        lambda r: f"{draw(r, HEX, 32)}:{draw(r, HEX, 32)}",
        "curl --user '%s' https://api.internal.example/v3/send",
    ),
    _kind("secret", "deepgram header", lambda r: draw(r, HEX, 40), "Authorization: Token %s"),
)

_PEOPLE = (
    _kind(
        "personal",
        "german address",
        lambda r: f"{r.choice(('Linden', 'Schiller', 'Garten'))}straße {r.randint(1, 99)}",
        "wohnt in der %s, 10115 Berlin",
    ),
    _kind(
        "personal",
        "french phone",
        lambda r: f"+33 6 {r.randint(10, 99)} {r.randint(10, 99)} {r.randint(10, 99)} {r.randint(10, 99)}",
        "mon numéro %s",
    ),
    _kind("personal", "uk phone", lambda r: f"+44 20 7946 {r.randint(1000, 9999)}", "ring %s", "desk %s"),
    _kind(
        "personal",
        "dotted us phone",
        lambda r: f"{r.choice(('206', '503'))}.{r.randint(220, 540)}.{r.randint(1000, 9999)}",
        "voicemail at %s",
    ),
    _kind("personal", "windows home with space", lambda r: " ".join(person(r)[:2]), "C:\\Users\\%s\\Documents\\x.docx"),
    _kind(
        "personal",
        "encoded home",
        lambda r: person(r)[0].lower() + draw(r, "123456789", 2),
        "vscode://file/%2FUsers%2F%s%2Fsrc",
    ),
    _kind("personal", "spelt e-mail", lambda r: f"{person(r)[1].lower()} at corpmail dot io", "mail me: %s"),
    _kind(
        "personal",
        "forge e-mail",
        lambda r: f"{draw(r, '123456789', 7)}+{person(r)[1].lower()}@users.noreply.github.com",
        "<%s>",
    ),
    _kind(
        "personal",
        "reviewed-by",
        lambda r: " ".join(person(r)[:2]),
        "Reviewed-by: %s <x@corp-mail.io>",
        "Tested-by: %s <x@corp-mail.io>",
    ),
    _kind("personal", "passwd entry", lambda r: " ".join(person(r)[:2]), "mlv:x:1001:1001:%s,,,:/home/mlv:/bin/bash"),
    _kind(
        "personal",
        "passport",
        lambda r: draw(r, "CFGHJK", 1) + draw(r, DIGITS, 8),
        "passport number %s",
        '{"passport_number": "%s"}',
    ),
    _kind("personal", "telegram link", lambda r: person(r)[2].replace(".", "_"), "https://t.me/%s"),
    _kind(
        "personal",
        "linkedin link",
        lambda r: person(r)[1].lower() + "-" + draw(r, HEX, 6),
        "https://www.linkedin.com/in/%s/",
    ),
    _kind(
        "personal",
        "cloud host name",
        lambda r: f"ec2-52-{r.randint(1, 250)}-{r.randint(1, 250)}-{r.randint(1, 250)}",
        "%s.compute-1.amazonaws.com",
    ),
    _kind(
        "personal",
        "forwarded-for",
        lambda r: f"81.{r.randint(1, 250)}.{r.randint(1, 250)}.{r.randint(1, 250)}",
        "X-Forwarded-For: %s, 10.0.0.1",
    ),
    _kind("personal", "card as a number", lambda r: card_number(r).replace(" ", "").replace("-", ""), '{"pan": %s}'),
    _kind(
        "personal",
        "mac with dashes",
        lambda r: "A4-83-" + "-".join(draw(r, HEX.upper(), 2) for _ in range(4)),
        "Physical Address. . . : %s",
    ),
    _kind("personal", "windows machine", lambda r: "DESKTOP-" + draw(r, UPPER, 7), "%s joined"),
    _listed(
        "japanese name, listed",
        lambda r: r.choice(("田中太郎", "佐藤花子", "鈴木一郎")),
        "%sさんに確認します",
        "担当は%sです",
    ),
    _listed("upper-case name, listed", lambda r: person(r)[0].upper(), "TODO(%s): remove", "ATTN %s"),
    _listed("key comment, listed", lambda r: person(r)[1].lower(), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA %s@thinkpad"),
    _kind(
        "personal",
        "uk insurance number",
        lambda r: f"{draw(r, 'ABCEGHJ', 2)}{draw(r, DIGITS, 6)}A",
        '{"nino": "%s"}',
        "National Insurance %s",
    ),
)

_NEGATIVES = (
    _kind("negative", "pod name", lambda r: f"relay-worker-{draw(r, HEX, 9)}-{draw(r, LOWER, 5)}", "pod/%s restarted"),
    _kind(
        "negative",
        "image tag",
        lambda r: f"registry.example/relay:2026.1.{r.randint(1, 30)}-{draw(r, HEX, 7)}",
        "image: %s",
    ),
    _kind("negative", "go sum", lambda r: "h1:" + draw(r, B64, 43) + "=", "golang.org/x/net v0.17.0 %s"),
    _kind("negative", "nix path", lambda r: f"/nix/store/{draw(r, LOWER, 32)}-openssl-3.0.12", "linked %s"),
    _kind("negative", "ulid", lambda r: "01H" + draw(r, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 23), "job %s done"),
    _kind(
        "negative", "arn", lambda r: f"arn:aws:lambda:eu-west-1:{draw(r, '123456789', 12)}:function:drain", "invoke %s"
    ),
    _kind("negative", "isbn", lambda r: f"978-3-16-{draw(r, DIGITS, 6)}-0", "ISBN %s"),
    _kind("negative", "fingerprint", lambda r: "SHA256:" + draw(r, B64, 43), "256 %s host (ED25519)"),
    _kind("negative", "token settings", lambda r: f"token_budget={r.randint(1000, 9000)}", "%s and retry"),
    _kind(
        "negative",
        "primary key",
        lambda r: f"order_{r.randint(1, 99)}_id",
        "primary_key: %s",
        '{"partition_key": "%s"}',
    ),
    _kind("negative", "chunk name", lambda r: f"assets/index-{draw(r, URLSAFE, 8)}.js", "dist/%s 142 kB"),
    _kind(
        "negative",
        "data uri",
        lambda r: "iVBORw0KGgoAAAANSUhEUgAA" + draw(r, B64, 80),
        'src="data:image/png;base64,%s"',
    ),
    _kind("negative", "decimal numbers", lambda r: f"{r.random():.6f}, {r.random():.6f}", "loss %s", "weights [%s]"),
    _kind(
        "negative",
        "python attribute",
        lambda r: f"self._{r.choice(('pool', 'lease'))}_token",
        "token = %s",
        "password=%s",
    ),
)

LATER: tuple[Kind, ...] = (*_SECRETS, *_PEOPLE, *_NEGATIVES)
