"""The page holds everything, believes nothing and stays small."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import report_world

sys.path.insert(0, str(Path(__file__).parent))

from page_world import BIDI, HOSTILE, case, recorded, report, run_record, unscored

from eval_core.comparing.compare import ReportData
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.history_line import HistoryLine
from eval_core.domain.record import RunRecord
from eval_core.reporting.html import render_html
from eval_core.reporting.html.first_screen import tiles
from eval_core.reporting.html.page import MOST, MOST_ROWS
from eval_core.reporting.html.payload import unpack
from eval_core.reporting.html.plots import plot_tables
from eval_core.strands.findings import Kind

WORDS = ("gateway", "certificate", "staging", "rollback", "the", "of", "ledger", "queue", "because", "renewed")
VOID = {"meta", "input", "br", "hr", "img", "link", "wbr"}
OPTIONAL = {"li", "tr", "td", "th", "dt", "dd", "p", "option"}


class Page(HTMLParser):
    """Reads a page as a browser's tokenizer would: elements, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.words: list[str] = []
        self.data: dict[str, Any] = {}
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script" and self.elements[-1][1].get("id") == "data":
            self.data = unpack(data)
        elif inside in self.raw:
            self.raw[inside].append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    @property
    def drawn(self) -> str:
        """Every text that the page's script may draw."""

        def texts(value: Any) -> Iterator[str]:
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                for inner in value.values() if isinstance(value, dict) else value:
                    yield from texts(inner)

        return "\n".join(texts(self.data))

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def having(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_html(report()))


def test_the_page_is_well_formed_and_its_ids_are_unique(page: Page) -> None:
    assert page.faults == []
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def _places(page: Page) -> set[str]:
    """Return every address that the page or its script knows."""
    known = set(page.ids)
    for fixture in page.data["fixtures"]:
        known |= {fixture["summary_anchor"], *(probe["anchor"] for probe in fixture["probes"])}
        known |= {f"{fixture['message_anchor']}-{number}" for number in range(len(fixture["messages"]))}
    return known


def test_every_link_leads_to_a_place_in_the_page(page: Page) -> None:
    targets = page.having("href")
    assert targets
    assert all(address.startswith("#") for address in targets)
    assert {address[1:] for address in targets} <= _places(page)


def test_the_page_names_the_verdict_its_next_step_and_both_sides(page: Page) -> None:
    data = report()
    assert data.verdict is not None
    assert data.verdict.kind is Kind.REGRESSED
    assert "Regressed" in page.text
    assert data.verdict.next_step in page.text
    assert "builtin:anchored" in page.text
    assert "baselines/main.json" in page.text
    assert "baselines/main.json" in page.text


def test_a_probe_holds_question_facts_answers_grades_and_reasons(page: Page) -> None:
    for words in (
        "Which port and which error did the gateway show?",
        "in all 6 runs",
        "used by every answer",
        "left verbatim",
        "judged",
        "controls: full transcript 5.00, no context 0.00",
        "run 1",
    ):
        assert words in page.drawn, words


def test_the_first_screen_names_each_lost_fact_its_message_its_sentence_and_its_runs() -> None:
    html = render_html(recorded())
    page = Page(html)
    assert "8443" in page.text
    assert "gone in 6 of 6 runs, before in 0 of 6" in page.text
    assert "The gateway on port 8443 answers with E_GATE." in page.text
    assert html.index('data-fact="8443"') < html.index('id="summaries"')
    assert {"msg-deploy-1", "summary-deploy", "probe-deploy-recall-port"} <= {link[1:] for link in page.having("href")}


def test_a_broken_structure_check_is_named_once_with_its_fixtures_and_its_meaning() -> None:
    text = Page(render_html(recorded())).text
    assert "one summary broke in deploy, migrate: passes in 0 of 6 runs, before in 6 of 6" in text
    assert text.count("one summary broke in") == 1


def test_quality_and_size_are_one_picture_with_a_sentence_that_says_the_same() -> None:
    page = Page(render_html(recorded()))
    sentence = (
        "the base keeps 90 % of all facts in 300 tokens; the candidate keeps 70 % of all facts in 300 tokens. "
        "At the candidate's size, the newest messages alone would keep 40 %, every message cut evenly 50 %."
    )
    assert sentence in page.having("aria-label")
    assert f"T{sentence[1:]}" in page.text.replace("\N{NO-BREAK SPACE}", " ")


def test_each_number_of_the_first_screen_has_the_bases_beside_it() -> None:
    data = recorded(offline=True)
    assert data.base is not None
    found = {tile.name: tile for tile in tiles(data.candidate, data.base, plot_tables(data.candidate, None, None), "")}
    assert (found["tokens kept"].value, found["tokens kept"].base, found["tokens kept"].change) == ("300", "300", "")
    page = Page(render_html(data))
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    for words in ("facts kept", "70 % −20 pp", "base 90 %"):
        assert words in text


