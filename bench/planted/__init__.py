"""Kinds of planted data written as templates: one block of text for each kind, in the `.txt` files beside this one.

A block begins with `## name`, or `## name | command` where only the command tells what the text is. `⟦...⟧` holds what
must go (or stay, for look-alikes), `‹...›` what is drawn but may do either. Inside, parts are joined by semicolons:
`'text` is literal, `"text` a literal name that a user would list; `x`, `A`, `a`, `U`, `b`, `u`, `d` and a length draw
hex, letters and digits, lower case, upper case, base64, URL-safe characters and digits, `X` and `T` upper-case hex and
base32; `p` is a password that a person chose, `w` a word; names are a person's, an account's or a machine's, the same
within a block (`full2` is a second person's).
"""

from __future__ import annotations

import json
import random
import re
import string
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.domain.fixture import Fixture
from tests.suite.sessions import ALNUM, draw

__all__ = ["SETS", "Kind", "Plant", "Planted", "kinds", "sessions"]


@dataclass(frozen=True)
class Planted:
    """A text with something in it, the stretches that must go, and the names a user would list."""

    text: str
    values: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    command: str = ""
    """The command whose output the text is, if only the call tells what it says."""
    either: tuple[str, ...] = ()
    """What was drawn but may stay or go."""


@dataclass(frozen=True)
class Kind:
    """One kind of planted data."""

    name: str
    group: str  # secret, personal or negative
    make: Callable[[random.Random], Planted]


@dataclass(frozen=True)
class Plant:
    """Where one planted thing stands in a session."""

    kind: Kind
    planted: Planted
    message: int


SETS = (
    ("first", 11),
    ("second", 21),
    ("third", 31),
    ("fourth", 41),
    ("fifth", 51),
    ("sixth", 61),
    ("seventh", 71),
    ("eighth", 81),
    ("ninth", 91),
    ("tenth", 101),
    ("eleventh", 111),
    ("twelfth", 121),
    ("thirteenth", 131),
    ("fourteenth", 141),
    ("fifteenth", 151),
    ("sixteenth", 161),
    ("seventeenth", 171),
    ("eighteenth", 181),
    ("nineteenth", 191),
)
"""The sets in the order in which they were written, with the seed that each was first measured with."""

_HERE = Path(__file__).resolve().parent
_BASE32 = string.ascii_uppercase + "234567"
_HEX = "0123456789abcdef"
_ALPHABETS = {
    "x": _HEX,
    "X": _HEX.upper(),
    "T": _BASE32,
    "A": ALNUM,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "b": ALNUM + "+/",
    "u": ALNUM + "_-",
    "d": string.digits,
}
_DRAWN = re.compile(r"([xXTAaUbud])(\d+)")
_MARK = re.compile(r"⟦(.+?)⟧|‹(.+?)›")
_WORDS = ("maple", "harbor", "walrus", "copper", "signal", "bramble", "tundra", "velvet", "comet", "pepper")
_SIGNS = "!#$%?*-_.+"
_NOUNS = ("falcon", "basil", "granite", "otter", "pluto", "cobalt", "mistral", "walnut", "osprey", "vega")
_ROLES = ("ws", "laptop", "build", "db", "nas", "dev", "ci", "node")


def names_of(file: str) -> tuple[list[str], list[str]]:
    """Return the first and the last names that a set draws from."""
    first, last = (_HERE / f"{file}_names.txt").read_text("utf-8").splitlines()[:2]
    return first.split(), last.split()


