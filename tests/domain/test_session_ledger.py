"""The ledger: what is accepted, and what is refused with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.case import load_suite
from eval_core.domain.session_ledger import dump_ledger, load_ledger

LEDGER: dict[str, Any] = {
    "fixture": "small-debug",
    "language": "English",
    "lines": [
        {
            "id": "leave-billing", "kind": "rule", "anchors": ["billing/"], "text": "Do not touch billing/.",
            "speaker": "user", "said": [1], "polarity": "do_not", "strength": "must",
        },
        {
            "id": "pooled", "kind": "item", "anchors": ["pooled connection"],
            "text": "Switch to a pooled connection.", "speaker": "assistant", "said": [7],
            "status": [{"at": 7, "is": "open"}, {"at": 10, "is": "done"}],
        },
    ],
}  # fmt: skip


def _write(tmp_path: Path, change: Any = None) -> Path:
    path = small.write(tmp_path / "small-debug.ledger.json", json.dumps(LEDGER))
    if change is not None:
        small.edit_json(path, change)
    return path


def test_a_stored_ledger_reads_back_as_it_is(tmp_path: Path) -> None:
    ledger = load_ledger(_write(tmp_path))
    again = load_ledger(small.write(tmp_path / "again.ledger.json", dump_ledger(ledger)))
    assert again == ledger
    assert again.digest == ledger.digest
    assert json.loads(dump_ledger(ledger)) == LEDGER


def test_status_and_life_of_a_line_are_told_by_message(tmp_path: Path) -> None:
    def end(body: Any) -> None:
        body["lines"][0].update(superseded_at=9)

    rule, item = load_ledger(_write(tmp_path, end)).lines
    assert [rule.live(end) for end in (1, 2, 9, 10)] == [False, True, True, False]
    assert [item.status_at(end) for end in (7, 8, 10, 11)] == [None, "open", "open", "done"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1].update(id="leave-billing"), r"lines\[1\]\.id: 'leave-billing' is used twice"),
        (lambda lines: lines[0].update(kind="law"), r"lines\[0\]\.kind: 'law' is not one of rule, item, approval"),
        (lambda lines: lines[0].update(anchors=[]), r"lines\[0\]\.anchors: "),
        (lambda lines: lines[0].update(said=[]), r"lines\[0\]\.said: "),
        (lambda lines: lines[0].pop("polarity"), r"lines\[0\]: polarity: a rule needs it"),
        (lambda lines: lines[1].update(strength="must"), r"lines\[1\]: strength: only rules have it, this is: item"),
        (lambda lines: lines[1].update(status=[]), r"lines\[1\]: status: items and approvals have one or more"),
        (lambda lines: lines[0].update(said=[9, 1]), r"lines\[0\]: said: \[9, 1\] is not in order"),
        (
            lambda lines: lines[1]["status"].reverse(),
            r"lines\[1\]: status: \[10, 7\] is not in order; each message once, the earliest first",
        ),
        (
            lambda lines: lines[1]["status"][0].update({"is": "given"}),
            r"lines\[1\]: status\[0\]\.is: 'given' is not for a line of kind item; use open, done",
        ),
        (
            lambda lines: lines[0].update(superseded_by="pooled"),
            r"lines\[0\]: superseded_at: missing; give the message from which the other line holds",
        ),
        (lambda lines: lines[0].update(superseded_at=1), r"lines\[0\]: superseded_at: 1 is not after 1"),
        (
            lambda lines: lines[0].update(superseded_at=9, superseded_by="poled"),
            r"lines\[0\]\.superseded_by: 'poled' is no other line of this ledger",
        ),
        (lambda lines: lines[1].update(after=["pooled"]), r"lines\[1\]\.after: 'pooled' is no other line"),
        (lambda lines: lines[0].update(anchor=["x"]), r"lines\[0\]\.anchor: unknown field; did you mean 'anchors'\?"),
        (lambda lines: lines.clear(), r"lines: "),
    ],
)
def test_a_mistake_in_a_ledger_is_named_with_its_place(change: Any, message: str, tmp_path: Path) -> None:
    path = _write(tmp_path, lambda body: change(body["lines"]))
    with pytest.raises(UserError, match=r"small-debug\.ledger\.json: .*" + message) as caught:
        load_ledger(path)
    assert "\n" not in str(caught.value)


def test_a_suite_loads_the_ledger_of_a_fixture_that_has_one(project: Path) -> None:
    _write(project / "probes")
    ledgers = {case.fixture.name: case.ledger for case in load_suite(Path("fixtures"), Path("probes"))}
    assert [name for name, ledger in ledgers.items() if ledger is not None] == ["small-debug"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.update(fixture="small-plan"), r"fixture: 'small-plan' is another fixture's ledger"),
        (
            lambda body: body["lines"][1]["status"][1].update(at=99),
            r"lines\[1\]\.status: 99 is not a message of small-debug \(0 to 16\)",
        ),
    ],
)
def test_a_ledger_that_does_not_fit_its_fixture_is_refused(change: Any, message: str, project: Path) -> None:
    _write(project / "probes", change)
    with pytest.raises(UserError, match=message):
        load_suite(Path("fixtures"), Path("probes"))
