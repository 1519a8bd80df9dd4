"""Broad kinds of secrets as programs take and print them, and look-alikes that must stay; the split by kind."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable

from tests.suite.broad_numbers import BROAD_NUMBERS
from tests.suite.broad_people import BROAD_PEOPLE
from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, LOWER, URLSAFE, Kind, Planted, draw

__all__ = ["BROAD", "BROAD_NEGATIVES", "BROAD_SECRETS", "RULED", "SPLIT_SEED", "split"]

SPLIT_SEED = 20261116


def _kind(group: str, name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, group, make, held_out=True)


def _secret(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    return _kind("secret", name, value, *frames)


def _stays(name: str, values: str, *frames: str) -> Kind:
    """Make a kind of look-alike from values set apart by bars."""
    return _kind("negative", name, lambda rng: rng.choice(values.split("|")), *frames)


def _phrase(rng: random.Random) -> str:
    words = ("copper", "Lantern", "viola", "Harbor", "tundra", "Mango", "sprocket", "Velvet")
    return rng.choice(words) + rng.choice("!_-#%") + rng.choice(words) + str(rng.randrange(10, 9999))


def _b64_phrase(rng: random.Random) -> str:
    return base64.b64encode(_phrase(rng).encode()).decode()


def _of(prefix: str, alphabet: str, size: int) -> Callable[[random.Random], str]:
    return lambda rng: prefix + draw(rng, alphabet, size)


BROAD_SECRETS: tuple[Kind, ...] = (
    _secret(
        "docker run environment",
        _phrase,
        "docker run -e POSTGRES_PASSWORD=%s -d postgres:16",
        "podman run --env MYSQL_ROOT_PASSWORD=%s mysql",
    ),
    _secret(
        "sql user",
        _phrase,
        "CREATE USER relay IDENTIFIED BY '%s';",
        "ALTER ROLE relay WITH PASSWORD '%s';",
        "SET PASSWORD FOR 'relay'@'%' = PASSWORD('%s');",
    ),
    _secret("redis commands", _phrase, "127.0.0.1:6379> AUTH %s\nOK", "CONFIG SET requirepass %s", "AUTH default %s"),
    _secret("mongo shell", _phrase, "mongosh --host db -u relay -p %s", "mongodump -u relay --password %s --db app"),
    _secret(
        "environment before a command",
        _phrase,
        "PGPASSWORD=%s psql -h db -U relay",
        "RESTIC_PASSWORD='%s' restic snapshots",
        "MYSQL_PWD=%s mysqldump app",
    ),
    _secret(
        "aws configure", _of("", B64, 40), "AWS Secret Access Key [None]: %s\nDefault region name [None]: eu-west-1"
    ),
    _secret("service account json", _of("", HEX, 40), '{"type": "service_account", "private_key_id": "%s"}'),
    _secret(
        "php settings",
        _phrase,
        "define('DB_PASSWORD', '%s');",
        "define( 'AUTH_KEY', '%s' );",
        "$cfg['Servers'][1]['password'] = '%s';",
    ),
    _secret(
        "shadow line",
        lambda r: f"$6${draw(r, ALNUM, 12)}${draw(r, ALNUM, 86)}",
        "relay:%s:19800:0:99999:7:::",
        "hash: %s",
    ),
    _secret("apache password file", lambda r: f"$apr1${draw(r, ALNUM, 8)}${draw(r, ALNUM, 22)}", "relay:%s"),
    _secret("requests auth", _phrase, "requests.get(url, auth=('relay', '%s'))", 'auth=HTTPBasicAuth("relay", "%s")'),
    _secret(
        "socket token",
        _of("", URLSAFE, 32),
        "wss://stream.acme.dev/ws?token=%s",
        "new WebSocket(`wss://x.acme.dev?access_token=%s`)",
    ),
    _secret(
        "expect script",
        _phrase,
        'expect "assword:"\nsend "%s\\r"',
        'spawn ssh relay@db\nexpect password\nsend -- "%s\\r"',
    ),
    _secret("terraform default", _phrase, 'variable "db_password" {\n  type    = string\n  default = "%s"\n}'),
    _secret("sqlcmd", _phrase, "sqlcmd -S db -U sa -P %s -Q 'select 1'", "bcp app.dbo.jobs out jobs.bcp -U sa -P %s"),
    _secret(
        "rclone",
        _of("", URLSAFE, 44),
        "[backup]\ntype = sftp\npass = %s",
        "rclone obscure\n%s\nrclone config password backup pass %s",
    ),
    _secret(
        "vault write",
        _phrase,
        "vault kv put secret/relay password=%s",
        "vault write auth/userpass/users/relay password=%s",
    ),
    _secret(
        "platform settings",
        _of("", ALNUM, 32),
        "heroku config:set SESSION_SECRET=%s",
        "flyctl secrets set API_TOKEN=%s",
        "vercel env add STRIPE_KEY %s",
    ),
    _secret(
        "kubernetes secret data",
        _b64_phrase,
        "kind: Secret\ndata:\n  password: %s",
        "kind: Secret\ntype: Opaque\ndata:\n  DB_PASS: %s",
    ),
    _secret(
        "firebase server key",
        lambda r: f"AAAA{draw(r, ALNUM, 7)}:APA91b{draw(r, URLSAFE, 134)}",
        "Authorization: key=%s",
        "FCM_SERVER_KEY=%s",
    ),
    _secret(
        "wifi code",
        _phrase,
        "WIFI:S:relay-lab;T:WPA;P:%s;;",
        "wpa_passphrase relay-lab %s",
        "nmcli dev wifi connect lab password %s",
    ),
    _secret(
        "windows credential",
        _phrase,
        "cmdkey /add:db /user:relay /pass:%s",
        "runas /user:relay (password: %s)",
        "net user relay %s /add",
    ),
    _secret(
        "unattended setup",
        _phrase,
        "<AdministratorPassword><Value>%s</Value></AdministratorPassword>",
        "<Password>%s</Password>",
    ),
    _secret(
        "recovery codes",
        lambda r: f"{draw(r, LOWER, 5)}-{draw(r, LOWER, 5)}",
        "recovery codes:\n  %s",
        "backup code: %s",
        "Your 2FA recovery code is %s",
    ),
    _secret(
        "webhook signing", _of("whsec_", ALNUM, 32), "stripe listen: signing secret is %s", "endpointSecret = '%s'"
    ),
    _secret(
        "platform tokens",
        lambda r: (
            r.choice(("nfp_", "sbp_", "pscale_tkn_", "dp.st.prd.", "PMAK-", "pul-", "rubygems_", "sntrys_"))
            + draw(r, HEX, 40)
        ),
        "token %s",
        "export TOKEN=%s",
        "using %s",
    ),
    _secret(
        "one-time code",
        lambda r: draw(r, DIGITS, 6),
        "your verification code is %s",
        "OTP: %s",
        "enter the 2FA code %s",
    ),
    _secret("mail settings", _phrase, "EMAIL_HOST_PASSWORD = '%s'", "smtp_pass: %s", "spring.mail.password=%s"),
    _secret(
        "spring or rails", _phrase, "spring:\n  datasource:\n    password: %s", "production:\n  secret_key_base: %s"
    ),
    _secret(
        "dotnet connection",
        _phrase,
        "Server=db;Database=app;Uid=relay;Pwd=%s;",
        "AccountEndpoint=https://x.acme.dev/;AccountKey=%s;",
    ),
    _secret(
        "otp url",
        _of("", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
        "otpauth://totp/Acme:relay?secret=%s&issuer=Acme",
        "TOTP seed: %s",
    ),
    _secret(
        "password in chat",
        _phrase,
        "try this one: %s (password for staging)",
        "pw: %s",
        "the db pass changed to %s yesterday",
        "log in as relay with %s",
    ),
    _secret(
        "password in other languages",
        _phrase,
        "Passwort lautet %s",
        "le mot de passe est %s",
        "la contraseña es %s",
        "hasło: %s",
        "wachtwoord: %s",
        "lösenord: %s",
    ),
    _secret(
        "graphql and json bodies",
        _phrase,
        '{"query": "mutation { login(password: \\"%s\\") { id } }"}',
        '{"credentials": {"user": "relay", "pass": "%s"}}',
    ),
    _secret(
        "code constants",
        _phrase,
        'private static final String PASSWORD = "%s";',
        'const dbPassword = "%s"',
        "SECRET = '%s'",
        'let apiSecret: &str = "%s";',
    ),
    _secret(
        "openvpn static key",
        lambda r: draw(r, HEX, 32),
        "-----BEGIN OpenVPN Static key V1-----\n%s\n-----END OpenVPN Static key V1-----",
    ),
    _secret(
        "license key",
        lambda r: "-".join(draw(r, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789", 5) for _ in range(5)),
        "license key: %s",
        "Product Key: %s",
        '{"licenseKey": "%s"}',
    ),
)
BROAD_NEGATIVES: tuple[Kind, ...] = (
    _stays(
        "action titles",
        "Deploy Service|Restart Worker|Rotate Logs|Open Ticket|Merge Queue",
        "Action: %s",
        "- Action: %s (done)",
        "Next action: %s",
    ),
    _stays(
        "team as owner",
        "Platform Team|Data Engineering|Core Runtime|Release Managers",
        "Owner: %s",
        "owner: %s",
        "Contact: %s",
        "Assignee: %s",
    ),
    _stays(
        "workflow names",
        "Build And Test|Publish Wheels|Nightly Smoke|Lint Check",
        "name: %s\non: push",
        "jobs:\n  a:\n    name: %s",
        "Workflow: %s",
    ),
    _stays(
        "product names",
        "React Router|Visual Studio|Apache Kafka|Spring Boot|Final Cut|Power Shell",
        '{"name": "%s", "version": "1.2.0"}',
        '{"displayName": "%s", "publisher": "ms"}',
        "using %s for this",
        "%s is installed",
    ),
    _stays(
        "headings",
        "Steps To Reproduce|Known Issues|Getting Started|Expected Behavior|Root Cause",
        "## %s",
        "%s:\n1. run it",
        "%s\n-----",
    ),
    _stays("greetings to nobody", "World|Everyone|All|Team|Customer", "Hello %s", "Hi %s,", "Dear %s,"),
    _stays(
        "account words",
        "postgres|readonly|service|admin|www-data",
        "user=%s",
        "DB_USER=%s",
        'connect(user="%s")',
        "Access denied for user '%s'@'localhost'",
    ),
    _stays(
        "typed fields",
        "str|string|User|Optional[str]|VARCHAR(80)",
        "username: %s",
        "email: %s",
        "owner: %s",
        '{"user": "%s"}',
    ),
    _stays(
        "field states",
        "required|optional|missing|invalid|unknown|none",
        "user: %s",
        "host: %s",
        "email: %s",
        "phone: %s",
        "author=%s",
    ),
    _stays(
        "addresses of memory and sockets",
        "0x7ffe12ab90|0.0.0.0:8080|[::]:443|unix:/run/x.sock",
        "address: %s",
        "addr=%s",
        "Address: %s",
    ),
    _stays(
        "hosts of services",
        "db|redis-master|localhost|kafka|api-gateway",
        "host: %s",
        "HOST=%s",
        "hostname: %s",
        "host=%s port=5432",
    ),
    _stays("csv of counts", "parser|lexer|scheduler|ledger", "name,count,share\n%s,12,0.4", "module,owner_count\n%s,3"),
    _stays(
        "code names",
        "UserService|OwnerRepository|hostResolver|author_id|emailValidator",
        "class %s:",
        "self.%s",
        "import %s",
        "call %s()",
    ),
    _stays(
        "sql over columns",
        "username|full_name|email|phone|owner_id",
        "SELECT %s FROM users",
        "CREATE INDEX ix ON users (%s)",
        "ORDER BY %s DESC",
    ),
    _stays(
        "company as author",
        "Acme Widgets Inc|The Kestrel Authors|Nordic Software Foundation",
        "Copyright 2026 %s",
        "Author: %s",
        "Maintainer: %s",
    ),
    _stays(
        "barcodes and orders",
        "4006381333931|9780306406157|0012345678905|ORD-4471-8812",
        "EAN %s",
        "item %s",
        "order %s",
    ),
    _stays(
        "build numbers", "20.4.118.7|2026.03.14.2|10.0.22631.3007|117.0.5938.92", "build %s", "version %s", "release %s"
    ),
    _stays("dates in rows", "2026 03 14 10 42|14-03-2026 10:42|1773484931|2026-03-14", "at %s", "ts %s", "row %s"),
    _stays(
        "policy arn",
        "arn:aws:iam::aws:policy/AdministratorAccess|arn:aws:s3:::relay-logs|arn:aws:lambda:eu-west-1::runtime",
        "attached %s",
        "%s",
    ),
    _stays(
        "uuids of objects",
        "3f0c1a52-8d1b-4c55-9d1e-0a4b7c2d9e10|9b2d7a60-1c3e-4f8a-8b5c-6d7e8f901234",
        "id: %s",
        "job %s finished",
        '{"request_id": "%s"}',
    ),
    _stays(
        "error titles",
        "Connection Refused|Segmentation Fault|Internal Server|Broken Pipe|Too Many",
        "Error: %s",
        "Cause: %s",
        "Status: %s",
    ),
    _stays(
        "metrics and labels",
        "p99_latency|queue_depth|kestrel|relay",
        "name: %s",
        'service="%s"',
        "app=%s",
        "project: %s",
    ),
    _stays(
        "code with passwords",
        "getpass.getpass()|None|hash_password(raw)|user.password|input()",
        "password = %s",
        "password=%s,",
    ),
    _stays(
        "sentences about passwords",
        "expires in 90 days|must not be empty|was rotated by the job",
        "the password %s",
        "Password %s.",
    ),
    _stays(
        "hashes near key words",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709|d41d8cd98f00b204e9800998ecf8427e",
        "cache key: %s",
        "key=%s",
        "commit author hash %s",
    ),
    _stays(
        "cities and months",
        "New York|San Francisco|March April|North Sea|Hong Kong",
        "region: %s",
        "in %s",
        "- %s\n- others",
    ),
    _stays(
        "menus and buttons",
        "Sign In|Log Out|Save Changes|New Project|Add User",
        "click %s",
        "Button: %s",
        "the %s page",
    ),
    _stays(
        "libraries by two words",
        "Lazy Loading|Event Sourcing|Circuit Breaker|Rate Limiter",
        "lead: %s",
        "according to %s docs",
        "we use %s here",
        "thanks to %s",
    ),
    _stays("test people", "alice|bob|foo|jdoe|johndoe", "user: %s@example.com", "mail %s@example.org"),
    _stays(
        "paths of packages",
        "lib/users/index.js|src/host/author.py|app/models/user.rb|docs/contact.md",
        "open %s",
        "M %s",
        "at %s:12",
    ),
)
BROAD: tuple[Kind, ...] = (*BROAD_SECRETS, *BROAD_PEOPLE, *BROAD_NUMBERS, *BROAD_NEGATIVES)


# Held-out kinds that a rule was written for with the kind in mind: their figure says nothing about unseen data.
_RULED = (
    "number plate;birth date abroad;mexican curp;todo mark;code owners;wireless network;windows whoami as a call;"
    "whoami as a call;hostname as a call;git user name as a call;id as a call;discord log;irc log;svn log;"
    "database message;caller identity;windows sid;machine-readable passport;nhs number;italian address;dutch address;"
    "us employer or itin;driving licence;uk bank account;network home;iostat header;r or debian package;icacls;"
    "android or ios device;access log;xml person;japanese mobile;swedish phone;polish mobile;shadow line;sqlcmd;"
    "terraform default;redis commands;requests auth;sql user;recovery codes;expect script;password in chat;"
    "apache password file;php settings;unattended setup;service account json;windows credential;one-time code"
)
RULED = frozenset(_RULED.split(";"))


def split(kinds: Iterable[Kind]) -> tuple[list[Kind], list[Kind]]:
    """Return the development half, whose failures may be looked at, and the held-out half; each group is halved."""
    developed, held_out = [], []
    ordered = sorted(kinds, key=lambda kind: (kind.group, kind.name))
    for group in ("secret", "personal", "negative"):
        members = [kind for kind in ordered if kind.group == group]
        random.Random(SPLIT_SEED).shuffle(members)
        developed += members[: len(members) // 2]
        held_out += members[len(members) // 2 :]
    return developed, held_out
