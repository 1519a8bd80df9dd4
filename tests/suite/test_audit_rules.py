"""The audit's second look finds what the scrubber's detectors miss, and leaves ordinary text alone."""

from __future__ import annotations

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
    "the form gave 0711 4482 9931 as the line to ring",
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


def test_a_word_that_the_user_spares_is_not_reported() -> None:
    text = "approved by: Zbrwn, and Thessaly Okonjira took over"
    assert audit_fixture(session(text), Identities(spared={"zbrwn", "thessaly okonjira"})) == []


def test_the_audit_says_what_it_cannot_know(tmp_path: Path) -> None:
    clean = tmp_path / "sample.json"
    clean.write_text(dump_fixture(session("nothing here")), encoding="utf-8")
    done = CliRunner().invoke(root, ["fixture", "audit", str(clean)])
    assert done.exit_code == 0
    assert CANNOT_KNOW in done.stderr