class _Draws:
    """What one block draws; a name is drawn once."""

    def __init__(self, rng: random.Random, first: list[str], last: list[str]) -> None:
        self._rng = rng
        self._people = {number: (_drawn_name(rng, first), _drawn_name(rng, last)) for number in ("", "2")}
        self._drawn: dict[str, str] = {}
        self._literal: list[str] = []

    def aliases(self) -> list[str]:
        """Return what the user would list of the people that were drawn."""
        drawn = [value for name, value in self._drawn.items() if re.sub(r"\d", "", name) in _LISTED]
        return [*drawn, *self._literal]

    def join(self, spec: str) -> str:
        """Return the parts of one mark, drawn and joined."""
        return "".join(self._part(part) for part in spec.split(";"))

    def _part(self, part: str) -> str:
        if part.startswith("'"):
            return part[1:]
        if part.startswith('"'):
            self._literal.append(part[1:])
            return part[1:]
        drawn = _DRAWN.fullmatch(part)
        if drawn:
            return draw(self._rng, _ALPHABETS[drawn[1]], int(drawn[2]))
        if part in ("p", "w"):
            return self._password() if part == "p" else self._rng.choice(_WORDS)
        if part not in self._drawn:
            self._drawn[part] = self._name(part)
        return self._drawn[part]

    def _password(self) -> str:
        rng = self._rng
        word, number = rng.choice(_WORDS), rng.randrange(10, 9999)
        return rng.choice(
            (
                f"{word.capitalize()}{rng.choice(_SIGNS)}{number}",
                f"{word[:3]}{rng.choice('@013$')}{word[3:]}{number}{rng.choice('!#?')}",
                draw(rng, ALNUM + "!#%*_-", rng.randrange(10, 18)),
                draw(rng, ALNUM, rng.randrange(10, 20)),
            )
        )

    def _name(self, part: str) -> str:
        rng = self._rng
        if part in ("ip", "mac", "iban", "iban4", "card"):
            return _number(part, rng)
        number = part[-1] if part[-1].isdigit() else ""
        name = part.removesuffix(number) if number else part
        if name in ("host", "HOST"):
            host = self._drawn.get("host" + number) or rng.choice(
                (
                    f"{rng.choice(_NOUNS)}-{rng.choice(_ROLES)}{rng.randrange(1, 40):02d}",
                    f"{rng.choice(_NOUNS)}{rng.randrange(1, 40)}",
                    f"{rng.choice(_ROLES)}-{rng.choice(_NOUNS)}",
                )
            )
            return host.upper() if name == "HOST" else host
        first, last = self._people[number]
        low_first, low_last = (re.sub(r"[^a-z]", "", _plain(one).lower()) for one in (first, last))
        return {
            "full": f"{first} {last}",
            "first": first,
            "last": last,
            "FIRST": first.upper(),
            "LAST": last.upper(),
            "first.low": low_first,
            "last.low": low_last,
            "mail": f"{low_first}.{low_last}@acme-corp.dev",
            "login": rng.choice((low_first[0] + low_last, f"{low_first}.{low_last[0]}", low_last + low_first[0],
                                 f"{low_first}{rng.randrange(10, 99)}")),
        }[name]  # fmt: skip


def _drawn_name(rng: random.Random, known: list[str]) -> str:
    """Return a real name now and then, else an invented one, so that a session's people rarely share a name."""
    if rng.random() < 0.3:
        return rng.choice(known)
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3)).capitalize() + rng.choice(
        "nlrsk"
    )


_LISTED = {"full", "first", "last", "login", "host"}


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKD", name)


def _number(name: str, rng: random.Random) -> str:
    if name == "ip":
        network = rng.choice((81, 93, 145, 178, 212))
        return f"{network}.{rng.randrange(1, 250)}.{rng.randrange(250)}.{rng.randrange(1, 250)}"
    if name == "mac":
        return ":".join(["3c", *(draw(rng, _HEX, 2) for _ in range(5))])
    if name == "card":
        body = "4" + draw(rng, string.digits, 14)
        total = sum(sum(divmod(2 * int(d), 10)) if at % 2 == 0 else int(d) for at, d in enumerate(body))
        return body + str(-total % 10)
    bank = draw(rng, string.digits, 18)
    check = 98 - int(bank + "131400") % 97
    iban = f"DE{check:02d}{bank}"
    return " ".join(iban[at : at + 4] for at in range(0, 22, 4)) if name == "iban4" else iban


