"""What the comment says: a golden whole, a byte budget, and instructions that are right."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import adopted
import report_world
import small
from bot_tickets import allowed, request
from hypothesis import given
from hypothesis import strategies as st

from bot.pull_request.body import mark
from bot.pull_request.result_body import READING, CommentContext, result_body
from bot.pull_request.ticket import Ticket
from bot.steps.comment import LIMIT
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.grade import DIMENSIONS
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import LineRecord, RoundsRecord, RoundState, RunRecord
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import ReportView, make_view
from eval_core.strands.findings import Kind

GOLDEN = Path(__file__).parent / "golden" / "comment.md"
TICKET = Ticket.of(request(), allowed("fixtures/small-plan.json", "requirements.txt"))


def _fixed(measurement: Measurement) -> Measurement:
    update = {"date": "2026-01-02T03:04:05Z", "version": "0.1.0", "source_sha": "a" * 40, "dirty": False}
    runs = {
        name: [run.model_copy(update={"seconds": 0.5}) for run in found] for name, found in measurement.fixtures.items()
    }
    provenance = measurement.provenance.model_copy(update=update)
    return measurement.model_copy(update={"provenance": provenance, "fixtures": runs})


@cache
def view() -> ReportView:
    """A regression, with everything fixed that depends on when and where it was measured."""

    base, candidate = _fixed(adopted.measured("anchored", 10)), _fixed(adopted.measured("opaque"))
    verdict, part = compare_measurements(base, candidate)
    suite = {case.fixture.name: case for case in adopted.cases()}
    data = ReportData(candidate, base=part, verdict=verdict, base_path="baselines/offline.json", cases=suite)
    return make_view(data)


def text(
    budget: int = LIMIT, ticket: Ticket = TICKET, warnings: Sequence[str] = (), shown: ReportView | None = None
) -> str:
    around = CommentContext(
        label="eval-compression",
        warnings=warnings,
        base="compared with `main` at `bbbbbbb`, by its stored baseline (12 days old, 3 commits behind)",
    )
    return result_body(shown or view(), ticket, around, budget=budget)


def test_what_rounds_lose_is_one_sentence_and_a_small_table() -> None:
    def played(fates: list[str]) -> list[RoundsRecord]:
        facts = [LineRecord(name=f"d{n}", kind="decision", value=f"d{n}", message=n, said=[0]) for n in range(4)]
        rounds = [RoundState(before=900, after=300, written=200, fates=signs) for signs in fates]
        return [RoundsRecord(session="long", facts=facts, rounds=rounds, oracle=[1.0, 0.75])]

    base = _fixed(adopted.measured("anchored", 10))
    beside = PlayedRounds(base=played(["ssss", "ssss"]), candidate=played(["ssss", "s000"]))
    candidate = base.model_copy(update={"extra": base.extra.model_copy(update={"rounds": beside})})
    verdict, part = compare_measurements(base, candidate)
    shown = text(shown=make_view(ReportData(candidate, base=part, verdict=verdict)))
    assert "3 of 4 facts are lost sooner when sessions are compressed again and again, all of them decisions" in shown
    table = [
        "| Over rounds | Base | This PR |",
        "|---|---|---|",
        "| decisions | 100 %, at the end 100 % | 62 %, at the end 25 % |",
        "| a perfect copy | 88 % | 88 % |",
    ]
    assert "\n".join(table) in shown
    assert "a perfect copy" not in text()


def test_the_comment_is_the_one_that_was_looked_at() -> None:
    shown = text(warnings=["The pull request is a draft."]) + "\n"
    # It changes with every version of what it is taken of.
    shown = re.sub(r"(Fingerprint: )`[0-9a-f]{12}`", r"\1`0123456789ab`", shown)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


def test_a_lost_fact_that_may_be_said_in_other_words_is_marked_in_the_comment_and_the_reports() -> None:
    lost = view().lost[0]
    data = view().data
    runs = {name: [_reworded(run, lost.fact) for run in found] for name, found in data.candidate.fixtures.items()}
    candidate = data.candidate.model_copy(update={"fixtures": runs})
    assert data.base is not None
    verdict, _ = compare_measurements(data.base, candidate)
    shown = make_view(replace(data, candidate=candidate, verdict=verdict))
    assert "is gone in all 3 runs (possibly paraphrased); the base always kept it" in text(shown=shown)
    assert "kept 100 % → 0 %, possibly paraphrased; " in text(shown=shown)
    assert "(baseline 100 %), possibly paraphrased" in render_markdown(shown)
    assert "possibly paraphrased" not in text()


def _reworded(run: RunRecord, label: str) -> RunRecord:
    probes = {
        name: record.model_copy(
            update={"facts": [fact.model_copy(update={"paraphrased": fact.label == label}) for fact in record.facts]}
        )
        for name, record in run.probes.items()
    }
    return run.model_copy(update={"probes": probes})


def test_the_first_screen_says_the_verdict_the_worst_losses_what_to_do_and_where_the_rest_is() -> None:
    shown = text()
    open_part = re.sub(r"<details>.*?</details>", "", shown, flags=re.DOTALL)
    first, _, table = open_part.partition("| Evidence |")
    assert first.startswith("**Every summary is a stub, ")  # the title says "Regressed"
    assert re.search(r"(?m)\A(?:(?!^- ).*\n)*(?:^- .*\n){3}\n", first)
    assert (
        "`POOL_SIZE = 32` was in message 8 of small-debug and is gone in all 3 runs; the base always kept it" in first
    )
    assert view().next_step in first
    assert f"[Full report in the artifact of this run]({TICKET.run_url})" in first
    base = "compared with `main` at `bbbbbbb`, by its stored baseline (12 days old, 3 commits behind)"
    assert f"({TICKET.run_url}) · {base}" in first
    assert first.index(view().size_line) < first.index("\n- ")
    assert table
    assert "**Facts" not in open_part
    assert shown.count("<details>") == shown.count("</details>") == 6


def test_a_loss_is_a_sentence_that_names_its_messages_as_people_do() -> None:
    lost = [
        replace(fact, evidence=places) for fact, places in zip(view().lost, [(7, 51), (1, 2, 3, 4, 5)], strict=False)
    ]
    shown = text(shown=replace(view(), lost=(*lost, replace(view().lost[0], base_kept=0.5))))
    assert "was in messages 7 and 51 of" in shown
    assert "was in messages 1, 2, 3 and 2 more of" in shown
    assert "; the base kept it in 50 % of its runs." in shown


def test_the_page_on_the_comment_explains_the_marks_that_it_has() -> None:
    page = (small.REPOSITORY / "docs" / "reading-the-comment.md").read_text(encoding="utf-8")
    for kind in Kind:
        words = kind.value.replace("_", " ")
        explained = re.search(rf"{mark(kind.value)} (?:[a-z]+ or )?{words}", page)
        assert explained or (mark(kind.value) == mark("") and f"{mark('')} anything else" in page), kind


def test_the_table_has_only_what_changed_and_fits_a_phone() -> None:
    shown = text()
    assert "| Evidence | Base | This PR |" in shown
    for quiet in ("**same**", "**advisory**", "Unchanged"):
        assert quiet not in shown
    judged = text(shown=make_view(report_world.REPORTS["regressed"]()))
    for table in re.findall(r"(?m)^\|(?:---:?\|)+$", re.sub(r"(?s)<summary>Targets.*?</details>", "", shown + judged)):
        assert table.count("|") <= 4


def test_numbers_that_were_only_counted_are_not_repeated_in_a_second_table() -> None:
    assert "| Measure |" not in text()
    assert "| Measure |" in text(shown=make_view(report_world.REPORTS["regressed"]()))


def test_all_six_dimensions_are_in_the_table_with_the_verdict_beside_the_name() -> None:
    judged = make_view(report_world.REPORTS["regressed"]())
    table = text(shown=judged).partition("| Measure |")[2]
    rows = re.findall(r"^\| ([a-z ]+): \*\*([a-z ]+)\*\* \|", table, re.MULTILINE)
    names = [name for name, _ in rows]
    assert names[:3] == ["overall", "facts that probes ask for", "other facts"]
    assert set(names[3:]) == {name.replace("_", " ") for name in DIMENSIONS}
    assert {verdict for _, verdict in rows} == {"worse"}


def test_the_least_important_goes_first_and_is_named() -> None:
    whole = text()
    order = [
        "Probes that score lowest",
        "changed files taken",
        "Targets, tokens",
        "Lost: ",
        "| Evidence |",
    ]
    size, gone = len(whole.encode()), []
    for budget in range(size, 300, -40):
        shown = text(budget)
        missing = [name for name in order if name not in shown]
        assert missing == order[: len(missing)]
        assert len(shown.encode()) <= budget or len(missing) == len(order)
        if missing:
            assert "_Left out to fit: misses" in shown
            assert f"[full report]({TICKET.run_url})" in shown
        gone = missing
    assert gone == order
    assert "Every summary is a stub" in shown


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_list_of_files_makes_it_outgrow_the_budget(name: str) -> None:
    ticket = TICKET.model_copy(update={"ignored_files": [(name * 200)[:200]] * 40})
    assert len(text(20_000, ticket).encode()) <= 20_000


def test_reproducing_is_one_line_that_names_both_commits_and_what_was_asked_for() -> None:
    ticket = TICKET.model_copy(update={"runs": 5, "looks": 2, "fixtures": ["small-plan", "b"]})
    (command,) = re.findall(r"```sh\n(.*?)```", text(ticket=ticket), re.DOTALL)[0].splitlines()
    assert command == (
        f"compression-eval reproduce https://github.com/acme/agent/pull/7 --sha {ticket.sha} --base {ticket.base_sha} "
        "--runs 5 --look 2 --fixtures small-plan,b"
    )


def test_the_way_to_run_again_is_exact() -> None:
    form = "https://github.com/acme/agent/actions/workflows/compression-eval.yml"
    by_hand = f"[start the workflow by hand]({form}) with `pr=7` and `sha={TICKET.sha}`"
    assert f"add the label `eval-compression`, or {by_hand}" in text()


def test_the_comment_leads_to_the_page_that_explains_it() -> None:
    shown = text()
    open_part = re.sub(r"<details>.*?</details>", "", shown, flags=re.DOTALL)
    assert f"[How to read this comment]({READING})" in open_part
    assert (Path(__file__).parents[2] / "docs" / READING.rpartition("/docs/")[2]).is_file()
