"""Ordinary words: what is in a dictionary, or names a program, a role or a state, is nobody's name."""

from __future__ import annotations

import gzip
import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files

__all__ = [
    "GENERIC_USERS",
    "UPPER",
    "folded",
    "is_common_word",
    "is_foreign_word",
    "is_generic",
    "is_given_name",
    "is_name_elsewhere",
    "is_ordinary",
    "is_person_name",
    "is_proper_noun",
    "is_public_domain",
    "is_public_host",
    "is_role_or_state",
    "is_service_account",
    "is_service_host",
    "is_strange",
    "is_surname",
    "is_technical",
]

# Words of the trade that a small dictionary lacks.
_TRADE = (
    "api app apps auth async backend frontend boolean breaker cli cron csv database dataset "
    "datastore debug dev devops "
    "docs endpoint env failover github gitlab google config html http https init json kubectl "
    "kubernetes k8s limiter "
    "linux localhost login logout lookup metadata microservice middleware mysql nginx npm oauth "
    "onboarding opensource "
    "php plugin plugins postgres postgresql prod proxy pytest python readme readonly redis "
    "refactor repo repository "
    "repositories rollback rollout router runbook runtime schema scheduler sdk serverless sql "
    "sqlite staging stderr "
    "stdin stdout sudo svc sync sys sysadmin terraform timestamp tls tmp todo toolchain "
    "typescript ubuntu ui unix "
    "upstream url username utf uuid vm vpc webhook websocket wifi workflow workspace yaml lexer "
    "parser tokenizer "
    "kafka rabbitmq mongo mongodb mariadb etcd grafana prometheus jenkins docker podman ansible "
    "elasticsearch kibana "
    "contrib corp inbox ops javascript java rust golang kotlin swift"
    " ruby rails django flask react angular vue node webpack babel eslint "
    "varchar bool str int optional nullable enum struct uint null none nil undefined nan int64 "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august "
    "september october november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue "
    "wed thu fri sat sun"
)
# A name that holds one of these is a company's, a team's, a product's or a title.
_BUSINESS = (
    "oü oy oyj ab as asa aps sarl sasu srl spa bv nv kft zrt sro doo kg ag kgaa ug ohg ltda plc "
    "pty pvt llp trading "
    "holding holdings logistics consulting solutions partners ventures bank insurance hospital "
    "clinic school hotel "
    "inc ltd gmbh llc corp corporation company foundation authors co"
    "ntributors team teams project projects group groups "
    "labs software systems technologies services service server bot ci api the and for of open "
    "source apache google "
    "microsoft amazon azure aws oracle ibm intel nvidia meta adobe github gitlab linux kernel "
    "ubuntu debian fedora "
    "python rust java node docker kubernetes release build test tests main master branch support "
    "admin administrator "
    "root user users system unknown none null platform engineering engineers security operations "
    "institute contributor "
    "author reviewer maintainer developer someone somebody example university department office "
    "committee community "
    "maintainers developers practices managers engineer desk list channel squad guild crew board "
    "council agency studio "
    "suite cloud desktop mobile web data database queue worker cluster pipeline workflow "
    "deployment production staging "
    "sans serif mono gothic font script router framework library package module error exception warning failed "
    "required optional default "
    "york francisco kong angeles diego orleans delhi zealand america africa europe asia street road avenue"
)
_ROLES_AND_STATES = (
    "none null nil true false undefined yes no on off empty unset default missing invalid "
    "required optional unknown "
    "string str int integer bool boolean number object array text any type types value values "
    "field fields name names "
    "user users username login account accounts owner owners author authors host hosts hostname "
    "email mail phone "
    "admin admins administrator administrators root guest guests system service services everyone "
    "nobody anonymous "
    "superuser readonly readwrite read write member members group groups team teams bot bots "
    "actions self this all "
    "active inactive enabled disabled open closed pending running stopped failed failure success "
    "ok error warning info "
    "debug private public internal external local remote primary secondary replica master slave "
    "main latest next "
    "premium free pro basic standard enterprise trial premium manual automatic auto varchar uuid "
    "json new old current "
    "postgres mysql redis mongo mongodb mariadb sa dba sysdba relay app api web db www daemon "
    "nginx apache httpd "
    "jenkins gitlab github git runner ci cd build builder deploy deployer docker podman kube "
    "kubernetes ubuntu debian "
    "fedora centos alpine vagrant ansible terraform puppet salt zabbix nagios prometheus grafana "
    "elastic kibana kafka "
    "rabbitmq memcached tomcat oracle postfix dovecot bind named ftp sftp ssh sshd rsync backup "
    "monitor monitoring "
    "password passwd passphrase secret token credential credentials key keys "
    "localhost tbd todo na fixme function class method client server worker node staff wheel sudo "
    "foo bar baz qux "
    "ada alice bob carol eve mallory jdoe johndoe janedoe john jane doe acme"
)
_TRADE_WORDS = frozenset(_TRADE.split())
_BUSINESS_WORDS = frozenset(_BUSINESS.split())
_ROLE_WORDS = frozenset(_ROLES_AND_STATES.split())
_SERVICE = (
    "db web www app api cache node worker master slave primary secondary replica runner build ci "
    "docker redis kafka "
    "postgres postgresql mysql mongo mongodb mariadb rabbitmq elastic elasticsearch nginx proxy "
    "gateway server client "
    "host localhost local localdomain internal external queue broker zookeeper etcd vault consul "
    "grafana prometheus "
    "jenkins gitlab github registry storage minio s3 smtp mail imap ldap dns ntp vpn lb "
    "loadbalancer frontend backend "
    "auth service svc prod production staging stage dev test qa uat demo sandbox example com org "
    "net io dev corp lan "
    "kube kubernetes cluster pod ingress controller manager scheduler monitor metrics logs log "
    "search index files file "
    "bastion jump edge core main data database store session sessions admin us eu ap east west "
    "north south central"
)
_SERVICE_WORDS = frozenset(_SERVICE.split())