def test_offline_no_answer_is_blamed_for_a_fact_that_the_state_holds() -> None:
    """The offline scores count what the state holds; what is quoted for a question decides nothing."""

    def unused(of: Case, run: int, graded: bool) -> RunRecord:
        record = run_record(of, run, good=True, graded=graded)
        probes = {
            name: probe.model_copy(update={"facts": [fact.model_copy(update={"used": False}) for fact in probe.facts]})
            for name, probe in record.probes.items()
        }
        return record.model_copy(update={"probes": probes})

    words = {}
    for offline in (True, False):
        page = Page(render_html(report(candidate=unused, offline=offline)))
        facts = [fact for item in page.data["fixtures"] for probe in item["probes"] for fact in probe["facts"]]
        words[offline] = {fact["candidate"]["word"] for fact in facts}
    assert "not used" not in words[True]
    assert "not used" in words[False]


def test_without_recorded_sizes_there_is_no_picture_and_no_made_up_one(page: Page) -> None:
    assert not [attributes for tag, attributes in page.elements if attributes.get("class") == "frontier"]


def test_every_run_of_both_sides_is_at_hand_with_its_text_and_its_facts(page: Page) -> None:
    fixture = next(item for item in page.data["fixtures"] if item["name"] == "deploy")
    assert [run["number"] for run in fixture["base_runs"]] == list(range(6))
    labels = [fact["label"] for fact in fixture["facts"]]
    kept = {label: fixture["candidate_runs"][0]["kept"][at] for at, label in enumerate(labels)}
    assert kept == {"8443": "0", "E_GATE": "1", "staging or staging cluster": "-"}
    assert "on port 8443" in fixture["base_runs"][0]["summary"]


def test_a_text_that_many_runs_share_is_stored_once() -> None:
    long = "the same long answer again and again " * 500
    one, many = (
        render_html(report(text=long, base_text=long, cases=[case(f"f{n}") for n in range(number)]))
        for number in (1, 8)
    )
    assert len(many) - len(one) < 60_000


def test_messages_are_told_apart_as_verbatim_summarised_or_dropped(page: Page) -> None:
    fixture = next(item for item in page.data["fixtures"] if item["name"] == "deploy")
    assert {message["candidate"] for message in fixture["messages"]} == {"verbatim", "summarised", "dropped"}


def test_without_a_base_the_page_says_why_and_shows_no_change() -> None:
    page = Page(render_html(replace(report(), base=None, verdict=None, note="no baseline fits")))
    assert "Measured, not compared" in page.text
    assert "no baseline fits" in page.text
    assert "worse than the base" not in page.text
    assert page.faults == []


def test_without_fixtures_at_hand_facts_and_answers_are_still_there() -> None:
    page = Page(render_html(replace(report(), cases={})))
    assert "E_GATE" in page.drawn
    assert all(fixture["messages"] == [] for fixture in page.data["fixtures"])


def test_a_page_is_the_same_whether_or_not_the_records_hold_messages() -> None:
    data = report()
    stripped = {
        name: [run.model_copy(update={"messages": [{"role": "user", "content": "x"}]}) for run in runs]
        for name, runs in data.candidate.fixtures.items()
    }
    filled = replace(data, candidate=data.candidate.model_copy(update={"fixtures": stripped}))
    assert render_html(filled) == render_html(data)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_a_run_that_failed_says_what_happened(outcome: Outcome) -> None:
    def make(of: Case, run: int, graded: bool) -> RunRecord:
        return run_record(of, run, good=False, graded=graded, outcome=outcome, text="the worker died: <b>signal 9</b>")

    data = report(candidate=make)
    assert data.verdict is not None
    assert data.verdict.kind is (Kind.INCOMPLETE if outcome.retryable else Kind.BROKEN)
    page = Page(render_html(data))
    assert outcome.value.replace("_", " ") in page.text
    assert "the worker died: <b>signal 9</b>" in page.text
    assert page.faults == []


def test_an_unscored_probe_shows_its_reason() -> None:
    def make(of: Case, run: int, graded: bool) -> RunRecord:
        record = run_record(of, run, good=True, graded=graded)
        return unscored(record, "the judge returned no JSON") if run == 1 else record

    page = Page(render_html(report(candidate=make)))
    rows = [row for fixture in page.data["fixtures"] for probe in fixture["probes"] for row in probe["unscored"]]
    assert ["candidate", "run 2", "the judge returned no JSON"] in rows


def test_a_comparison_that_cannot_be_made_shows_the_field_and_no_change() -> None:
    data = report_world.not_comparable()
    assert data.verdict is not None
    assert data.verdict.kind is Kind.NOT_COMPARABLE
    page = Page(render_html(data))
    assert "rubric differs (r1 → r2)" in page.text
    assert "▼" not in page.text


