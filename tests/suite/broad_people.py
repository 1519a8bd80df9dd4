"""Broad kinds of personal data: accounts, hosts and people as systems of many makers show them."""

from __future__ import annotations

import random
import unicodedata

from tests.suite.corpus import HEX, Kind, Planted, draw

__all__ = ["BROAD_PEOPLE", "PLACES", "drawn_person"]

_FIRST_NAMES = (
    "Ayodele Birgitta Cosmin Dagmar Emeka Fionnuala Gaspard Hyacinth Ileana Jorund Kazimir Leocadia "
    "Mbali Nikhil Ottilie Parvati Quirino Rosalind Szymon Tadashi Ulrike Venkatesh Wambui Xiomara "
    "Yaroslav Zuleika Anouk Bronagh Caetano Desta Eleftheria Ferenc Giuliana Haruki Ignacy Jelena "
    "Kwabena Ludmila Mireille Nazanin Oisin Pernille Ruaridh Saoirse Tomasz Umberto Viveca Wiebke "
    "Yusuf Zdenka Márta Søren José Zoë Jürgen "
)
_FIRST = tuple(_FIRST_NAMES.split())
_ONSETS = (
    "Bra",
    "Cor",
    "Dvo",
    "Eker",
    "Fal",
    "Grun",
    "Hal",
    "Ivan",
    "Jor",
    "Kova",
    "Lind",
    "Mor",
    "Nav",
    "Oke",
    "Pet",
    "Ras",
    "Sten",
    "Tor",
    "Ulv",
    "Vas",
    "Wes",
    "Yama",
    "Zie",
    "Mac",
    "Oden",
    "Sza",
    "Quin",
    "Thor",
)
_MIDDLES = ("den", "lo", "ri", "ma", "ve", "si", "ga", "nu", "ber", "ta", "lin", "")
_ENDINGS = (
    "berg",
    "ski",
    "sson",
    "ova",
    "nen",
    "moto",
    "escu",
    "wala",
    "heim",
    "etti",
    "kar",
    "dze",
    "well",
    "quist",
    "oglu",
    "poulos",
    "mann",
    "ez",
    "grove",
    "bridge",
)
_DOMAINS = ("hollowaysystems.io", "hollowaysystems.com", "nordkraft.se", "nordkraft.com", "brightloom.co.uk")
PLACES = ("fjord", "mistral", "cobalt", "larch", "puffin", "sable", "osprey", "granite", "walnut", "pewter", "zephyr")


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return plain.lower()


def drawn_person(rng: random.Random) -> dict[str, str]:
    """Draw somebody: first and last name, account, host, mail address, and words around them."""
    first = rng.choice(_FIRST)
    last = rng.choice(_ONSETS) + rng.choice(_MIDDLES) + rng.choice(_ENDINGS)
    one, two = _fold(first), _fold(last)
    account = rng.choice(
        (
            one[0] + two,
            f"{one}.{two}",
            f"{two}{one[0]}",
            f"{one}_{two}",
            f"{one[:3]}{two[:4]}",
            f"{one}{rng.randrange(10, 99)}",
        )
    )
    host = rng.choice(
        (
            f"{rng.choice(PLACES)}-{rng.choice(('ws', 'nb', 'vm', 'pg', 'edge'))}{rng.randrange(1, 90)}",
            f"{rng.choice(PLACES)}{rng.randrange(100, 999)}",
            f"ws-{two}",
            f"{one}-thinkpad",
        )
    )
    day = f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
    return {
        "%F": first,
        "%L": last,
        "%u": account,
        "%U": account.upper(),
        "%h": host,
        "%H": host.upper(),
        "%d": day,
        "%x": draw(rng, HEX, 9),
        "%n": str(rng.randrange(1000, 9999)),
        "%m": f"{account}@{rng.choice(_DOMAINS)}",
    }


_IDENTITY = ("%F", "%L", "%u", "%U", "%h", "%H", "%m")


def _who(name: str, *frames: str, command: str = "") -> Kind:
    """Make a kind of text about somebody; everything in it that leads to them must go."""

    def make(rng: random.Random) -> Planted:
        person, frame = drawn_person(rng), rng.choice(frames)
        text = frame
        for mark, value in person.items():
            text = text.replace(mark, value)
        values = tuple(person[mark] for mark in _IDENTITY if mark in frame)
        listed = tuple(person[mark] for mark in ("%u", "%h", "%m") if mark in frame)
        if "%L" in frame and "%F" in frame:
            listed = (f"{person['%F']} {person['%L']}", person["%F"], person["%L"], *listed)
        elif "%U" in frame or "%H" in frame:
            listed = (*listed, *(person[mark] for mark in ("%u", "%h") if mark.upper() in frame))
        return Planted(text, values, listed, command)

    return Kind(name, "personal", make, held_out=True)


