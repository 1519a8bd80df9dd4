"""Kinds of personal data that were looked at while the rules were written."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.suite.corpus import DIGITS, HEX, Kind, Planted, draw

__all__ = ["PEOPLE", "card_number", "iban", "person"]

_FIRST = ("Marlene", "Tobias", "Ingrid", "Rajesh", "Yolanda", "Kwame", "Svetlana", "Giulio", "Anneke", "Dmitri")
_LAST = (
    "Vandermeer",
    "Okonkwo",
    "Lindqvist",
    "Sandoval",
    "Petrosyan",
    "Haversham",
    "Kowalczyk",
    "Thibault",
    "Nakagawa",
)


def person(rng: random.Random) -> tuple[str, str, str]:
    """Return a first name, a last name and a login."""
    first, last = rng.choice(_FIRST), rng.choice(_LAST)
    login = rng.choice((f"{first[0]}{last}", f"{first}.{last}", f"{first}{draw(rng, '123456789', 2)}", last)).lower()
    return first, last, login


def _login(name: str, *frames: str, listed: bool = False) -> Kind:
    def make(rng: random.Random) -> Planted:
        _, _, login = person(rng)
        return Planted(rng.choice(frames).replace("%s", login), (login,), (login,) if listed else ())

    return Kind(name, "personal", make)


def _value(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, "personal", make)


def _email(rng: random.Random) -> str:
    return f"{person(rng)[2]}@{rng.choice(('corp-mail.io', 'gmail.com', 'firma.de', 'uni.edu'))}"


def _author(frame: str) -> Callable[[random.Random], Planted]:
    def make(rng: random.Random) -> Planted:
        first, last, login = person(rng)
        email = f"{login}@corp-mail.io"
        return Planted(frame.format(name=f"{first} {last}", email=email), (f"{first} {last}", email))

    return make


def _listed_name(frame: str) -> Callable[[random.Random], Planted]:
    def make(rng: random.Random) -> Planted:
        first, last, _ = person(rng)
        return Planted(frame.format(first=first, last=last), (first,), (first, f"{first} {last}"))

    return make


def _check(digits: str) -> str:
    total = 0
    for position, char in enumerate(reversed(digits + "0")):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)


def card_number(rng: random.Random) -> str:
    """Return a card number with a right check digit."""
    brand = rng.choice(("4", "51", "55"))
    digits = _check(brand + draw(rng, DIGITS, 15 - len(brand)))
    return rng.choice(
        (
            digits,
            " ".join(digits[at : at + 4] for at in range(0, 16, 4)),
            "-".join(digits[at : at + 4] for at in range(0, 16, 4)),
        )
    )


def iban(rng: random.Random) -> str:
    """Return a bank account number with right check digits."""
    country, length = rng.choice((("DE", 22), ("NL", 18), ("FR", 27)))
    body = ("INGB" if country == "NL" else "") + draw(rng, DIGITS, length - 4 - (4 if country == "NL" else 0))
    number = int("".join(str(int(char, 36)) for char in body + country + "00"))
    text = f"{country}{98 - number % 97:02d}{body}"
    return rng.choice((text, " ".join(text[at : at + 4] for at in range(0, len(text), 4))))


def _public_ip(rng: random.Random) -> str:
    return f"{rng.choice((52, 81, 93, 141, 185))}.{rng.randint(1, 254)}.{rng.randint(1, 254)}.{rng.randint(1, 254)}"


def _us_phone(rng: random.Random) -> str:
    area, middle = rng.choice(("212", "415", "646", "312")), rng.randint(220, 540)
    return rng.choice((f"({area}) {middle}-{draw(rng, DIGITS, 4)}", f"{area}-{middle}-{draw(rng, DIGITS, 4)}"))


PEOPLE: tuple[Kind, ...] = (
    _login("linux home", "cd /home/%s/src/relay && ls", "FileNotFoundError: /home/%s/.config/relay.toml"),
    _login("mac home", "/Users/%s/Library/Caches/pip", "open file:///Users/%s/notes.md"),
    _login("windows home", "C:\\Users\\%s\\AppData\\Local\\Temp", "c:/Users/%s/repo"),
    _login("wsl home", "/mnt/c/Users/%s/Downloads/x.zip"),
    _login("login in plain words", "ask %s about it", "assigned to %s", "owner=%s", listed=True),
    _login("login inside words", "host %s-laptop is down", "branch %s/fix-lease", "db_%s_dev", listed=True),
    _login("ls owner", "-rw-r--r--  1 %s staff  4096 Jan  1 12:00 notes.txt", listed=True),
    _login("shell prompt", "%s@buildbox:~/relay$ make test", listed=True),
    Kind(
        "dashed project folder",
        "personal",
        lambda r: (lambda u: Planted(f"~/.claude/projects/-Users-{u}-src-relay/x.jsonl", (u,)))(
            f"{person(r)[0].lower()}{draw(r, '123456789', 2)}"
        ),
    ),
    _value("e-mail", _email, "write to %s please", "From: %s", '{"email": "%s"}', "mailto:%s?subject=x"),
    Kind("git author", "personal", _author("commit 9c1e4f7a2b\nAuthor: {name} <{email}>\nDate:   Mon Jan 5")),
    Kind("signed-off", "personal", _author("Fix lease\n\nSigned-off-by: {name} <{email}>")),
    Kind("co-author", "personal", _author("Co-authored-by: {name} <{email}>")),
    Kind(
        "git config name",
        "personal",
        lambda r: (lambda p: Planted(f'git config user.name "{p[0]} {p[1]}"', (f"{p[0]} {p[1]}",)))(person(r)),
    ),
    Kind("first name, listed", "personal", _listed_name("thanks, {first} will look at it tomorrow")),
    Kind("possessive name, listed", "personal", _listed_name("it is {first}'s branch")),
    _value("us phone", _us_phone, "call me at %s", "reach the desk: %s"),
    _value("international phone", lambda r: f"+49 30 {draw(r, '123456789', 8)}", "call %s", '{"contact": "%s"}'),
    _value(
        "keyed phone",
        lambda r: f"0{draw(r, '123456789', 3)} {draw(r, DIGITS, 7)}",
        '{"phone": "%s"}',
        "Telefon: %s",
        "mobile: %s",
    ),
    _value("payment card", card_number, "card %s was declined", '{"card": "%s"}'),
    _value("bank account", iban, "IBAN %s", "transfer to %s today"),
    _value("public ipv4", _public_ip, "ssh root@%s", "listening, client %s connected", "http://%s:8080/health"),
    _value(
        "public ipv6",
        lambda r: f"2a01:4f8:{draw(r, HEX, 4)}:{draw(r, HEX, 4)}::{r.randint(2, 9)}",
        "bound to %s",
        "[%s]:443",
    ),
    _value("mac address", lambda r: "a4:83:" + ":".join(draw(r, HEX, 2) for _ in range(4)), "ether %s txqueuelen 1000"),
    _value(
        "us social security",
        lambda r: f"{r.randint(100, 650)}-{r.randint(10, 99)}-{r.randint(1000, 9999)}",
        "SSN %s",
        "ssn: %s",
    ),
    _value(
        "street address",
        lambda r: (
            f"{r.randint(2, 900)} {r.choice(('Maple', 'Harbor', 'Juniper'))} {r.choice(('Street', 'Avenue', 'Lane'))}"
        ),
        "ship to %s, Springfield",
        "I live at %s",
    ),
    _value(
        "coordinates",
        lambda r: f"{r.randint(10, 60)}.{draw(r, DIGITS, 6)}, {r.randint(10, 60)}.{draw(r, DIGITS, 6)}",
        "location %s",
        "center=%s",
    ),
    _value(
        "birth date",
        lambda r: f"19{r.randint(50, 99)}-{r.randint(1, 9):02d}-{r.randint(1, 28):02d}",
        '{"date_of_birth": "%s"}',
        "date of birth: %s",
    ),
    Kind(
        "machine name",
        "personal",
        lambda r: (lambda n: Planted(f"{n}-MacBook-Pro.local", (f"{n}-MacBook-Pro",)))(person(r)[0] + "s"),
    ),
    _value("slack mention", lambda r: f"U{draw(r, 'ABCDEFGHJK0123456789', 9)}", "<@%s> please review"),
    _value("discord mention", lambda r: draw(r, "123456789", 18), "hey <@%s> look", "<@!%s>"),
)