@cache
def _dictionary() -> frozenset[str]:
    packed = files("eval_core").joinpath("data", "english_words.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode("ascii").split())


UPPER = "".join(
    char for char in map(chr, (*range(0x41, 0x250), *range(0x370, 0x590), *range(0x1E00, 0x1F00))) if char.isupper()
)
"""The capital letters of Latin, Greek, Cyrillic and Armenian, for the inside of a character class."""
_UNDECOMPOSED = str.maketrans(
    {"ł": "l", "ø": "o", "ß": "ss", "đ": "d", "æ": "ae", "ı": "i", "œ": "oe", "ð": "d", "þ": "th"}
)


@cache
def _names() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    packed = files("eval_core").joinpath("data", "names.txt.gz").read_bytes()
    given, last, others = gzip.decompress(packed).decode("utf-8").splitlines()
    return frozenset(given.split()), frozenset(last.split()), frozenset(others.split())


def folded(word: str) -> str:
    """Return a word in small letters without accents, as logins and lists spell it."""
    word = word.lower()
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKD", word.translate(_UNDECOMPOSED))
    return "".join(char for char in plain if not unicodedata.combining(char))


def is_given_name(word: str) -> bool:
    """Tell a given name of one of about seventy countries."""
    return folded(word) in _names()[0]


def is_surname(word: str) -> bool:
    """Tell a surname of one of about seventy countries."""
    return folded(word) in _names()[1]


def is_name_elsewhere(word: str) -> bool:
    """Tell a given name or a surname that is not written in Latin letters."""
    return word.lower() in _names()[2]


_CALENDAR_WORDS = (
    "montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni "
    "juli oktober dezember "
    "lundi "
    "mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août "
    "septembre octobre "
    "novembre "
    "décembre lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo "
    "junio julio agosto "
    "septiembre octubre noviembre diciembre lunedì martedì mercoledì giovedì venerdì sabato "
    "domenica gennaio febbraio "
    "aprile "
    "maggio giugno luglio settembre ottobre novembre dicembre segunda terça quarta quinta sexta "
    "janeiro fevereiro "
    "março "
    "junho julho setembro outubro dezembro maandag dinsdag woensdag donderdag vrijdag zaterdag zondag januari "
    "februari maart "
    "augustus måndag tisdag onsdag torsdag fredag lördag söndag mandag tirsdag lørdag søndag "
    "augusti poniedziałek "
    "wtorek "
    "środa czwartek piątek sobota niedziela styczeń stycznia luty lutego marzec marca kwiecień "
    "kwietnia maj maja "
    "czerwca "
    "lipca sierpnia września października listopada grudnia pondělí úterý středa čtvrtek pátek "
    "neděle leden únor "
    "březen "
    "duben květen červen červenec srpen září říjen listopad prosinec uhr heure hora ore"
)
_CALENDAR = frozenset(_CALENDAR_WORDS.split())


def is_calendar(word: str) -> bool:
    """Tell a day or a month in the larger languages of Europe."""
    return word.lower() in _CALENDAR


# Capitalised words that no dictionary has and that are nobody's name: places, companies, products, mathematicians.
_PROPER_NOUNS = (
    "africa alabama alaska amazon amsterdam android angular apple argentina arizona asia athens "
    "atlanta atlassian "
    "aurora austin australia austria azure bangalore bangkok barcelona belgium berlin boston brazil britain "
    "brooklyn brussels budapest buenos aires cairo california cambridge canada chicago chile china chrome "
    "chromium cisco cloudflare colorado copenhagen cupertino dallas debian delhi denmark denver "
    "dijkstra docker "
    "dublin edinburgh egypt england euler europe fermat fedora fibonacci finland firefox florida "
    "france francisco "
    "frankfurt gaussian geneva georgia germany gitlab google greece hamburg hamming havana "
    "helsinki heroku hong "
    "houston huffman hungary iceland illinois india indiana intel intellij iowa iran iraq ireland "
    "israel istanbul "
    "italy jakarta japan java jenkins jerusalem jetbrains kansas kafka kentucky kenya knuth korea kong kotlin "
    "kubernetes kyiv laplace lenovo levenshtein linux lisbon london los angeles lucene luxembourg lyon macos "
    "madrid malaysia manchester manhattan markov massachusetts melbourne merkle mexico miami "
    "michigan microsoft "
    "milan minnesota montreal morris moscow mozilla mumbai munich netherlands netflix nevada york "
    "zealand nigeria "
    "nokia norway nvidia ohio ontario openai oracle oregon osaka oslo ottawa oxford pacific pakistan palo alto "
    "paris peru philadelphia philippines poisson poland portland portugal prague pratt python qualcomm quebec "
    "rabin reykjavik romania rome rotterdam russia safari salesforce samsung san sao são paulo "
    "saudi arabia scala "
    "scotland seattle seoul serbia shanghai shopify siemens silicon singapore slovakia slovenia sofia solaris "
    "sony spain stanford stockholm stuttgart swagger sweden switzerland sydney taipei taiwan "
    "tensorflow pytorch "
    "texas thailand tokyo toronto toshiba turin turing turkey twilio twitter ubuntu ukraine utah "
    "vancouver venice "
    "vercel verizon victoria vienna vietnam virginia wales warsaw washington webkit wikipedia "
    "windows wisconsin "
    "xcode xiaomi yahoo youtube zurich monte carlo bayes bayesian boyer moore karp tarjan kruskal fourier "
    "kolmogorov shannon wilcoxon spearman pearson mann whitney bonferroni feistel diffie hellman "
    "blowfish bcrypt "
    "unicode homebrew postman selenium cypress playwright gradle maven sonatype nexus artifactory datadog "
    "pagerduty splunk jira confluence trello asana figma slack discord telegram whatsapp zoom cassandra dynamo "
    "redshift snowflake databricks airflow spark hadoop flink zookeeper envoy istio linkerd helm "
    "argo terraform "
    "pulumi vagrant packer nomad consul vault django flask fastapi starlette uvicorn gunicorn "
    "celery rabbit nginx "
    "haproxy varnish lorem ipsum hello "
    "amdahl moore's brooks conway murphy goodhart goodhart's hyrum parkinson alzheimer apgar "
    "crohn babinski verhoeff "
    "floyd warshall bellman luhn lovelace kepler pascal ampere hopper maxwell blackwell helvetica "
    "neue arial verdana tahoma calibri garamond "
    "futura bodoni georgia roboto fira consolas menlo monaco courier numbat bookworm bullseye "
    "trixie jammy focal "
    "bionic xenial sonoma ventura monterey sequoia catalina mojave sierra santiago bogota lima caracas quito "
    "montevideo asuncion phoenix tucson memphis orlando tampa oakland fresno "
    "hudson apollo dagger smirnov brasil zalo digicert sectigo globalsign entrust verisign thawte comodo"
)
_PROPER = frozenset(_PROPER_NOUNS.split())


def is_proper_noun(word: str) -> bool:
    """Tell a place, a company, a product or a method that carries a name from a person of today."""
    return word.lower().removesuffix("'s") in _PROPER


@lru_cache(maxsize=65_536)
def is_ordinary(word: str) -> bool:
    """Tell whether a word is in the dictionary or belongs to the trade, in any case and number."""
    word = word.lower().strip(".'’")
    known = _dictionary()
    return (
        len(word) < 3
        or word in known
        or word in _TRADE_WORDS
        or word in _ROLE_WORDS
        or (word.endswith("s") and word[:-1] in known)
    )


@cache
def _technical() -> frozenset[str]:
    packed = files("eval_core").joinpath("data", "technical_words.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode("ascii").split())


def is_technical(word: str) -> bool:
    """Tell a word that names or describes software: a program, a library, a format, a method."""
    word = word.lower()
    return word in _technical() or word.removeprefix("lib") in _technical() or word.rstrip("s") in _technical()


@cache
def _foreign() -> frozenset[str]:
    packed = files("eval_core").joinpath("data", "foreign_words.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode("utf-8").split())


def is_foreign_word(word: str) -> bool:
    """Tell a common word of about 25 languages of Europe and Asia that are written in Latin letters."""
    return word.lower() in _foreign()


_AFFIXED = re.compile(
    r"(?:(?:un|re|de|pre|non|sub|auto|multi|inter|over|under|meta|micro|super|post|anti|dis|mis|co)-?)?"
    r"(?P<stem>[a-z]{4,}?)"
    r"(?:s|es|ed|d|ing|er|ers|or|ors|able|ably|ly|ness|ize|izes|ized|izer|izing|ise|ised|ising|ization|isation|ity"
    r"|ful|less"
    r"|ish|ment|ments|like|wise|ability|y|ies|ier)?"
)


@lru_cache(maxsize=65_536)
def is_strange(word: str) -> bool:
    """Tell a word that no dictionary has, nor its stem, nor two words of it joined."""
    word = word.lower()
    if len(word) < 4 or is_ordinary(word) or is_technical(word) or is_role_or_state(word) or is_proper_noun(word):
        return False
    if is_foreign_word(word):
        return False
    stem = _AFFIXED.fullmatch(word)
    if stem and any(is_ordinary(one) for one in (stem["stem"], stem["stem"] + "e")):
        return False
    if len(word) > 5 and word[-2:] in ("it", "me", "up", "in", "on", "by", "to") and is_ordinary(word[:-2]):
        return False
    cuts = range(3, len(word) - 2)
    if any(is_ordinary(word[:at]) and is_ordinary(word[at:]) for at in cuts):
        return False
    return not any(is_foreign_word(word[:at]) and is_foreign_word(word[at:]) for at in cuts[1:-1])


def is_role_or_state(word: str) -> bool:
    """Tell an account that belongs to a role or a program, and a value that says a field's state or type."""
    return word.lower() in _ROLE_WORDS


def is_service_host(name: str) -> bool:
    """Tell a machine that is called by its work: db, redis-master, node-12."""
    parts = [part for part in re.split(r"[-_.\d]+", name.lower()) if part]
    return all(part in _SERVICE_WORDS or len(part) < 2 for part in parts)


_PUBLIC = re.compile(
    r"(?i)(?:.*\.)?(?:github|gitlab|bitbucket|google|googleapis|gstatic|gmail|googlemail|microsoft|office365|office|live"
    r"|outlook|windows|azure|azurewebsites|amazonaws|amazon|aws|cloudfront|apple|icloud|docker"
    r"|ubuntu|kernel|apache|mozilla|cloudflare|fastly|akamai|stripe|twilio|sendgrid|slack|atlassian|sentry|openai"
    r"|anthropic|huggingface|letsencrypt|digicert|ntp|root-servers|jsdelivr|unpkg|rubygems|crates|golang|maven|gradle"
    r"|facebook|twitter|linkedin|wikipedia|stackoverflow|heroku|vercel|netlify|datadoghq|newrelic|elastic|hashicorp"
    r"|terraform|redhat|fedoraproject|archlinux|alpinelinux|nodejs|python|rust-lang|oracle|ibm|vmware|cisco)"
    r"\.(?:com|net|org|io|dev|co|co\.\w\w|ai|cloud|hub)(?::\d+)?|(?:ip|compute)-(?:10|172|192)-\d+-\d+-\d+(?:\..*)?"
)


def is_public_host(name: str) -> bool:
    """Tell a machine of a service that everybody uses, and one that is called by its private address."""
    return _PUBLIC.fullmatch(name) is not None


_MAIL_PROVIDERS_TEXT = (
    "gmail googlemail outlook hotmail live msn yahoo ymail icloud me mac aol proton protonmail pm gmx web "
    "t-online freenet posteo mailbox fastmail hey zoho yandex mail inbox list bk qq 163 126 sina naver daum "
    "hanmail interia wp onet o2 seznam centrum libero virgilio tiscali orange laposte free "
    "wanadoo sfr terra uol "
    "bol rediffmail duck tutanota users example"
)
_MAIL_PROVIDERS = frozenset(_MAIL_PROVIDERS_TEXT.split())


def is_public_domain(domain: str) -> bool:
    """Tell the domain of a mail provider, a forge or a service from that of a company."""
    parts = domain.lower().split(".")
    return len(parts) < 2 or any(part in _MAIL_PROVIDERS for part in parts[:-1]) or is_public_host(domain)


# People of manuals and tests.
_NOBODY = frozenset(
    (
        "mustermann",
        "musterfrau",
        "fulano",
        "beltrano",
        "bloggs",
        "sample",
        "dummy",
        "voorbeeldklant",
        "testkunde",
        "testuser",
    )
)


def is_person_name(text: str, *, sure: bool = True) -> bool:
    """Tell a person's name from a company's, a team's or a title.

    Where only names stand (`sure`) any words but a company's will do; elsewhere one at least must be no ordinary word.
    """
    words = [word.strip(".,'’").lower() for word in re.split(r"[ ,]+", text) if word]
    if any(word in _NOBODY for word in words) or re.fullmatch(r"(?i)(?:john|jane) doe", text.strip()):
        return False
    if any(word in _BUSINESS_WORDS for word in words) or re.fullmatch(r"(?:Person|User|Host)\d+", text.strip()):
        return False
    return sure or not all(is_ordinary(word) for word in words)


# Names that belong to nobody: accounts of systems and services, and ordinary words that are also names.

_GENERIC = (
    "apikey token user users root admin administrator ubuntu debian fedora centos alpine arch "
    "ec2-user azureuser opc vagrant pi "
    "runner node app www www-data nobody daemon bin sys git gitlab github jenkins circleci travis "
    "build builder ci "
    "deploy "
    "deployer dev developer docker postgres mysql redis nginx apache http httpd vscode codespace "
    "gitpod coder jovyan "
    "sandbox agent worker service test tester guest public shared default me you someone username "
    "yourname your_name "
    "your-name your-username name example foo bar linuxbrew homebrew conda codex claude hermes "
    "openhands swe workspace "
    "project runneradmin containeradministrator all container operator ops staff wheel sudo "
    "nogroup mail web owner "
    "alluser "
    "allusers myuser myname xxx lib src home uid bot support info hello contact sales security "
    "team noreply no-reply "
    "donotreply do-not-reply postmaster webmaster mailer-daemon abuse help billing notifications "
    "notification updates "
    "actions dependabot renovate devnull demo system hostmaster marketing press jobs office accounts feedback "
    "newsletter networkservice localservice localsystem trustedinstaller defaultaccount "
    "wdagutilityaccount iis_iusrs"
)


GENERIC_USERS = frozenset(_GENERIC.split())


_PLACEHOLDER = re.compile(
    r"(?:user|person|host)\d*|(?:test|demo|sample|dummy|fake|mock|example|temp|tmp)[-_]?(?:user|account|admin"
    r"|login|name|er)?\d*",
    re.IGNORECASE,
)


def is_generic(name: str) -> bool:
    """Tell a role or a placeholder from somebody's name."""
    return name.lower() in GENERIC_USERS or _PLACEHOLDER.fullmatch(name) is not None or len(name) < 2


_SERVICE_ACCOUNT = re.compile(
    r"(?i)(?:svc|service|srv|app|bot|sa)[-_].*|.*[-_](?:svc|bot|service|sa)"
    r"|.*-(?:manager|operator|controller|agent|runner|exporter|scheduler|worker|proxy|provisioner)"
)


def is_service_account(name: str) -> bool:
    """Tell an account that is called by the service it belongs to: svc-backup."""
    return _SERVICE_ACCOUNT.fullmatch(name) is not None


_WORDS_AND_NAMES = (
    "mark will may rose grant page art bill frank grace hope joy dean chase drew max rob sue pat "
    "ray lane miles "
    "wade young "
    "long king price stone wood brown green white black gray day case best field fields reader "
    "major june april august "
    "summer autumn dawn iris ivy lily pearl ruby jade amber crystal faith guy jack jay lance "
    "mason parker piper "
    "pierce rich "
    "sky stone sterling ward west wolf bot ops team dev test code open api app data the and for"
)


_NAME_WORDS = frozenset(_WORDS_AND_NAMES.split())


def is_common_word(word: str) -> bool:
    """Tell a name that is an ordinary word as well, and so cannot be taken out wherever it stands."""
    return word.lower() in _NAME_WORDS or len(word) < 3