_SYSTEMS = (
    _who("whoami as a call", "%u", "%u\n", command="whoami"),
    _who("hostname as a call", "%h", "%h.corp.internal", command="hostname -f"),
    _who("id as a call", "uid=1004(%u) gid=1004(%u) groups=1004(%u),27(sudo)", command="id"),
    _who("git user name as a call", "%F %L", command="git config --get user.name"),
    _who("computer name as a call", "%F’s MacBook Air", "%F %L’s iMac", command="scutil --get ComputerName"),
    _who("windows whoami as a call", "CORP\\%u", "nordkraft\\%u", command="whoami"),
    _who("last", "%u   pts/2        203.0.113.9     Tue Mar  3 10:42   still logged in\nreboot   system boot"),
    _who(
        "mac software profile",
        "      Computer Name: %h\n      User Name: %F %L (%u)\n      Secure Virtual Memory: Enabled",
    ),
    _who("mac directory service", "RealName:\n %F %L\nRecordName: %u\nUniqueID: 502"),
    _who(
        "systeminfo",
        "Host Name:                 %H\n"
        "OS Name:                   Microsoft Windows 11 Pro\nRegistered Owner:          %F %L",
    ),
    _who(
        "ipconfig",
        "Windows IP Configuration\n\n   Host Name . . . . . . . . . . . . : %H\n   Node Type . . . . : Hybrid",
    ),
    _who(
        "windows security event", "Subject:\n\tAccount Name:\t\t%u\n\tAccount Domain:\t\tCORP\n\tWorkstation Name:\t%H"
    ),
    _who("icacls", "C:\\build\\out CORP\\%u:(OI)(CI)(F)\n             BUILTIN\\Administrators:(F)"),
    _who(
        "local users",
        "Name               Enabled Description\n"
        "----               ------- -----------\n%u            True    \nGuest              False",
    ),
    _who(
        "query user",
        " USERNAME              SESSIONNAME        ID  STATE   IDLE TIME  LOGON TIME\n"
        ">%u              rdp-tcp#3           2  Active          .  3/3/2026 10:42 AM",
    ),
    _who(
        "docker info",
        " Name: %h\n ID: 7TRN:IPZB\n Docker Root Dir: /var/lib/docker\n"
        " Username: %u\n Registry: https://index.docker.io/v1/",
    ),
    _who(
        "slurm queue",
        "JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        "%n    gpu   train-a  %u  R    1:02:11      1 node14",
    ),
    _who("iostat header", "Linux 6.1.0-18-amd64 (%h) \t03/03/2026 \t_x86_64_\t(8 CPU)"),
    _who("nmap report", "Nmap scan report for %h.nordkraft.lan (10.4.0.12)\nHost is up (0.0021s latency)."),
    _who("dhcp lease", 'lease 10.4.0.77 {\n  client-hostname "%h";\n  binding state active;\n}'),
    _who("vnc server", "New 'X' desktop is %h:1\nStarting applications specified in /etc/X11\nLog file is %h:1.log"),
    _who(
        "network home",
        "/nfs/users/%u/project/src",
        "/data/users/%u/checkpoints",
        "\\\\filer02\\home$\\%u\\Documents",
        "~%u/bin/run",
    ),
    _who("mailbox", "From %u@%h Tue Mar  3 10:42:11 2026\nSubject: cron output"),
    _who("ansible inventory", "[db]\n%h ansible_host=10.4.0.9 ansible_user=%u ansible_port=22"),
    _who("ssh verbose", "debug1: Authenticating to %h:22 as '%u'\ndebug1: Next authentication method: publickey"),
    _who("kernel ring buffer", "[    1.204411] systemd[1]: Set hostname to <%h>."),
    _who("machinectl session", "SESSION  UID USER   SEAT  TTY\n      4 1000 %u seat0 tty2\n\n1 sessions listed."),
    _who("keychain item", '    "acct"<blob>="%u"\n    "svce"<blob>="relay-deploy"'),
    _who(
        "android or ios device",
        "List of devices attached\n* Device: %F %L's Pixel 9 (model:Pixel_9)",
        "Bluetooth: connected to %F's AirPods Pro",
    ),
)
_CLOUD = (
    _who(
        "caller identity",
        '{"UserId": "AIDAEXAMPLE", "Account": "000000000000", "Arn": "arn:aws:iam::000000000000:user/%u"}',
    ),
    _who(
        "assumed role",
        "arn:aws:sts::000000000000:assumed-role/Deployer/%m",
        "arn:aws:sts::000000000000:assumed-role/Admin/%u",
    ),
    _who("azure account", '{"name": "Pay-As-You-Go", "state": "Enabled", "user": {"name": "%u", "type": "user"}}'),
    _who("gcloud project", "[core]\naccount = %m\nproject = relay-dev"),
    _who("kubectl whoami", "ATTRIBUTE   VALUE\nUsername    %u\nGroups      [system:authenticated]"),
    _who(
        "kubernetes labels",
        "metadata:\n  labels:\n    app: relay\n    created-by: %u\n    owner: %u",
        "annotations:\n  kubernetes.io/created-by: %u",
    ),
    _who(
        "terraform variables", 'admin_username = "%u"\nvm_size = "Standard_B2s"', 'owner_email = "%m"\nowner = "%F %L"'
    ),
    _who("openstack server", "| key_name | %u-key |\n| user_name | %u |\n| status | ACTIVE |"),
)
_VERSIONS = (
    _who("git log one line", "%x %F %L %d Fix the retry loop", "%x - %F %L, 3 weeks ago : Fix retry"),
    _who("git author flag", "git log --author='%F %L' --since=2.weeks", 'git commit --author="%F %L <%m>" -m wip'),
    _who("svn log", "r%n | %u | %d 12:04:11 +0100 (Tue, 03 Mar 2026) | 2 lines"),
    _who("perforce change", "Change %n on 2026/03/03 by %u@%h 'Fix retry'"),
    _who("mercurial log", "changeset:   %n:%x\nuser:        %u\ndate:        Tue Mar 03 10:42:11 2026"),
    _who("code owners", "/src/relay/   @%u @acme/platform\n*.sql @%u"),
    _who(
        "pull request view", "title:\tFix retry\nstate:\tOPEN\nauthor:\t%u\nassignees:\t%u\nreviewers:\t%u (Approved)"
    ),
    _who(
        "forge user record",
        '{"login": "%u", "id": %n, "type": "User", "site_admin": false}',
        '{"username": "%u", "state": "active", "web_url": "https://git.acme.dev/%u"}',
    ),
    _who("nested author record", '{"commit": {"author": {"name": "%F %L", "date": "%d"}, "message": "Fix"}}'),
    _who("gerrit change", "Uploaded patch set 3.\nOwner\t%F %L\nReviewers\t%F %L"),
    _who("branch of a person", "author: %u\n* users/%u/retry-fix\n  remotes/origin/%u-backup"),
    _who("todo mark", "# TODO(%u): drop this after the migration", "// FIXME(%u) racy", "# XXX %u: why?"),
    _who("javadoc author", " * @author %F %L\n * @since 2.1", "@author: %F %L"),
    _who(
        "r or debian package",
        "Maintainer: %F %L <%m>\nVersion: 1.2-1",
        'Authors@R: person("%F", "%L", role = c("aut", "cre"))',
    ),
)
_SERVICES = (
    _who(
        "jira issue",
        '{"fields": {"assignee": {"displayName": "%F %L", "accountId": "5b10"}, "status": {"name": "Done"}}}',
    ),
    _who("issue columns", "Key\tSummary\tAssignee\tReporter\nREL-14\tFix retry\t%F %L\t%F %L"),
    _who(
        "slack export",
        '{"type": "message", "user_profile": {"real_name": "%F %L", "display_name": "%u"}, "text": "ok"}',
    ),
    _who("whatsapp export", "03/03/2026, 10:42 - %F %L: can you restart it?", "[03.03.26, 10:42:11] %F %L: ok"),
    _who("irc log", "10:42 -!- %u [~%u@10.0.0.1] has joined #relay\n10:43 <%u> is it down?"),
    _who("discord log", "%u — Today at 10:42 AM\nis it down?"),
    _who("reply line", "On Tue, 3 Mar 2026 at 10:42, %F %L wrote:\n> is it down?", "Am 03.03.2026 schrieb %F %L:"),
    _who(
        "comma name header",
        'From: "%L, %F" <%m>',
        "Von: %L, %F\nGesendet: Dienstag, 3. März 2026",
        "To: %L, %F; Ops List",
    ),
    _who(
        "calendar file",
        'ORGANIZER;CN=%F %L:mailto:ops@example.com\nATTENDEE;ROLE=REQ-PARTICIPANT;CN="%F %L":mailto:x@example.com',
    ),
    _who("contact card", "BEGIN:VCARD\nN:%L;%F;;;\nFN:%F %L\nEND:VCARD"),
    _who("directory entry", "dn: uid=%u,ou=people,dc=acme,dc=dev\ncn: %F %L\nsn: %L\ngivenName: %F\nuid: %u"),
    _who("token claims", '{"sub": "1", "preferred_username": "%u", "given_name": "%F", "family_name": "%L"}'),
    _who("certificate names", "subject=C = SE, O = Nordkraft AB, CN = %F %L", "Subject: CN=%u, OU=Users, DC=nordkraft"),
    _who(
        "ci trigger", "Started by user %F %L", "Triggered by %F %L via push", "Deployed by: %u", "Requested-For: %F %L"
    ),
    _who(
        "proxy headers",
        "X-Forwarded-User: %u\nX-Request-Id: 41",
        "Remote-User: %u",
        "X-Auth-Request-Preferred-Username: %u",
    ),
    _who("access log", '10.4.0.9 - %u [03/Mar/2026:10:42:11 +0100] "GET /jobs HTTP/1.1" 200 512'),
    _who(
        "logfmt",
        "level=info msg=login user=%u status=ok",
        "ts=1 caller=auth.go username=%u host=%h",
        'level=warn user="%F %L" action=delete',
    ),
    _who("json log", '{"level": "info", "event": "login", "user": "%u", "hostname": "%h", "pid": 41}'),
    _who(
        "database message",
        'FATAL:  password authentication failed for user "%u"',
        "Access denied for user '%u'@'%h' (using password: YES)",
        'ERROR:  role "%u" does not exist',
    ),
    _who(
        "sql rows",
        " id | username | full_name\n----+----------+-----------\n  7 | %u | %F %L\n(1 row)",
        "INSERT INTO users (id, full_name, email) VALUES (7, '%F %L', '%m');",
    ),
    _who("csv rows", "id,first_name,last_name,plan\n7,%F,%L,pro", "name,email,team\n%F %L,%m,relay"),
    _who(
        "yaml people",
        "maintainers:\n  - %F %L\n  - name: %F %L\n    github: %u",
        "owner: %u\nteam: relay",
        "contact:\n  name: %F %L\n  role: lead",
    ),
    _who(
        "ini and env accounts", "[smtp]\nusername = %u\nport = 25", "DB_USER=%u\nDB_PORT=5432", "export SSH_USER='%u'"
    ),
    _who("python settings", 'USERNAME = "%u"\nAUTHOR_NAME = "%F %L"', 'connect(host="db", user="%u", port=5432)'),
    _who(
        "xml person",
        "<developer>\n  <id>%u</id>\n  <name>%F %L</name>\n</developer>",
        '<user name="%u"/><owner>%F %L</owner>',
    ),
    _who("html form", '<input name="full_name" value="%F %L">', '<meta name="author" content="%F %L">'),
    _who("query string", "GET /search?user=%u&page=2", "https://app.acme.dev/login?username=%u&next=/"),
    _who(
        "profile links",
        "https://github.com/%u (profile)",
        "https://gitlab.com/users/%u/activity",
        "https://hub.docker.com/u/%u",
    ),
    _who("fediverse handle", "follow @%u@mastodon.social", "find me on telegram: @%u"),
)
_WRITTEN = (
    _who(
        "titles", "please ask Dr. %F %L about the trial", "Mr. %L signed it", "Frau %L ist informiert", "cc Prof. %F %L"
    ),
    _who(
        "signature block",
        "-- \n%F %L\nSenior Site Reliability Engineer\nNordkraft AB",
        "Mvh,\n%F",
        "Met vriendelijke groet,\n%F %L",
    ),
    _who("bill to", "Bill To:\n%F %L\nInvoice 4471", "Ship to: %F %L\nOrder 12"),
    _who(
        "prose hand-over",
        "I spoke with %F %L yesterday and %F agreed",
        "according to %F %L, the lease is 30 s",
        "%F %L asked us to wait",
    ),
    _who(
        "prose possession",
        "it broke after %F %L's change",
        "use %F's token for now; %F %L knows",
        "merge %F %L’s branch",
    ),
    _who(
        "introduction",
        "Hi, I'm %F and I work on the relay",
        "my name is %F %L",
        "Je m'appelle %F %L",
        "jag heter %F %L",
    ),
    _who(
        "greeting", "Hi %F,\n\nthe queue is stuck", "Hello %F, can you look?", "Kære %F,\ntak for sidst", "Dear %F %L:"
    ),
    _who("customer ticket", "Customer: %F %L (%m)\nPlan: Pro", "Caller: %F %L\nCallback wanted", "Patient: %L, %F"),
    _who("minutes", "Attendees: %F %L, Ops\nDecision: freeze", "Present:\n- %F %L (chair)\n- two guests"),
    _who("learned then elsewhere", "Author: %F %L <%m>\n\n    talked to %F about it; %L agreed, see %u's notes"),
    _who(
        "initials elsewhere",
        "Reviewed-by: %F %L <%m>\nlater: %L's comment, and %F %L again",
        "owner: %F %L\nask %F first",
    ),
)
BROAD_PEOPLE: tuple[Kind, ...] = (*_SYSTEMS, *_CLOUD, *_VERSIONS, *_SERVICES, *_WRITTEN)
