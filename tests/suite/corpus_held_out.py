"""Kinds that no rule was written or changed for: they were written last, and only measured."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, LOWER, UPPER, URLSAFE, Kind, Planted, draw
from tests.suite.corpus_people import person

__all__ = ["HELD_OUT"]


def _kind(group: str, name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, group, make, held_out=True)


def _listed(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,), (text,))

    return Kind(name, "personal", make, held_out=True)


def _pw(rng: random.Random) -> str:
    return rng.choice(("Orchid", "velvet", "Caspian", "saffron")) + rng.choice("-_!?") + draw(rng, LOWER, 5)


HELD_OUT: tuple[Kind, ...] = (
    _kind("secret", "ftp url", _pw, "lftp ftp://deploy:%s@files.internal.example"),
    _kind("secret", "smtp settings", _pw, "EMAIL_HOST_USER=mailer\nEMAIL_HOST_PASSWORD=%s"),
    _kind("secret", "terraform variable", _pw, 'variable "db_password" {\n  default = "%s"\n}'),
    _kind("secret", "tfvars", _pw, 'rds_master_password = "%s"'),
    _kind(
        "secret", "git credential helper", _pw, "protocol=https\nhost=git.internal.example\nusername=ci\npassword=%s"
    ),
    _kind("secret", "github actions mask", lambda r: draw(r, ALNUM, 30), "echo '::add-mask::%s'"),
    _kind("secret", "kubectl literal", _pw, "kubectl create secret generic db --from-literal=password=%s"),
    _kind("secret", "kubeconfig token", lambda r: draw(r, URLSAFE, 60), "users:\n- name: ci\n  user:\n    token: %s"),
    _kind("secret", "boto client", lambda r: draw(r, B64, 40), "boto3.client('s3', aws_secret_access_key='%s')"),
    _kind("secret", "snowflake connect", _pw, "snowflake.connector.connect(user='etl', password='%s', account='x')"),
    _kind("secret", "su expect script", _pw, 'expect "Password:"\nsend "%s\\r"'),
    _kind("secret", "oracle login", _pw, "sqlplus system/%s@//db:1521/XE"),
    _kind("secret", "mssql login", _pw, "sqlcmd -S db -U sa -P '%s' -Q 'select 1'"),
    _kind("secret", "vnc secret prose", _pw, "you can log in with user svc and password %s", "creds: svc / %s"),
    _kind("secret", "spanish prose", _pw, "la contraseña es %s"),
    _kind("secret", "signing secret", lambda r: draw(r, HEX, 32), "SLACK_SIGNING_SECRET=%s", "signing_secret: %s"),
    _kind(
        "secret", "csv credentials", lambda r: draw(r, B64, 40), "User name,Access key ID,Secret access key\nci,x,%s"
    ),
    _kind("secret", "pulsar jwt param", lambda r: draw(r, ALNUM, 44), '{"authParams": "token:%s"}'),
    _kind(
        "secret",
        "flask config",
        lambda r: draw(r, HEX, 48),
        "app.config['SECRET_KEY'] = '%s'",
        "app.secret_key = b'%s'",
    ),
    _kind(
        "secret",
        "basic in python",
        lambda r: base64.b64encode(f"me:{_pw(r)}".encode()).decode(),
        "headers={'Authorization': 'Basic %s'}",
    ),
    _kind("secret", "java property", _pw, "spring.datasource.password=%s", "-Djavax.net.ssl.keyStorePassword=%s"),
    _kind("personal", "austrian phone", lambda r: f"+43 664 {draw(r, '123456789', 7)}", "unter %s erreichbar"),
    _kind("personal", "swiss account", lambda r: "CH93 0076 2011 6238 5295 7", "auf %s überweisen"),
    _kind(
        "personal",
        "login url",
        lambda r: person(r)[1].lower(),
        "https://forge.example/~%s/dotfiles",
        "ssh://%s@box.internal.example:22/srv",
    ),
    _kind("personal", "mail folder", lambda r: person(r)[1].lower(), "/var/mail/%s", "/var/spool/cron/crontabs/%s"),
    _kind(
        "personal",
        "icloud folder",
        lambda r: person(r)[2].replace(".", ""),
        "/Users/%s/Library/Mobile Documents/com~apple~CloudDocs/x",
    ),
    _kind("personal", "vcard", lambda r: " ".join(person(r)[:2]), "BEGIN:VCARD\nFN:%s\nEND:VCARD"),
    _kind(
        "personal",
        "json author",
        lambda r: " ".join(person(r)[:2]),
        '{"author": {"name": "%s", "email": "x@corp-mail.io"}}',
        '"full_name": "%s"',
    ),
    _kind("personal", "package author", lambda r: " ".join(person(r)[:2]), 'authors = ["%s <x@corp-mail.io>"]'),
    _kind(
        "personal",
        "blame line",
        lambda r: " ".join(person(r)[:2]),
        "9c1e4f7a (%s 2026-01-05 10:11:12 +0100 41) def lease(job):",
    ),
    _kind("personal", "shortlog", lambda r: " ".join(person(r)[:2]), "    14\t%s <x@corp-mail.io>"),
    _kind(
        "personal",
        "ip in a log line",
        lambda r: f"93.{r.randint(1, 250)}.{r.randint(1, 250)}.{r.randint(1, 250)}",
        '%s - - [05/Jan/2026:10:11:12 +0000] "GET / HTTP/1.1" 200',
        "Failed password for root from %s port 51122 ssh2",
    ),
    _kind(
        "personal", "quoted e-mail", lambda r: f"{person(r)[1].lower()}@corp-mail.io", "user='%s'", "login: %s;", "(%s)"
    ),
    _kind(
        "personal",
        "us address",
        lambda r: f"{r.randint(100, 9999)} {r.choice(('Elm', 'Cedar Hill', 'W. Grove'))} Drive",
        "bill to %s, Austin, TX 78701",
    ),
    _listed("camel-case name, listed", lambda r: person(r)[1], "class %sScheduler:", "Test%s"),
    _listed("name in a branch, listed", lambda r: person(r)[1].lower(), "origin/users/%s/spike", "wip-%s-2"),
    _kind("negative", "ipfs id", lambda r: "Qm" + draw(r, ALNUM, 44), "ipfs get %s"),
    _kind("negative", "trace id", lambda r: f"00-{draw(r, HEX, 32)}-{draw(r, HEX, 16)}-01", "traceparent: %s"),
    _kind("negative", "request id", lambda r: f"req_{draw(r, ALNUM, 24)}", "request id %s"),
    _kind("negative", "csp nonce name", lambda r: f"nonce_{r.choice(('store', 'cache'))}", "script-src '%s'"),
    _kind("negative", "shell default", lambda r: "${TOKEN:-" + r.choice(("unset", "none")) + "}", "token=%s"),
    _kind("negative", "keyboard", lambda r: r.choice(("ctrl+shift+p", "cmd+k cmd+s")), '{"key": "%s"}'),
    _kind("negative", "dimension", lambda r: f"{r.randint(100, 4000)}x{r.randint(100, 4000)}", "resize %s"),
    _kind("negative", "date range", lambda r: f"2026-01-{r.randint(10, 28)} 10:00:00", "since %s"),
    _kind(
        "negative", "mac-like time", lambda r: f"{r.randint(10, 23)}:{r.randint(10, 59)}:{r.randint(10, 59)}", "at %s"
    ),
    _kind("negative", "cpp scope", lambda r: f"relay::{r.choice(('Pool', 'Ledger'))}::drain", "call %s()"),
    _kind(
        "negative",
        "module path",
        lambda r: f"com.acme.relay.{r.choice(('Pool', 'Ledger'))}AuthTokenFilterFactoryBean",
        "at %s.java",
    ),
    _kind("negative", "build number", lambda r: f"build-{draw(r, DIGITS, 9)}-{draw(r, UPPER, 3)}", "artifact %s"),
)
