"""The lint of ledgers: no line that no message supports, none that fits two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small
from click.testing import CliRunner

from eval_core.base.files import pretty
from eval_core.cli.probe import probe
from eval_core.domain.case import Case
from eval_core.domain.session_ledger import SessionLedger
from eval_core.suite.ledger_lint import lint_ledger


def _rule(**changed: Any) -> dict[str, Any]:
    return {
        "id": "leave-billing", "kind": "rule", "anchors": ["billing/"], "text": "Do not touch billing/.",
        "speaker": "user", "said": [1], "polarity": "do_not", "strength": "must", **changed,
    }  # fmt: skip


def _decision(**changed: Any) -> dict[str, Any]:
    return {
        "id": "pooled", "kind": "decision", "anchors": ["pooled connection"], "text": "Use a pooled connection.",
        "speaker": "assistant", "said": [7], **changed,
    }  # fmt: skip


def _rules(*lines: dict[str, Any]) -> list[tuple[str | None, str]]:
    ledger = SessionLedger.model_validate({"fixture": "small-debug", "lines": list(lines)})
    return [(finding.probe, finding.rule) for finding in lint_ledger(ledger, small.debug_fixture())]


def test_a_sound_ledger_has_no_findings() -> None:
    assert _rules(_rule(), _decision()) == []


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ([_rule(said=[1, 2])], ("leave-billing", "unsupported")),
        ([_rule(speaker="assistant")], ("leave-billing", "wrong-speaker")),
        ([_rule(text="Leave it alone.")], ("leave-billing", "text-without-anchors")),
        ([_rule(), _decision(text="Use a pooled connection, not billing/.")], ("leave-billing", "fits-two")),
        ([_rule(draft=True)], ("leave-billing", "draft")),
        ([_rule(superseded_at=4, superseded_by="pooled"), _decision()], ("leave-billing", "superseded-order")),
    ],
)
def test_what_is_wrong_with_a_line_is_found(lines: list[dict[str, Any]], finding: tuple[str, str]) -> None:
    assert _rules(*lines) == [finding]


def test_steps_in_a_circle_are_found() -> None:
    lines = _rule(after=["pooled"]), _decision(after=["leave-billing"])
    assert _rules(*lines) == [("leave-billing", "after-itself"), ("pooled", "after-itself")]


def test_probe_lint_checks_the_ledger_beside_a_bank(project: Path) -> None:
    body = {"fixture": "small-debug", "lines": [_rule(said=[1, 2])]}
    small.write(project / "probes" / "small-debug.ledger.json", pretty(body))
    result = CliRunner().invoke(probe, ["lint", "small-debug"])
    assert result.exit_code == 2
    assert "small-debug.ledger.json: leave-billing: message 2 does not say 'billing/'" in result.output


def test_the_shipped_ledgers_say_what_their_sessions_say(shipped: list[Case]) -> None:
    for case in shipped:
        assert case.ledger is not None, case.fixture.name
        assert lint_ledger(case.ledger, case.fixture) == []
        assert {line.kind for line in case.ledger.lines} >= {"rule", "item"}