def _kind(name: str, group: str, text: str, command: str, names: tuple[list[str], list[str]]) -> Kind:
    def make(rng: random.Random) -> Planted:
        draws = _Draws(rng, *names)
        values: list[str] = []
        either: list[str] = []

        def put(match: re.Match[str]) -> str:
            value = draws.join(match[1] or match[2])
            if match[1]:
                values.append(value)
                # Half a person's name is still somebody's.
                values.extend(value.split() if re.fullmatch(r"full2?", match[1]) else ())
            else:
                either.append(value)
            return value

        filled = _MARK.sub(put, text)
        run = _MARK.sub(put, command)
        aliases = draws.aliases() if group == "personal" else []
        return Planted(filled, tuple(dict.fromkeys(values)), tuple(dict.fromkeys(aliases)), run, tuple(either))

    return Kind(name, group, make)


def kinds(file: str) -> list[Kind]:
    """Return the kinds of one set: `first`, or a later one."""
    names, found = names_of(file), []
    for group, which in (("secret", "secrets"), ("personal", "people"), ("negative", "negatives")):
        text = (_HERE / f"{file}_{which}.txt").read_text("utf-8")
        for block in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            head, _, body = block.partition("\n")
            name, _, command = head.partition(" | ")
            found.append(_kind(f"{file}: {name}", group, body.rstrip("\n"), command, names))
    return found


_FILLER = (
    "Ran 214 tests in 3.2 s, 2 failed: tests/test_queue.py::test_retry and tests/test_queue.py::test_drain",
    "diff --git a/src/relay/pool.py b/src/relay/pool.py\nindex 3f2a91c..b07d6e4 100644\n@@ -41,7 +41,9 @@",
    "On branch fix/double-delivery\nChanges not staged for commit:\n\tmodified:   src/relay/ledger.py",
    "PR #2147 is merged as 9c1e4f7a2b, release v2.14.3 is out; next is issue #2190",
    "WARNING: LeaseExpired after 30 s (worker_pool_v2, queue depth 118)",
)
_CARRIERS = ("raw", "json", "nested", "arguments")


def _carry(text: str, carrier: str, rng: random.Random, *, alone: bool = False) -> str:
    body = text if alone else f"{rng.choice(_FILLER)}\n{text}\n{rng.choice(_FILLER)}"
    if carrier == "raw":
        return body
    if carrier == "nested":
        return json.dumps({"result": json.dumps({"stdout": body, "exit_code": 0}), "error": None})
    return json.dumps({"output": body, "exit_code": 0})


def sessions(kinds: Sequence[Kind], seed: int, rounds: int = 4, size: int = 24) -> list[tuple[Fixture, list[Plant]]]:
    """Return sessions in which every kind stands once for each round, in changing places."""
    rng = random.Random(seed)
    order = [
        (kind, _CARRIERS[(index + turn) % len(_CARRIERS)]) for turn in range(rounds) for index, kind in enumerate(kinds)
    ]
    rng.shuffle(order)
    built = []
    for start in range(0, len(order), size):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent with a terminal."},
            {"role": "user", "content": "Find out why jobs are delivered twice and fix it."},
        ]
        plants = []
        for number, (kind, carrier) in enumerate(order[start : start + size]):
            planted = kind.make(rng)
            if planted.command and carrier == "arguments":
                carrier = "json"
            call = f"call_{number}"
            text = _carry(planted.text, carrier, rng, alone=bool(planted.command))
            command = planted.command or "cat notes.txt"
            arguments = text if carrier == "arguments" else json.dumps({"command": command})
            output = rng.choice(_FILLER) if carrier == "arguments" else text
            function = {"name": "terminal", "arguments": arguments}
            messages.append(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": call, "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": call, "content": output})
            plants.append(Plant(kind, planted, len(messages) - (2 if carrier == "arguments" else 1)))
        messages.append({"role": "user", "content": "continue"})
        built.append((Fixture(name=f"planted-{seed}-{start}", messages=messages), plants))
    return built
