"""What reaches the compressor's own model, compression by compression, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.case import Case
from eval_core.domain.compression import ModelRequest
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import ProbeBank
from eval_core.facts.census import census
from eval_core.statistics.fates import Fate
from eval_core.storage.results import read_measurement
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict
from eval_core.strands.shown import Requests, _cut

PATHS = [f"src/part{segment}/module_{name}.py" for segment in range(3) for name in "abcdef"]


def _session() -> Fixture:
    messages, ends = [small.SYSTEM], []
    for segment in range(3):
        for number, path in enumerate(PATHS[segment * 6 : segment * 6 + 6]):
            messages.append(small.user(f"Step {segment}.{number}: please look at {path} and tell what it does."))
            messages.append(small.say(f"In step {segment}.{number} I read {path}. " + small.bulk(f"code {number}", 8)))
        ends.append(len(messages))
    return Fixture(name="rounds", description="Three compressions.", messages=messages, segments=ends[:-1])


CASE = Case(
    _session(),
    ProbeBank.model_validate(
        {
            "fixture": "rounds",
            "probes": [{"id": "first", "type": "recall", "question": "Which came first?", "expected_facts": PATHS[:2]}],
        }
    ),
)
COMPRESSOR = """
import json, os, urllib.request

rounds = [0]


def compress(messages, base_url, api_key, model):
    rounds[0] += 1
    way = os.environ["WAY"]
    shown = messages[1:]
    if way == "forgetting" and rounds[0] == 3:
        shown = shown[1:]
    if way == "reversed":
        shown = shown[::-1]
    text = "\\n".join(str(m.get("content") or "") for m in shown)
    body = {"model": model, "messages": [{"role": "user", "content": "Summarise.\\n" + text}]}
    request = urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(),
        {"Authorization": "Bearer " + api_key, "Content-Type": "application/json"})
    json.load(urllib.request.urlopen(request))
    paths = [word.strip(".,") for word in text.split() if word.startswith("src/")]
    summary = "## Files\\n" + "\\n".join("- the session read " + path for path in dict.fromkeys(paths))
    return [messages[0], {"role": "user", "content": summary}]
"""


@pytest.fixture
def measured(tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch) -> dict[str, Measurement]:
    monkeypatch.chdir(small.write_suite(tmp_path, [CASE]))
    small.write(tmp_path / "rounds.py", COMPRESSOR)
    call = "call: {base_url: '${LLM_BASE_URL}', api_key: '${LLM_API_KEY}', model: '${MODEL}'}"
    for way in ("plain", "forgetting", "reversed"):
        small.write(tmp_path / f"{way}.yml", f"compressor: rounds:compress\n{call}\nenv: {{WAY: {way}}}\n")
        done = cli(
            "run", "--runs", "1", "--set", "compress_runs=1", "--quiet", "--target", f"{way}.yml", "--sandbox", "none",
            "--compare-to", "none", "--label", way,
        )  # fmt: skip
        assert done.code == 0, done.err
    return {way: read_measurement(tmp_path / "results" / way) for way in ("plain", "forgetting", "reversed")}


def _shown(verdict: Verdict) -> Finding:
    found = verdict.strand("shown")
    assert found is not None
    return found


def test_a_summary_that_is_not_passed_on_and_turns_in_reverse_are_seen(measured: dict[str, Measurement]) -> None:
    (plain,) = measured["plain"].fixtures["rounds"]
    (forgetting,) = measured["forgetting"].fixtures["rounds"]
    assert plain.shown is not None
    assert forgetting.shown is not None
    assert plain.shown.carried == [1.0, 1.0]
    assert forgetting.shown.carried == [1.0, 0.0]
    assert plain.held[:2] == forgetting.held[:2]
    assert forgetting.held[2] < plain.held[2]

    verdict, _ = compare_measurements(measured["plain"], measured["forgetting"])
    shown = _shown(verdict)
    assert (verdict.kind, shown.state) == (Kind.REGRESSED, StrandState.WORSE)
    assert "from the third compression on, the summary before it is not passed on" in verdict.headline
    assert {fact.shown for fact in verdict.facts if fact.change < 0} == {"not passed on"}

    verdict, _ = compare_measurements(measured["plain"], measured["reversed"])
    shown = _shown(verdict)
    assert (verdict.kind, shown.state) == (Kind.REGRESSED, StrandState.WORSE)
    assert "the turns are shown to the model in another order" in verdict.headline
    assert shown.removed == ()

    verdict, _ = compare_measurements(measured["plain"], measured["plain"])
    assert _shown(verdict).state is StrandState.SAME


def test_a_fact_that_the_state_keeps_beside_the_request_is_not_dropped() -> None:
    session = CASE.fixture
    first = [session.messages[0], small.user(f"the session read {PATHS[0]} and {PATHS[1]}")]
    second = [session.messages[0], small.user(f"the session read {PATHS[0]}")]
    requests = Requests(
        [ModelRequest((small.user(" ".join(PATHS[:6])),), 0), ModelRequest((small.user(" ".join(PATHS[6:12])),), 1)],
        session.messages,
        session.cuts,
        [first, second],
    )
    signs = {fact.value: requests.sign(fact) for fact in census(session.messages) if fact.kind == "path"}
    assert [signs[PATHS[at]] for at in (0, 1, 2, 6, 12)] == ["1", "p", "1", "1", "0"]


@pytest.mark.parametrize(
    ("before", "now", "gone", "uncovered"),
    [
        ("1111pppppp", "11111ppppp", 0, 0),
        ("11111ppppp", "1ppppppppp", 0, 0),
        ("1111111111", "1ppppppppp", 1, 0),
        ("0000000000", "1111111111", 0, 1),
        ("1", "0", 1, 0),
    ],
)
def test_a_fact_that_every_second_run_passes_on_is_no_change_of_what_is_shown(
    before: str, now: str, gone: int, uncovered: int
) -> None:
    sides = [{"rounds": {"key": Fate("a/b.py", "path", (3,), shown=list(signs))}} for signs in (before, now)]
    cut, more, total = _cut(*sides)
    assert (len(cut), more, total) == (gone, uncovered, 1)
