"""The offline answerer quotes: the same way each time, briefly, and nothing that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import fmean

import small
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.messages import Message, full_text, render
from eval_core.domain.call import Draw
from eval_core.domain.case import Case
from eval_core.domain.grade import Answer, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.judging.extractive import NOT_IN_CONTEXT, ExtractiveAnswerer

TEXTS = st.lists(st.text(max_size=200), max_size=12)


def answer(state: list[Message], probe: Probe, answerer: ExtractiveAnswerer | None = None) -> str:
    found = asyncio.run((answerer or ExtractiveAnswerer()).answer(state, probe, fixture="f", draw=Draw()))
    assert isinstance(found, Answer)
    return found.text


def ask(state: list[Message], question: str) -> str:
    return answer(state, small.probe(["x"], question))


def test_the_line_that_answers_is_quoted() -> None:
    state = [small.user("The staging port is 8443.\nLunch is at noon."), small.say("Colours were discussed at length.")]
    assert "8443" in ask(state, "Which port does staging use?")


def test_nothing_to_quote_is_said_plainly() -> None:
    assert ask([], "Which port does staging use?") == NOT_IN_CONTEXT
    assert ask([small.say("Colours were discussed.")], "Which port does staging use?") == NOT_IN_CONTEXT


def test_the_system_prompt_is_not_quoted() -> None:
    assert ask([{"role": "system", "content": "The staging port is 8443."}], "Which staging port?") == NOT_IN_CONTEXT


@given(TEXTS, st.text(min_size=3, max_size=80))
def test_an_answer_is_bounded_made_of_the_state_and_always_the_same(texts: list[str], question: str) -> None:
    state = [small.user(text) for text in texts]
    said = ask(state, question)
    assert said == ask([dict(message) for message in state], question)
    assert len(said) <= 6_000
    if said != NOT_IN_CONTEXT:
        source = "\n".join(full_text(message) for message in state)
        assert all(line in source for line in said.split("\n"))


def test_an_answer_from_a_very_long_state_is_short() -> None:
    state = [small.say("\n".join(f"port {n} of staging host {n} is open" for n in range(3_000)))]
    assert 0 < len(ask(state, "Which port does staging use?")) <= 6_000


def test_one_answerer_serves_states_in_any_order() -> None:
    one, two = [small.say("The staging port is 8443.")], [small.say("The staging port is 9000.")]
    answerer, probe = ExtractiveAnswerer(), small.probe(["x"], "Which staging port?")
    said = [answer(state, probe, answerer) for state in (one, two, one)]
    assert ["8443" in said[0], "9000" in said[1], "8443" in said[2]] == [True] * 3
    assert "9000" not in said[2]


def test_the_full_transcript_of_each_shipped_session_holds_every_required_fact(shipped: list[Case]) -> None:
    for case in shipped:
        text = Haystack.of(render(case.fixture.messages))
        missing = [f.label for probe in case.bank.probes for f in probe.required if not holds(f, text)]
        assert not missing, (case.fixture.name, missing)


def test_answers_from_the_full_transcript_find_four_fifths_of_the_facts_and_from_nothing_almost_none(
    shipped: list[Case],
) -> None:
    full: list[bool] = []
    empty: list[bool] = []
    answerer, nobody = ExtractiveAnswerer(), ExtractiveAnswerer()
    for case in shipped:
        for probe in case.bank.probes:
            said = Haystack.of(answer(case.fixture.messages, probe, answerer))
            unsaid = Haystack.of(answer([], probe, nobody))
            full += [holds(fact, said) for fact in probe.required]
            empty += [holds(fact, unsaid) for fact in probe.required]
    assert fmean(full) >= 0.80
    assert fmean(empty) < 0.05


def _overall(measurement: Measurement) -> dict[str, float]:
    return {
        name: fmean(record.result.overall for record in run.probes.values() if isinstance(record.result, Grade))
        for name, (run, *_) in measurement.fixtures.items()
    }


def test_the_reference_beats_the_window_and_the_window_beats_the_known_bad_control(
    shipped_runs: Callable[[str], Measurement],
) -> None:
    anchored, window, opaque = (_overall(shipped_runs(name)) for name in ("anchored", "sliding-window", "opaque"))
    assert fmean(anchored.values()) > fmean(window.values()) > fmean(opaque.values())
    assert all(anchored[name] > opaque[name] for name in anchored), (anchored, opaque)
