"""Ordinary words: what is in a dictionary, or names a program, a role or a state, is nobody's name."""

from __future__ import annotations

import gzip
import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files


def data_text(name: str) -> str:
    """Return a text file of the data folder."""
    return files("eval_core").joinpath("data", f"{name}.txt").read_text("utf-8")


@cache
def _paragraphs(name: str) -> dict[str, list[str]]:
    """Return the paragraphs of a file, each with the lines below the name that it begins with."""
    blocks = [block.splitlines() for block in data_text(name).split("\n\n")]
    return {block[0].removesuffix(":"): [line[2:] for line in block[1:]] for block in blocks}


@cache
def word_list(name: str) -> frozenset[str]:
    """Return one of the lists of words in `data/word_lists.txt`."""
    return frozenset(word for line in _paragraphs("word_lists")[name] for word in line.split())


def label_forms(name: str) -> str:
    """Return what things are called, as the alternatives of a regular expression in `data/label_forms.txt`."""
    return "".join(_paragraphs("label_forms")[name])


def _packed(name: str) -> str:
    return gzip.decompress(files("eval_core").joinpath("data", f"{name}.txt.gz").read_bytes()).decode("utf-8")


@cache
def _dictionary() -> frozenset[str]:
    return frozenset(_packed("english_words").split())


UPPER = "".join(
    char for char in map(chr, (*range(0x41, 0x250), *range(0x370, 0x590), *range(0x1E00, 0x1F00))) if char.isupper()
)
"""The capital letters of Latin, Greek, Cyrillic and Armenian, for the inside of a character class."""
_UNDECOMPOSED = str.maketrans(
    {"ł": "l", "ø": "o", "ß": "ss", "đ": "d", "æ": "ae", "ı": "i", "œ": "oe", "ð": "d", "þ": "th"}
)


@cache
def _names() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    given, last, others = _packed("names").splitlines()
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


def is_proper_noun(word: str) -> bool:
    """Tell a place, a company, a product or a method that carries a name from a person of today."""
    return word.lower().removesuffix("'s") in word_list("proper nouns")


@lru_cache(maxsize=65_536)
def is_ordinary(word: str) -> bool:
    """Tell whether a word is in the dictionary or belongs to the trade, in any case and number."""
    word = word.lower().strip(".'’")
    known = _dictionary()
    return (
        len(word) < 3
        or word in known
        or word in word_list("trade")
        or word in word_list("roles and states")
        or (word.endswith("s") and word[:-1] in known)
    )


@cache
def _technical() -> frozenset[str]:
    return frozenset(_packed("technical_words").split())


def is_technical(word: str) -> bool:
    """Tell a word that names or describes software: a program, a library, a format, a method."""
    word = word.lower()
    return word in _technical() or word.removeprefix("lib") in _technical() or word.rstrip("s") in _technical()


@cache
def _foreign() -> frozenset[str]:
    return frozenset(_packed("foreign_words").split())


def is_foreign_word(word: str) -> bool:
    """Tell a common word of about 25 languages of Europe and Asia that are written in Latin letters."""
    return word.lower() in _foreign()


def is_role_or_state(word: str) -> bool:
    """Tell an account that belongs to a role or a program, and a value that says a field's state or type."""
    return word.lower() in word_list("roles and states")


def is_service_host(name: str) -> bool:
    """Tell a machine that is called by its work: db, redis-master, node-12."""
    parts = [part for part in re.split(r"[-_.\d]+", name.lower()) if part]
    return all(part in word_list("services") or len(part) < 2 for part in parts)


_PUBLIC = re.compile(
    r"(?i)(?:.*\.)?(?:github|gitlab|bitbucket|google|googleapis|gstatic|gmail|googlemail|microsoft|office365"
    r"|office|live"
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


def is_public_domain(domain: str) -> bool:
    """Tell the domain of a mail provider, a forge or a service from that of a company."""
    parts = domain.lower().split(".")
    return len(parts) < 2 or not word_list("mail providers").isdisjoint(parts[:-1]) or is_public_host(domain)


def is_person_name(text: str, *, sure: bool = True) -> bool:
    """Tell a person's name from a company's, a team's or a title.

    Where only names stand (`sure`) any words but a company's will do; elsewhere one at least must be no ordinary word.
    """
    words = [word.strip(".,'’").lower() for word in re.split(r"[ ,]+", text) if word]
    if not word_list("nobody").isdisjoint(words) or re.fullmatch(r"(?i)(?:john|jane) doe", text.strip()):
        return False
    if not word_list("business").isdisjoint(words) or re.fullmatch(r"(?:Person|User|Host)\d+", text.strip()):
        return False
    return sure or not all(is_ordinary(word) for word in words)


_PLACEHOLDER = re.compile(
    r"(?:user|person|host)\d*|(?:test|demo|sample|dummy|fake|mock|example|temp|tmp)[-_]?(?:user|account|admin"
    r"|login|name|er)?\d*",
    re.IGNORECASE,
)


def is_generic(name: str) -> bool:
    """Tell a role or a placeholder from somebody's name."""
    return name.lower() in word_list("generic users") or _PLACEHOLDER.fullmatch(name) is not None or len(name) < 2


_SERVICE_ACCOUNT = re.compile(
    r"(?i)(?:svc|service|srv|app|bot|sa)[-_].*|.*[-_](?:svc|bot|service|sa)"
    r"|.*-(?:manager|operator|controller|agent|runner|exporter|scheduler|worker|proxy|provisioner)"
)


def is_service_account(name: str) -> bool:
    """Tell an account that is called by the service it belongs to: svc-backup."""
    return _SERVICE_ACCOUNT.fullmatch(name) is not None


def is_common_word(word: str) -> bool:
    """Tell a name that is an ordinary word as well, and so cannot be taken out wherever it stands."""
    return word.lower() in word_list("words and names") or len(word) < 3
