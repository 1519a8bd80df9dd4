"""Generated sessions: the same from the same seed and tree, true to their ledger, and compressed at fixed places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.base.tokens import count_messages
from eval_core.domain.probe import PROBE_TYPES
from eval_core.suite.generate import SessionPlan, generate, read_tree
from eval_core.suite.ledger_lint import lint_ledger
from eval_core.suite.lint import lint
from eval_core.suite.sizes import SIZES, generated_cases, made_once

PLAN = SessionPlan("short-1", 1, tokens=12_000, window=4_000)


def test_a_plan_and_a_tree_always_give_the_same_session() -> None:
    first, again = generate(PLAN), generate(PLAN)
    assert (first.fixture.digest, first.bank.digest) == (again.fixture.digest, again.bank.digest)
    assert first.ledger == again.ledger
    assert generate(replace(PLAN, seed=2)).fixture.digest != first.fixture.digest
    tree = {**read_tree(), "more.py": "x = 1\n" * 300}
    assert generate(PLAN, tree).fixture.digest != first.fixture.digest


def test_the_ledger_and_the_probes_of_a_session_are_clean() -> None:
    case = generate(SIZES["rounds"][0])
    assert case.ledger is not None
    assert list(lint_ledger(case.ledger, case.fixture)) == []
    assert list(lint(case.bank, case.fixture)) == []


def test_probes_ask_for_early_middle_and_late_facts_of_every_type_and_for_what_was_replaced() -> None:
    case = generate(SIZES["rounds"][0])
    for part in ("early", "middle", "late"):
        assert {probe.type for probe in case.bank.probes if probe.id.startswith(part)} == set(PROBE_TYPES)
    assert any(probe.superseded for probe in case.bank.probes)


@pytest.mark.parametrize("plan", [PLAN, SIZES["rounds"][1]], ids=["short", "rounds"])
def test_a_session_has_the_asked_length_and_equal_rounds(plan: SessionPlan) -> None:
    fixture = generate(plan).fixture
    sizes = [count_messages(fixture.messages[a:b]) for a, b in zip([0, *fixture.cuts], fixture.cuts, strict=False)]
    assert sum(sizes) == pytest.approx(plan.tokens, rel=0.15)
    assert len(sizes) == plan.rounds
    assert max(count_messages([message]) for message in fixture.messages) <= 1.2 * plan.window / 4
    assert max(sizes) < plan.window


def test_no_session_is_made_that_would_free_nothing_or_that_nobody_could_ask_about() -> None:
    with pytest.raises(UserError, match=r"--largest 9,000: give 100 to 4,000; with more than a quarter"):
        SessionPlan("a", 1, largest=9_000)
    with pytest.raises(UserError, match=r"--tokens 10: give 2,000"):
        SessionPlan("a", 1, tokens=10)


def test_a_tree_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x = 1\n")
    with pytest.raises(UserError, match="fewer than 200 lines of text"):
        read_tree(tmp_path)
    broken = tmp_path / "tree.json.gz"
    broken.write_bytes(b"no gzip")
    with pytest.raises(UserError, match=r"tree\.json\.gz: the tree of generated sessions cannot be read"):
        read_tree(broken)


def test_a_session_is_made_once_and_read_afterwards(tmp_path: Path) -> None:
    made = made_once(PLAN, tmp_path)
    (kept,) = tmp_path.iterdir()
    before = kept.stat().st_mtime_ns
    read = made_once(PLAN, tmp_path)
    assert (read.fixture.digest, read.bank.digest, read.ledger) == (made.fixture.digest, made.bank.digest, made.ledger)
    assert kept.stat().st_mtime_ns == before
    made_once(replace(PLAN, seed=2), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_kept_session_that_is_cut_off_is_named_and_can_be_made_anew(tmp_path: Path) -> None:
    made_once(PLAN, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:2_000])
    with pytest.raises(
        UserError, match=rf"{kept.name}: not a whole gzip file.*; remove the file, and it is made anew$"
    ):
        made_once(PLAN, tmp_path)
    kept.unlink()
    assert made_once(PLAN, tmp_path).fixture.digest == generate(PLAN).fixture.digest


def test_another_digest_than_expected_is_an_error_that_names_both(tmp_path: Path) -> None:
    digest = generate(PLAN).fixture.digest
    with pytest.raises(UserError, match=f"short-1 has the digest {digest[:16]}, and {'f' * 16} was expected"):
        made_once(PLAN, tmp_path, expected="f" * 64)


def test_the_sessions_of_every_size_are_those_that_were_written_down(tmp_path: Path) -> None:
    assert [case.fixture.name for case in generated_cases(SIZES["rounds"], tmp_path)] == [
        f"rounds-{n}" for n in range(1, 5)
    ]
    # The digests of the long ones are checked where they are used; that they are there, here.
    assert len(SIZES["full"]) == 8
