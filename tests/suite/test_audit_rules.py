"""The audit's second look finds what the scrubber's detectors miss, and leaves ordinary text alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import root
from eval_core.domain.fixture import dump_fixture
from eval_core.suite.audit import audit_fixture
from eval_core.suite.audit_rules import CANNOT_KNOW, doubts
from eval_core.suite.scrub import Identities
from eval_core.suite.scrub.detect import context_hits
from tests.suite.sessions import session

# Each is something that no detector of the scrubber finds: the audit was green on it.
MISSED = (
    "employee = quillfeather_the_second_of_the_name_and_of_the_old_house",
    "the form gave 4711 4482 9931 as the line to ring",
    "ref 4417 882 0931 12 was on the form",
    "contact: zeldakw-",
    "the token from the mail was qzkwv7trplmx",
)


@pytest.mark.parametrize("text", MISSED)
def test_what_the_scrubber_misses_is_still_reported(text: str) -> None:
    assert context_hits(text, None) == ()
    findings = audit_fixture(session(text))
    assert [finding.rule for finding in findings if finding.rule.startswith("second look")]
    assert all(finding.open for finding in findings)


@pytest.mark.parametrize(
    "text",
    [
        "user: user1\nhost: host2\nemail: person3@example.com\nphone: +1 202-555-0101",
        "owner: platform team\nauthor=unknown\nhostname: localhost\nuser: string",
        "Run the tests in src/relay/pool.py, then open Visual Studio and read Known Issues",
        "def login(user: User, host: str = config.host) -> Account:",
        "sizes 4800 2400 1280 640 at 2026-03-14",
        "postgres://app:REDACTED-url-password-1@db.internal.acme.dev:5432/app",  # a URL, and no e-mail address
        "git clone https://ci:REDACTED-url-password-2@git.acme.dev/relay.git",
    ],
)
def test_ordinary_text_and_placeholders_raise_no_doubt(text: str) -> None:
    assert list(doubts(text, None)) == []


# What stands out, and the line that makes it stand out. None has a format that a rule knows.
NAMED = (
    ("cy.get('[name=password]').type('Bramble-4471{enter}')", "Bramble-4471"),
    ("echo 'pe3ch688#' | attach-volume tank/data", "pe3ch688#"),
    ("the old box opens with Fennel_4471 as before", "Fennel_4471"),
    ("WIDGET_SIGNING: 0bdae3fd10d5431512428d6e256d4830", "0bdae3fd10d5431512428d6e256d4830"),
    ("7,ops,REDACTED-flag-2,afcd6bda38294cc271f012ba97ed0cf5", "afcd6bda38294cc271f012ba97ed0cf5"),
    ("side entrance, keypad 162171 then hash", "162171"),
    ("Voucher code KCRU-4H2Q3Z-P9XP", "KCRU-4H2Q3Z-P9XP"),
    ("join at https://chat.tarn.example/sMNf8ZLvn8q", "sMNf8ZLvn8q"),
    ("mesh: [17, 203, 44, 91, 8, 250, 66, 13, 171, 29, 92, 4, 211, 76, 55, 129]", "17, 203, 44"),
    ("| box | pw |\n|---|---|\n| edge | iKhZmCOLCYS |", "iKhZmCOLCYS"),
    ("44112.0   fokapalr   6/3  09:12   0+01:12:01 R  0   44.0 train.sh", "fokapalr"),
    ("User [velkomar] from [203.0.113.1] signed in", "velkomar"),
    ("Approved by Person2 (dravokil.r)", "dravokil.r"),
    ("Authentication request for dosolik.m has succeeded", "dosolik.m"),
    ("2024-06-03 09:12:01 1sE <= person1@example.com H=(laptop-otter) [203.0.113.1]", "laptop-otter"),
    ("45066;Rididor, Ragnhild;01.04.2019", "Rididor, Ragnhild"),
    ("Yesterday Bikebis and I paired on the lease bug", "Bikebis"),
    ("parked in bay 4, plate KR-Y9-3937", "KR-Y9-3937"),
    ("PID|1||44112^^^H||Person7^Person8||19790211|F", "19790211"),
    ("$GPGGA,091201,4851.035,N,00221.956,E,1,08", "4851.035,N,00221.956"),
)


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_line_names_what_stands_out_on_it(text: str, value: str) -> None:
    assert any(value in text[doubt.start : doubt.end] for doubt in doubts(text, None))


@pytest.mark.parametrize(
    "text",
    [
        "77e0a93 Let no gate pass without a token\n10b0071 Name the secret store",
        "commit 9c1e4f7a2b0d5e6f8a9b0c1d2e3f4a5b6c7d8e9f\n    Rotate tokens every hour",
        "auth request 0b6f7a52-8c1d-4e0f-9a3b-1c2d3e4f5a6b took 118ms, error AADSTS50126",
        "password_hasher = argon2id, key X25519, pin GPIO17, seed 20240603",
        "cache key py311-deps-v4 hit; tokenizer cl100k_base has 100277 tokens",
        "-rw-r--r-- 1 user1 user1 118 Jun  3 09:12 Makefile",
        "user1@host1:~/relay$ uvicorn relay.app:main --reload",
        "from cryptography.fernet import Fernet\nwith contextlib.suppress(OSError): pass",
        "https://github.com/tarn/relay/blob/adca19bf1f287b3395896a8f41f3f4fd1797fdc7/src/pool.py",
        "sizes: [16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 255]",
    ],
)
def test_harmless_shapes_near_the_same_words_raise_no_doubt(text: str) -> None:
    assert list(doubts(text, None)) == []


def test_a_long_line_without_spaces_is_read_in_linear_time() -> None:
    text = "token " + "aZ9" * 50_000
    before = time.process_time()
    list(doubts(text, None))
    assert time.process_time() - before < 10


def test_a_word_that_the_user_spares_is_not_reported() -> None:
    text = "approved by: Zbrwn, and Thessaly Okonjira took over"
    assert audit_fixture(session(text), Identities(spared={"zbrwn", "thessaly okonjira"})) == []


def test_the_audit_says_what_it_cannot_know(tmp_path: Path) -> None:
    clean = tmp_path / "sample.json"
    clean.write_text(dump_fixture(session("nothing here")), encoding="utf-8")
    done = CliRunner().invoke(root, ["fixture", "audit", str(clean)])
    assert done.exit_code == 0
    assert CANNOT_KNOW in done.stderr
