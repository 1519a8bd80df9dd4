"""Kinds written before the rules that learn names from a session: identities as tools and systems print them."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.suite.corpus import ALNUM, B64, DIGITS, HEX, LOWER, UPPER, URLSAFE, Kind, Planted, draw

__all__ = ["UNSEEN", "UNSEEN_AFTER"]

_FIRST = (
    "Oluwaseun",
    "Maite",
    "Dmitri",
    "Ingeborg",
    "Thaddeus",
    "Yevheniya",
    "Callum",
    "Priyanka",
    "Zbigniew",
    "Aoife",
)
_LAST = (
    "Adeyemi",
    "Etxeberria",
    "Volkonsky",
    "Kristoffersen",
    "Abernathy",
    "Shevchuk",
    "McTavish",
    "Raghunathan",
    "Wojciechowski",
    "Gallagher",
)
_STONES = ("basalt", "heron", "quillon", "tundra", "marlin", "obelisk", "juniper", "kodiak")

Draw = Callable[[random.Random], str]


def _first(rng: random.Random) -> str:
    return rng.choice(_FIRST)


def _last(rng: random.Random) -> str:
    return rng.choice(_LAST)


def _full(rng: random.Random) -> str:
    return f"{_first(rng)} {_last(rng)}"


def _account(rng: random.Random) -> str:
    first, last = _first(rng).lower(), _last(rng).lower()
    return rng.choice((first[0] + last, f"{first}.{last[0]}", f"{last}{first[0]}", f"{first}{rng.randrange(10, 99)}"))


def _host(rng: random.Random) -> str:
    return f"{rng.choice(_STONES)}-{rng.choice(('db', 'ws', 'laptop', 'build'))}{rng.randrange(1, 40):02d}"


def _kind(group: str, name: str, value: Draw, *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, group, make, held_out=True)


def _pair(name: str, one: Draw, two: Draw, *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        first, second = one(rng), two(rng)
        return Planted(rng.choice(frames).replace("%1", first).replace("%2", second), (first, second))

    return Kind(name, "personal", make, held_out=True)


def _digits(*shape: int, joint: str = " ") -> Draw:
    return lambda rng: joint.join(rng.choice("23456789") + draw(rng, DIGITS, size - 1) for size in shape)


def _password(rng: random.Random) -> str:
    return rng.choice(("Larch", "copper", "Meridian", "tulip")) + rng.choice("#!_-") + draw(rng, ALNUM, 7)


def _token(prefix: str, alphabet: str, size: int) -> Draw:
    return lambda rng: prefix + draw(rng, alphabet, size)


def _nif(rng: random.Random) -> str:
    number = rng.randrange(10_000_000, 99_999_999)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def _cpf(rng: random.Random) -> str:
    digits = [rng.randrange(10) for _ in range(9)]
    for _ in range(2):
        rest = sum(digit * weight for digit, weight in zip(digits, range(len(digits) + 1, 1, -1), strict=True)) % 11
        digits.append(0 if rest < 2 else 11 - rest)
    text = "".join(map(str, digits))
    return f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"


_PERSONAL = (
    _pair(
        "shell prompt",
        _account,
        _host,
        "%1@%2:~/relay$ make check\nok",
        "[%1@%2 relay]$ ls\nMakefile",
        "%1@%2 ~ % brew list",
        "┌──(%1㉿%2)-[~/relay]\n└─$ nmap -v",
    ),
    _pair(
        "powershell prompt",
        _account,
        _host,
        "PS C:\\Users\\%1\\relay> hostname\n%2",
        "C:\\Users\\%1>echo %COMPUTERNAME%\n%2",
    ),
    _kind("personal", "whoami", _account, "$ whoami\n%s\n$ pwd\n/srv/relay", "> id -un\n%s"),
    _kind("personal", "id output", _account, "uid=1003(%s) gid=1003(%s) groups=1003(%s),27(sudo),998(docker)"),
    _kind(
        "personal",
        "ls owners",
        _account,
        "total 12\n-rw-r--r-- 1 %s staff 512 Mar  3 10:11 relay.toml\ndrwxr-xr-x 4 %s staff 128 Mar  3 10:11 src",
    ),
    _kind("personal", "passwd line", _account, "%s:x:1004:1004:,,,:/var/lib/%s:/bin/zsh"),
    _pair("passwd gecos", _account, _full, "%1:x:1002:1002:%2,,,:/home/%1:/bin/bash"),
    _kind(
        "personal",
        "environment dump",
        _account,
        "SHELL=/bin/bash\nUSER=%s\nLANG=C.UTF-8",
        "LOGNAME=%s\nTERM=xterm",
        "USERNAME=%s\r\nUSERDOMAIN=CORP",
        "export SUDO_USER=%s",
    ),
    _kind("personal", "environment host", _host, "HOSTNAME=%s\nSHLVL=1", "COMPUTERNAME=%s\nOS=Windows_NT"),
    _kind("personal", "home variable", _account, "HOME=/export/home/%s\nPWD=/srv/relay", "HOME=/usr/home/%s"),
    _pair(
        "syslog line",
        _host,
        _account,
        "Mar  3 10:11:12 %1 sshd[4121]: Accepted publickey for %2 from 10.0.0.4",
        "2026-03-03T10:11:12+01:00 %1 sudo:   %2 : TTY=pts/0 ; PWD=/srv ; COMMAND=/bin/ls",
    ),
    _kind("personal", "journal host", _host, "Mar 03 10:11:12 %s systemd[1]: Started relay.service."),
    _kind(
        "personal",
        "mail from",
        _full,
        "From: %s <relay@lists.example>\nSubject: Relay\n\nhello",
        'Reply-To: "%s" <noreply@lists.example>',
        "Cc: %s <all@lists.example>",
    ),
    _pair(
        "git blame",
        _full,
        _full,
        "a1b2c3d4 (%1 2026-03-02 10:11:12 +0100 12) retry = 3\n9f8e7d6c (%2 2026-03-02 10:11:12 +0100 13) limit = 9",
    ),
    _kind("personal", "git shortlog", _full, "$ git shortlog -sn\n    41\t%s\n     2\trelay-bot"),
    _kind("personal", "git log format", _full, "* 1f2e3d4 - Cap the queue (3 days ago) <%s>"),
    _kind(
        "personal",
        "git config",
        _full,
        "[user]\n\tname = %s\n\tsigningkey = none",
        "user.name=%s\ncore.editor=vim",
        'git config --global user.name "%s"',
    ),
    _kind(
        "personal",
        "co-author trailer",
        _full,
        "Cap the queue\n\nCo-authored-by: %s <noreply@example.com>",
        "Reviewed-by: %s <noreply@example.com>",
        "Tested-by: %s",
    ),
    _kind(
        "personal",
        "package author",
        _full,
        'authors = [{name = "%s"}]',
        '"author": {"name": "%s", "url": ""}',
        "Maintainer: %s <noreply@example.com>",
        "# Copyright (c) 2026 %s",
    ),
    _pair(
        "ssh target",
        _account,
        _host,
        "ssh -p 2222 %1@%2 uptime",
        "scp relay.tgz %1@%2:/srv/",
        "rsync -a x/ %1@%2:x/",
        "sftp %1@%2",
    ),
    _pair("ssh config", _host, _account, "Host %1\n  HostName 10.0.0.9\n  User %2\n  Port 22"),
    _kind(
        "personal",
        "uname",
        _host,
        "Linux %s 6.8.0-31-generic #31-Ubuntu SMP x86_64 GNU/Linux",
        "Darwin %s 23.4.0 Darwin Kernel Version 23.4.0",
    ),
    _kind(
        "personal", "hostname command", _host, "$ hostname\n%s\n$ uptime", " Static hostname: %s\n Icon name: computer"
    ),
    _pair(
        "who and last",
        _account,
        _host,
        "%1  pts/0        2026-03-03 10:11 (%2)",
        "%1     pts/1   %2   Tue Mar  3 10:11 - 10:20",
    ),
    _kind("personal", "ps owners", _account, "USER       PID %CPU %MEM COMMAND\n%s     4121  0.0  0.1 python relay.py"),
    _kind(
        "personal",
        "docker or kube user",
        _account,
        "current-context: dev\nusers:\n- name: %s\n  user: {}",
        "Login Succeeded, %s",
    ),
    _kind(
        "personal",
        "api profile",
        _full,
        '{"login": "relay-dev", "name": "%s", "company": null, "bio": ""}',
        '{"displayName": "%s", "active": true}',
        '{"given_name": "x", "full_name": "%s"}',
    ),
    _pair(
        "api first and last",
        _first,
        _last,
        '{"firstName": "%1", "lastName": "%2"}',
        '{"given_name": "%1", "family_name": "%2"}',
        "first_name: %1\nlast_name: %2",
    ),
    _kind(
        "personal", "jira assignee", _full, "Assignee: %s\nStatus: Open", "Reporter:  %s", "assigned to %s on Tuesday"
    ),
    _kind(
        "personal",
        "signature",
        _full,
        "The relay is down again.\n\nBest regards,\n%s",
        "Done, see above.\n\nThanks,\n%s",
        "Viele Grüße\n%s",
    ),
    _kind(
        "personal",
        "self introduction",
        _full,
        "Hi, my name is %s and I run the relay.",
        "This is %s from support.",
        "I'm %s, the on-call.",
    ),
    _kind("personal", "slack mention", _account, "@%s can you look at the relay queue?", "cc @%s"),
    _kind(
        "personal",
        "github handle url",
        _account,
        "see github.com/%s/relay-fork",
        "https://gitlab.com/%s/relay",
        "git@github.com:%s/relay.git",
    ),
    _kind("personal", "spanish nif", _nif, "DNI: %s", "NIF %s del titular"),
    _kind("personal", "brazilian cpf", _cpf, "CPF: %s", '"cpf": "%s"'),
    _kind(
        "personal",
        "french phone",
        lambda rng: "0" + rng.choice("67") + " " + _digits(2, 2, 2, 2)(rng),
        "Tél. : %s",
        "appelez le %s",
    ),
    _kind("personal", "german phone", lambda rng: "+49 " + _digits(3, 7)(rng), "Tel.: %s", "erreichbar unter %s"),
    _kind(
        "personal",
        "indian mobile",
        lambda rng: "+91 9" + draw(rng, DIGITS, 4) + " " + draw(rng, DIGITS, 5),
        "Mobile: %s",
    ),
    _kind(
        "personal",
        "us social security",
        lambda rng: f"{rng.randrange(100, 665)}-{rng.randrange(10, 99)}-{rng.randrange(1000, 9999)}",
        "SSN: %s",
        '"ssn": "%s"',
    ),
    _kind(
        "personal",
        "street address",
        lambda rng: (
            f"{rng.randrange(2, 190)} {rng.choice(('Maple', 'Harbour', 'Linden'))} "
            f"{rng.choice(('Street', 'Avenue', 'Road'))}"
        ),
        "ship to %s, Leeds",
        "Address: %s",
    ),
    _kind(
        "personal",
        "german address",
        lambda rng: f"{rng.choice(('Linden', 'Garten', 'Berg'))}{rng.choice(('straße', 'weg'))} {rng.randrange(2, 90)}",
        "Anschrift: %s, 10435 Berlin",
    ),
    _kind(
        "personal",
        "birth date",
        lambda rng: f"19{rng.randrange(50, 99)}-0{rng.randrange(1, 9)}-1{rng.randrange(9)}",
        "date_of_birth: %s",
        "DOB: %s",
        "born on %s",
    ),
    _kind(
        "personal",
        "passport",
        lambda rng: rng.choice("CFGH") + draw(rng, DIGITS, 8),
        "passport no. %s",
        "Passport number: %s",
    ),
    _kind(
        "personal",
        "mac address",
        lambda rng: ":".join(draw(rng, HEX, 2) for _ in range(6)),
        "ether %s brd ff:ff:ff:ff:ff:ff",
        "link/ether %s",
    ),
    _kind(
        "personal",
        "coordinates",
        lambda rng: f"{rng.randrange(35, 60)}.{draw(rng, DIGITS, 6)}, -{rng.randrange(2, 9)}.{draw(rng, DIGITS, 6)}",
        "lat/lon: %s",
        "location: %s",
    ),
    _kind(
        "personal",
        "public ip",
        lambda rng: f"81.{rng.randrange(20, 200)}.{rng.randrange(2, 200)}.{rng.randrange(2, 250)}",
        "Last login: Tue Mar  3 10:11 from %s",
        "client %s, server: relay",
    ),
    _kind("personal", "serial number", lambda rng: "C02" + draw(rng, UPPER, 9), "Serial Number (system): %s"),
)

_SECRETS = (
    _kind("secret", "basic header", lambda rng: draw(rng, B64, 30) + "==", "Authorization: Basic %s"),
    _kind("secret", "digitalocean token", _token("dop_v1_", HEX, 64), "DO_TOKEN=%s", "doctl auth init -t %s"),
    _kind("secret", "linear key", _token("lin_api_", ALNUM, 40), "linear: %s"),
    _kind("secret", "groq key", _token("gsk_", ALNUM, 52), "client = Groq('%s')"),
    _kind("secret", "planetscale", _token("pscale_tkn_", URLSAFE, 43), "service token %s"),
    _kind("secret", "doppler", _token("dp.pt.", ALNUM, 43), "doppler configure set token %s"),
    _kind("secret", "grafana", _token("glsa_", ALNUM, 32), "GRAFANA_TOKEN=%s_1a2b3c4d"),
    _kind("secret", "databricks", _token("dapi", HEX, 32), "databricks token: %s"),
    _kind("secret", "postman", _token("PMAK-", HEX, 24), "X-Api-Key: %s-1234567890123456789012345678901234"),
    _kind("secret", "mapbox", lambda rng: "sk.eyJ1" + draw(rng, ALNUM, 60) + "." + draw(rng, URLSAFE, 22), "mapbox %s"),
    _kind("secret", "mssql connection", _password, "Server=tcp:db;Database=relay;User Id=app;Password=%s;Encrypt=True"),
    _kind("secret", "jdbc", _password, "jdbc:postgresql://db/relay?user=app&password=%s"),
    _kind("secret", "pgpass", _password, "db:5432:relay:app:%s"),
    _kind("secret", "curl user", _password, "curl -u app:%s https://relay.example/api"),
    _kind("secret", "mysql short flag", _password, "mysql -u app -p%s relay"),
    _kind("secret", "redis cli", _password, "redis-cli -h cache -a %s ping"),
    _kind("secret", "yaml password", _password, "db:\n  user: app\n  password: %s\n  port: 5432"),
    _kind("secret", "sshpass", _password, "sshpass -p '%s' ssh app@relay"),
    _kind("secret", "net use", _password, "net use \\\\files\\relay %s /user:app"),
    _kind("secret", "powershell secure string", _password, 'ConvertTo-SecureString "%s" -AsPlainText -Force'),
    _kind("secret", "said password", _password, "the password is %s", "login with app / %s", "use %s as the password"),
    _kind("secret", "wifi psk", _password, 'ssid="relay"\npsk="%s"'),
    _kind(
        "secret",
        "totp url",
        lambda rng: draw(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
        "otpauth://totp/relay?secret=%s&issuer=relay",
    ),
    _kind("secret", "django key", lambda rng: draw(rng, LOWER + "!@#$%^&*(-_=+)", 50), "SECRET_KEY = '%s'"),
    _kind("secret", "jenkins crumb", _token("", HEX, 64), "Jenkins-Crumb: %s"),
    _kind("secret", "vault unseal", lambda rng: draw(rng, B64, 44), "Unseal Key 1: %s"),
    _kind("secret", "age key", _token("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "%s"),
    _kind("secret", "set-cookie session", _token("", HEX, 40), "Set-Cookie: sid=%s; HttpOnly; Path=/"),
    _kind(
        "secret",
        "azure storage",
        lambda rng: draw(rng, B64, 86) + "==",
        "DefaultEndpointsProtocol=https;AccountName=relay;AccountKey=%s;EndpointSuffix=core.windows.net",
    ),
    _kind(
        "secret",
        "kube token",
        lambda rng: "eyJhbGciOi" + draw(rng, URLSAFE, 30) + "." + draw(rng, URLSAFE, 80) + "." + draw(rng, URLSAFE, 80),
        "    token: %s",
    ),
)

_NEGATIVES = (
    _kind("negative", "root owner", lambda _: "-rw-r--r-- 1 root root 512 Mar  3 10:11 relay.toml", "%s"),
    _kind("negative", "service uid", lambda _: "uid=33(www-data) gid=33(www-data)", "%s"),
    _kind(
        "negative",
        "service passwd",
        lambda _: "postgres:x:114:120:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash",
        "%s",
    ),
    _kind("negative", "git hash log", lambda rng: draw(rng, HEX, 7) + " Cap the queue at 512", "%s"),
    _kind("negative", "decorator", lambda _: "@pytest.fixture\n@dataclass", "%s"),
    _kind("negative", "css media", lambda _: "@media (max-width: 640px)", "%s"),
    _kind("negative", "npm scope", lambda _: "@types/node@20.11.5", "%s"),
    _kind("negative", "localhost prompt", lambda _: "root@localhost:/# make", "%s"),
    _kind(
        "negative",
        "test count",
        lambda rng: f"{rng.randrange(100, 900)} passed, {rng.randrange(2, 9)} failed in 12.41s",
        "%s",
    ),
    _kind("negative", "title words", lambda _: "Best Practices for Queue Design", "%s", "# %s"),
    _kind("negative", "author of a tool", lambda _: "name = relay-server\nversion = 0.4.1", "%s"),
    _kind("negative", "cron line", lambda _: "15 3 * * 1 /srv/relay/bin/rotate", "%s"),
    _kind("negative", "semver range", lambda _: '"vite": "^5.2.11"', "%s"),
    _kind("negative", "image tag", lambda rng: f"relay:2026.03.{rng.randrange(10, 28)}-slim", "%s"),
    _kind("negative", "home url path", lambda _: "https://relay.example/home/overview/tiles", "%s"),
    _kind("negative", "placeholder password", lambda _: "password: ${DB_PASSWORD}", "%s"),
    _kind(
        "negative",
        "uuid of a job",
        lambda rng: (
            f"job {draw(rng, HEX, 8)}-{draw(rng, HEX, 4)}-4{draw(rng, HEX, 3)}-a{draw(rng, HEX, 3)}-"
            f"{draw(rng, HEX, 12)}"
        ),
        "%s",
    ),
    _kind("negative", "kernel user word", lambda _: "USER PID %CPU %MEM COMMAND", "%s"),
    _kind("negative", "sentence with may", lambda _: "This May change when Grace periods end", "%s"),
    _kind("negative", "loop address", lambda _: "listening on 127.0.0.1:8471", "%s"),
    _kind("negative", "systemd unit", lambda _: "user@1000.service loaded active running", "%s"),
    _kind("negative", "python author words", lambda _: "Author: the relay team", "%s"),
)

UNSEEN: tuple[Kind, ...] = (*_PERSONAL, *_SECRETS, *_NEGATIVES)

# Written after the rules for the kinds above, and never looked at by any.
_FIRST_AFTER = ("Siobhan", "Anselmo", "Rukhsana", "Torvald", "Mirembe", "Casimir")
_LAST_AFTER = ("Okonkwo", "Brandvold", "Delacroix", "Szymanski", "Haverkamp", "Tanaka")


def _other(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST_AFTER)} {rng.choice(_LAST_AFTER)}"


def _login(rng: random.Random) -> str:
    return rng.choice(_FIRST_AFTER).lower()[:3] + rng.choice(_LAST_AFTER).lower()[:5] + draw(rng, DIGITS, 1)


def _box(rng: random.Random) -> str:
    return f"{rng.choice(('orca', 'vega', 'lupin', 'cedar'))}{rng.randrange(10, 99)}"


UNSEEN_AFTER: tuple[Kind, ...] = (
    _kind("personal", "fish prompt", _login, "%s@cedar77 ~/relay> make", "%s@lupin31 /srv/relay (main)> git status"),
    _kind("personal", "sudo prompt", _login, "[sudo] password for %s:", "%s is not in the sudoers file."),
    _kind("personal", "crontab of", _login, "no crontab for %s", "crontab: installing new crontab for %s"),
    _kind("personal", "chown", _login, "chown -R %s:staff /srv/relay", "sudo -u %s make deploy", "su - %s"),
    _kind("personal", "useradd", _login, "useradd -m -s /bin/bash %s", "usermod -aG docker %s"),
    _kind("personal", "stat owner", _login, "Access: (0644/-rw-r--r--)  Uid: ( 1001/%s)   Gid: ( 1001/%s)"),
    _kind("personal", "tar listing", _login, "-rw-r--r-- %s/staff      512 2026-03-03 10:11 relay.toml"),
    _kind("personal", "lsof", _login, "COMMAND  PID USER   FD TYPE\npython  4121 %s    3u IPv4"),
    _kind("personal", "systemd slice", _login, "Started Session 12 of User %s."),
    _kind("personal", "docker label", _other, 'LABEL maintainer="%s"', 'org.opencontainers.image.authors="%s"'),
    _kind("personal", "git log author flag", _other, 'git log --author="%s" --oneline', "Author: %s"),
    _kind("personal", "git merge", _other, "Merge: 1a2b3c4 5d6e7f8\nAuthor: %s <x@lists.example>"),
    _kind("personal", "changelog entry", _other, " -- %s <x@lists.example>  Tue, 03 Mar 2026 10:11:12 +0100"),
    _kind("personal", "codeowner comment", _other, "# contact: %s", "// TODO(%s): cap the queue"),
    _kind("personal", "chat line", _other, "[10:11] %s: the relay is down", "%s 10:11 AM\nthe relay is down"),
    _kind(
        "personal",
        "meeting notes",
        _other,
        "Attendees: %s, the relay team",
        "Present: %s",
        "Action: %s to cap the queue",
    ),
    _kind("personal", "greeting", _other, "Hi %s,\n\nthe relay is down.", "Dear %s,", "Hallo %s,"),
    _kind(
        "personal",
        "calendar",
        _other,
        "ORGANIZER;CN=%s:mailto:x@lists.example",
        'ATTENDEE;CN="%s":mailto:x@lists.example',
    ),
    _kind("personal", "vcard", _other, "BEGIN:VCARD\nFN:%s\nEND:VCARD"),
    _kind("personal", "certificate subject", _other, "subject=CN = %s, O = Relay", "Issuer: O=Relay, CN=%s"),
    _kind("personal", "ssh key comment", _login, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB %s@orca55"),
    _kind("personal", "etc hosts", _box, "127.0.1.1\t%s", "192.168.1.7   %s.lan %s"),
    _kind(
        "personal", "ping host", _box, "PING %s.lan (192.168.1.7) 56(84) bytes", "ssh: Could not resolve hostname %s"
    ),
    _kind("personal", "windows net user", _login, "User name                    %s\nFull Name"),
    _kind("personal", "mac computer name", _other, "ComputerName: %s's MacBook Pro"),
    _kind("personal", "netherlands bsn", lambda rng: draw(rng, "123456789", 9), "BSN: %s", "burgerservicenummer %s"),
    _kind("personal", "polish pesel", lambda rng: "8" + draw(rng, DIGITS, 10), "PESEL: %s"),
    _kind(
        "personal",
        "spanish mobile",
        lambda rng: "6" + draw(rng, DIGITS, 2) + " " + draw(rng, DIGITS, 3) + " " + draw(rng, DIGITS, 3),
        "Móvil: %s",
        "llámame al %s",
    ),
    _kind(
        "personal",
        "japanese phone",
        lambda rng: "090-" + draw(rng, "123456789", 4) + "-" + draw(rng, DIGITS, 4),
        "電話: %s",
    ),
    _kind("personal", "imei", lambda rng: "35" + draw(rng, DIGITS, 13), "IMEI: %s"),
    _kind("secret", "airtable", lambda rng: "pat" + draw(rng, ALNUM, 14) + "." + draw(rng, HEX, 64), "AIRTABLE=%s"),
    _kind("secret", "replicate", _token("r8_", ALNUM, 37), "REPLICATE_API_TOKEN=%s"),
    _kind("secret", "supabase", _token("sbp_", HEX, 40), "supabase login --token %s"),
    _kind(
        "secret",
        "tailscale",
        lambda rng: "tskey-auth-" + draw(rng, ALNUM, 12) + "-" + draw(rng, ALNUM, 32),
        "up --authkey %s",
    ),
    _kind("secret", "fly", lambda rng: "FlyV1 fm2_" + draw(rng, B64, 80), "FLY_API_TOKEN=%s"),
    _kind("secret", "oracle sqlplus", _password, "sqlplus app/%s@db"),
    _kind("secret", "mongo uri", _password, "mongodb+srv://app:%s@relay.mongodb.example/x"),
    _kind("secret", "ansible become", _password, "ansible_become_pass: %s", "ansible_ssh_pass=%s"),
    _kind("secret", "maven settings", _password, "<username>app</username>\n<password>%s</password>"),
    _kind("secret", "npmrc", _token("", ALNUM, 36), "//registry.relay.example/:_authToken=%s"),
    _kind("secret", "netrc", _password, "machine relay.example login app password %s"),
    _kind("secret", "smtp auth", lambda rng: draw(rng, B64, 24), "smtp_password = %s"),
    _kind("secret", "openssl pass", _password, "openssl enc -d -aes-256-cbc -pass pass:%s -in x"),
    _kind("secret", "gpg passphrase", _password, "gpg --batch --passphrase %s -d x.gpg"),
    _kind("negative", "chown root", lambda _: "chown -R root:root /srv/relay", "%s"),
    _kind("negative", "attendee count", lambda _: "Attendees: 12", "%s"),
    _kind("negative", "hi all", lambda _: "Hi all,\n\nthe relay is down.", "%s"),
    _kind("negative", "todo", lambda _: "// TODO(v2): cap the queue", "%s"),
    _kind("negative", "author module", lambda _: "from authors import AuthorList", "%s"),
    _kind("negative", "host config", lambda _: "Host *\n  ServerAliveInterval 60", "%s"),
    _kind("negative", "iso log", lambda _: "2026-03-03T10:11:12Z INFO relay: queue at 512", "%s"),
    _kind("negative", "chat of a bot", lambda _: "[10:11] relay-bot: queue at 512", "%s"),
    _kind("negative", "long number", lambda rng: "offset " + draw(rng, "123456789", 11), "%s"),
    _kind("negative", "call number", lambda rng: "call 3 of 9 took 12.41 s", "%s"),
)
