"""Facts by name: what is counted, what is tested, and what all runs agree on though they are too few for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.case import load_suite
from eval_core.domain.compression import ModelUse
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import InventedRecord, RunRecord
from eval_core.statistics.exact import sign_p
from eval_core.strands.evidence import read_evidence
from eval_core.strands.fact_changes import is_exact, same_text
from eval_core.strands.findings import Kind, Verdict

Edit = Callable[[RunRecord, int], RunRecord]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    names = ("constraints-and-reversals", "debug-session-feishu-id-model")
    cases = load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes", names)
    return small.measure(cases, Path(tmp_path_factory.mktemp("once")), "anchored")


def runs(once: Measurement, *edits: Edit, number: int = 3, model: bool = False) -> Measurement:
    """The measurement as that of a compressor of which nothing is known, with as many runs, each edited."""

    def edited(run: RunRecord, at: int) -> RunRecord:
        run = run.model_copy(update={"run": at, "use": {"compressor": ModelUse(calls=int(model))}})
        for edit in edits:
            run = edit(run, at)
        return run

    return once.model_copy(
        update={
            "deterministic": None,
            **dict.fromkeys(("planned_runs", "planned_compress_runs"), number),
            "models": {**once.models, "compressor": "acme/large" if model else "offline:rules"},
            "fixtures": {name: [edited(found[0], at) for at in range(number)] for name, found in once.fixtures.items()},
        }
    )


def nonce(run: RunRecord, at: int) -> RunRecord:
    return run.model_copy(update={"summary": f"{run.summary}\n- run {at}", "tokens_after": run.tokens_after + at})


def losing(*places: int, fixture: str = "constraints-and-reversals") -> Edit:
    """Lose the first of the census facts that are kept, by their order."""

    def edit(run: RunRecord, at: int) -> RunRecord:
        if run.fixture != fixture:
            return run
        kept = [index for index, sign in enumerate(run.census.fates) if sign == "1"]
        gone = {kept[place] for place in places}
        fates = "".join("0" if index in gone else sign for index, sign in enumerate(run.census.fates))
        return run.model_copy(update={"census": run.census.model_copy(update={"fates": fates})})

    return edit


def inventing(value: str) -> Edit:
    def edit(run: RunRecord, at: int) -> RunRecord:
        stated = [InventedRecord(kind="url", value=value.format(at))] if run.fixture.startswith("constraints") else []
        return run.model_copy(update={"invented": [*(run.invented or []), *stated]})

    return edit


def verdict(base: Measurement, candidate: Measurement) -> Verdict:
    return compare_measurements(base, candidate)[0]


def details(found: Verdict) -> list[str]:
    facts = found.strand("facts")
    return [line for line in facts.details if "too few to be tested" in line] if facts else []


def test_a_number_that_the_compressor_draws_does_not_make_its_facts_uncertain(once: Measurement) -> None:
    base, drawn = runs(once), runs(once, nonce)
    assert is_exact(drawn)
    assert not same_text(drawn)
    assert not is_exact(runs(once, nonce, number=2))
    lost = verdict(base, runs(once, nonce, losing(0, 1, 2, 3, 4)))
    assert (lost.kind, lost.exact) == (Kind.REGRESSED, True)
    assert verdict(base, drawn).kind is Kind.NO_DETECTABLE_CHANGE
    assert verdict(base, runs(once, nonce, inventing("https://x.test/a"))).kind is Kind.REGRESSED


def test_a_number_drawn_for_a_false_value_is_no_certain_value(once: Measurement) -> None:
    assert not is_exact(runs(once, inventing("https://x.test/{}")))


def test_equal_facts_under_texts_that_a_model_wrote_are_tested(once: Measurement) -> None:
    written = runs(once, nonce, model=True)
    assert not is_exact(written)
    assert is_exact(runs(once, model=True))
    unknown = {name: [run.model_copy(update={"use": {}}) for run in found] for name, found in written.fixtures.items()}
    assert written.model_copy(update={"fixtures": unknown}).model_wrote
    asked_nobody = runs(once, nonce).model_copy(update={"models": written.models})
    assert is_exact(asked_nobody)


def test_what_all_runs_agree_on_is_named_where_they_are_too_few_for_a_test(once: Measurement) -> None:
    base = runs(once, nonce, model=True)
    found = verdict(base, runs(once, nonce, losing(0), inventing("https://x.test/a"), model=True))
    assert not found.exact
    lost, stated = details(found)
    assert lost.startswith("lost in all 3 runs, kept in all 3 of the base, too few to be tested: ")
    assert lost.endswith(" (constraints-and-reversals)")
    assert stated.startswith(
        "in all runs and none of the base, too few to be tested: invented: https://x.test/a (url, "
    )

    many = runs(once, nonce, model=True, number=10)
    enough = verdict(many, runs(once, nonce, losing(0), inventing("https://x.test/a"), model=True, number=10))
    assert not details(enough)
    assert [change.clear for change in enough.facts] == [True]
    single = verdict(runs(once, number=1, model=True), runs(once, losing(0), number=1, model=True))
    assert not details(single)


def smaller(run: RunRecord, at: int) -> RunRecord:
    return run.model_copy(update={"tokens_after": int(run.tokens_after * 0.9)})


def now_and_then(*places: int) -> Edit:
    """Lose the facts in the first run only: each by itself may be chance."""
    lose = losing(*places)
    return lambda run, at: lose(run, at) if at == 0 else run


def test_a_smaller_state_with_many_facts_kept_less_often_is_a_trade(once: Measurement) -> None:
    base = runs(once, nonce, model=True, number=6)
    leaning = verdict(base, runs(once, nonce, now_and_then(*range(8)), smaller, model=True, number=6))
    assert leaning.kind is Kind.TRADE
    assert leaning.headline.startswith("Trade: 8 facts kept less often and none more often, for 10 % fewer tokens")
    assert leaning.next_step == "Decide whether the smaller size is worth the loss."
    few = verdict(base, runs(once, nonce, now_and_then(0, 1), smaller, model=True, number=6))
    assert few.kind is Kind.IMPROVED
    same_size = verdict(base, runs(once, nonce, now_and_then(*range(8)), model=True, number=6))
    assert same_size.kind is Kind.NO_DETECTABLE_CHANGE


def test_facts_that_moved_both_ways_do_not_lean(once: Measurement) -> None:
    base = runs(once, nonce, now_and_then(*range(8)), model=True, number=6)
    candidate = runs(once, nonce, now_and_then(*range(8, 18)), smaller, model=True, number=6)
    assert read_evidence(base, candidate).leaning is None
    assert verdict(base, candidate).kind is Kind.IMPROVED


@pytest.mark.parametrize(("down", "up", "p"), [(0, 0, 1.0), (1, 0, 0.5), (3, 1, 5 / 16), (7, 0, 1 / 128)])
def test_the_sign_test_is_the_binomial_one(down: int, up: int, p: float) -> None:
    assert sign_p(down, up) == p


PREFACE = inventing("https://x.test/preface")


def test_what_every_base_run_invents_hides_no_new_inventions(once: Measurement) -> None:
    base = runs(once, nonce, PREFACE, model=True, number=10)
    assert verdict(base, runs(once, nonce, PREFACE, model=True, number=3)).kind is Kind.NO_DETECTABLE_CHANGE
    false = [inventing(f"https://x.test/{number}-{{}}") for number in range(4)]
    found = verdict(base, runs(once, nonce, PREFACE, *false, model=True, number=3))
    assert found.kind is Kind.REGRESSED
    assert len(found.false_values) == 12
    assert "https://x.test/preface" not in [item.value for item in found.false_values]


def test_a_model_that_coins_a_value_now_and_then_is_told_from_one_that_coins_many(once: Measurement) -> None:
    coining = inventing("https://x.test/coined-{}")
    base = runs(once, nonce, coining, model=True, number=10)
    other = inventing("https://x.test/other-{}")
    assert verdict(base, runs(once, nonce, other, model=True, number=5)).kind is not Kind.REGRESSED
    many = [inventing(f"https://x.test/{number}-{{}}") for number in range(6)]
    assert verdict(base, runs(once, nonce, *many, model=True, number=5)).kind is Kind.REGRESSED