def test_an_offline_run_says_so_before_anything_else() -> None:
    page = Page(render_html(report(offline=True)))
    assert page.text.index("no model was called, so scores are advisory") < page.text.index("Lost: ")
    assert "no model was called, so scores are advisory" not in Page(render_html(report())).text


def test_only_the_pages_own_scripts_and_styles_are_allowed() -> None:
    html = render_html(report(text=HOSTILE, base_text=HOSTILE))
    page = Page(html)
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        bodies = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        hashes = {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies}
        directive = re.search(rf"{kind}-src ([^;]+)", policy)
        assert directive is not None
        assert set(re.findall(r"'sha256-([^']+)'", directive.group(1))) == hashes


def hostile_reports() -> dict[str, ReportData]:
    def failing(of: Case, run: int, graded: bool) -> RunRecord:
        return run_record(of, run, good=False, graded=graded, outcome=Outcome.TARGET_ERROR, text=HOSTILE)

    def silent(of: Case, run: int, graded: bool) -> RunRecord:
        return unscored(run_record(of, run, good=True, graded=graded), HOSTILE)

    whole = report(text=HOSTILE, base_text=HOSTILE[::-1], cases=[case("deploy", HOSTILE.replace("\ud800", ""))])
    named = whole.candidate.model_copy(
        update={"label": HOSTILE, "stopped": HOSTILE, "fixtures": {HOSTILE: whole.candidate.fixtures["deploy"]}}
    )
    return {
        "texts": whole,
        "failures": report(candidate=failing),
        "reasons": report(candidate=silent),
        "names": ReportData(
            named, history=[HistoryLine(date=HOSTILE, baseline=HOSTILE, values={"overall": 1.0})], note=HOSTILE
        ),
    }


@pytest.mark.parametrize("name", ["texts", "failures", "reasons", "names"])
def test_hostile_text_stays_text(name: str) -> None:
    html = render_html(hostile_reports()[name])
    plain, page = Page(render_html(report())), Page(html)
    html.encode("utf-8")  # a lone surrogate would fail here
    assert page.faults == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements} | {
        "p",
        "ul",
        "li",
        "div",
        "bdi",
        "h2",
    }
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on") or key == "style"]
    assert not [address for address in page.having("href") if not address.startswith("#")]
    assert not page.having("src")
    for hidden in (BIDI, "\u2066", "\0", "\u2028"):
        assert hidden not in html
        assert hidden not in page.drawn
    shown = page.text + page.drawn
    assert "⟨U+202E⟩gpj.exe⟨U+2066⟩ ⟨U+0000⟩ ⟨U+2028⟩ ⟨U+D800⟩" in shown
    assert "{{ 7*7 }}" in shown


def test_the_page_of_fifty_fixtures_stays_under_four_megabytes() -> None:
    words = random.Random(0)

    def prose(count: int) -> str:
        return " ".join(f"{words.choice(WORDS)}-{words.randrange(10_000)}" for _ in range(count))

    cases = [case(f"session-{number}", extra=prose(6_000)) for number in range(50)]

    def make(of: Case, run: int, graded: bool) -> RunRecord:
        return run_record(of, run, good=False, graded=graded, text=f"run {run} {prose(40)}")

    html = render_html(report(cases=cases, candidate=make))
    assert len(html.encode()) < 4_000_000


def test_of_a_large_suite_the_worst_fixtures_are_shown_and_the_others_are_a_click_away() -> None:
    cases = [case(f"session-{number:03}") for number in range(MOST_ROWS + 20)]
    html = render_html(report(cases=cases))
    _, shown, folded = re.split(r'<h2 id="fixtures-title">|20 more fixtures, which lost no more than these', html)
    assert shown.count('<details class="inner fixture"') == MOST_ROWS
    assert folded.split("</section>")[0].count('<details class="inner fixture"') == 20
    assert re.search(r"<summary>Fingerprint: [^<]* \(\d+ fields, 0 of them different\)</summary>", html)


def test_many_quarantined_probes_do_not_bury_the_page() -> None:
    data = report(cases=[case(f"session-{number:03}") for number in range(10)])
    bad = {
        name: controls.model_copy(
            update={
                "probes": {
                    probe: control.model_copy(update={"quarantined": "too easy"})
                    for probe, control in controls.probes.items()
                }
            }
        )
        for name, controls in data.candidate.controls.items()
    }
    data = replace(data, candidate=data.candidate.model_copy(update={"controls": bad}))
    html = render_html(data)
    assert html.count("<li>Quarantined: ") == MOST
    assert "4 more quarantined probes" in html


def test_the_trend_ends_with_the_run_of_this_report() -> None:
    html = render_html(report())
    assert re.search(
        r'aria-label="overall: 2026-01-01: 3\.10; 2026-02-01: 3\.20; 2026-03-01: 3\.30; this run: \d', html
    )
