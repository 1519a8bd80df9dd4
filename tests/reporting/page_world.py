"""A small world to make pages of: two fixtures, four probes, two sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.case import Case
from eval_core.domain.compression import ModelUse, Outcome
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.fixture import Fixture
from eval_core.domain.grade import DIMENSIONS, Answer, Grade, Unscored
from eval_core.domain.history_line import HistoryLine
from eval_core.domain.measurement import Controls, Measurement, ProbeControl, Provenance
from eval_core.domain.probe import ProbeBank
from eval_core.domain.record import (
    CensusRecord,
    FactRecord,
    FrontierPoint,
    ProbeRecord,
    RunRecord,
    SizeRecord,
)

BIDI = "\u202e"
HOSTILE = (
    "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>"
    f"<svg onload=window.owned=3> [a](javascript:window.owned=4) {{{{ 7*7 }}}} {BIDI}gpj.exe\u2066 \0 \u2028 \ud800 "
    "</style><style>body{display:none}</style> ]]> <!-- \" ' `"
)
"""Everything that a summary might try on its reader."""


def case(name: str = "deploy", extra: str = "") -> Case:
    """Return a session of six messages and a bank of two probes."""
    fixture = Fixture.model_validate(
        {
            "name": name,
            "description": "A deployment goes wrong and is mended.",
            "messages": [
                {"role": "system", "content": "You deploy things."},
                {"role": "user", "content": "The gateway on port 8443 answers with E_GATE. Find out why."},
                {"role": "assistant", "content": "The certificate in /etc/gate/cert.pem ran out on Monday." + extra},
                {"role": "user", "content": "Renew it, but leave the staging cluster alone."},
                {"role": "assistant", "content": "Renewed with certtool 2.4.1; staging was not touched."},
                {"role": "user", "content": "Now write it down."},
            ],
        }
    )
    bank = ProbeBank.model_validate(
        {
            "fixture": name,
            "probes": [
                {
                    "id": "recall-port",
                    "type": "recall",
                    "question": "Which port and which error did the gateway show?",
                    "expected_facts": [{"fact": "8443", "evidence": [1]}, {"fact": "E_GATE", "evidence": [1]}],
                },
                {
                    "id": "decision-staging",
                    "type": "decision",
                    "question": "What was to be left alone?",
                    "expected_facts": [{"any": ["staging", "staging cluster"], "evidence": [3]}, {"not": "production"}],
                },
            ],
        }
    )
    return Case(fixture, bank)


def grade(value: float, reason: str = "as expected") -> Grade:
    """Return the same score in every dimension."""
    return Grade(scores=dict.fromkeys(DIMENSIONS, value), reason=reason)


def run_record(
    of: Case, run: int, *, good: bool, graded: bool = True, text: str = "", outcome: Outcome = Outcome.OK
) -> RunRecord:
    """Return a fixture-run that kept everything, or one that lost the port."""
    name = of.fixture.name
    if outcome is not Outcome.OK:
        return RunRecord(fixture=name, run=run, graded=graded, outcome=outcome, detail=text or "it raised ValueError")
    said = f"Port {'8443' if good else 'unknown'} and E_GATE. {text}"
    # Scores move a little from run to run, as a judge's do.
    score = (4.5 if good else 1.5) + 0.1 * (run % 3)
    port = FactRecord(label="8443", kept=good, at_risk=True, used=good if graded else None, evidence=[1])
    error = FactRecord(label="E_GATE", kept=True, at_risk=True, used=True if graded else None, evidence=[1])
    staging = FactRecord(
        label="staging or staging cluster", kept=True, at_risk=False, used=False if graded else None, evidence=[3]
    )
    return RunRecord(
        fixture=name,
        run=run,
        graded=graded,
        outcome=outcome,
        tokens_before=1000,
        tokens_after=300,
        seconds=0.5 + run,
        summary=f"## State\nThe gateway answered {'on port 8443 ' if good else ''}with E_GATE.\nCert renewed.\n{text}",
        verbatim=[0, 3, 4, 5],
        probes={
            "recall-port": ProbeRecord(
                facts=[port, error],
                answer=Answer(text=said) if graded else None,
                result=grade(score, f"judged {text}") if graded else None,
            ),
            "decision-staging": ProbeRecord(
                facts=[staging],
                answer=Answer(text=f"Leave staging alone. {text}") if graded else None,
                result=grade(4.0) if graded else None,
            ),
        },
        census=CensusRecord(
            total={"path": 4, "number": 6},
            at_risk={"path": 2},
            lost={"path": 0 if good else 2},
            worst=["path: /etc/gate"],
        ),
        structure={"tool_pairs_whole": True, "one_summary": good},
        refetch_tokens=0 if good else 120,
        use={"compressor": ModelUse(calls=1, input_tokens=10, output_tokens=5, cost_usd=0.01)},
    )


def measurement(
    cases: Sequence[Case],
    make: Callable[[Case, int, bool], RunRecord],
    *,
    label: str,
    offline: bool = False,
    rubric: str = "r1",
    runs: int = 3,
    compress_runs: int = 6,
) -> Measurement:
    """Return a measurement of all cases."""
    names = [of.fixture.name for of in cases]
    return Measurement(
        label=label,
        offline=offline,
        fingerprint=Fingerprint(
            schema_version=1,
            fixtures={of.fixture.name: of.fixture.digest for of in cases},
            probes={of.fixture.name: of.bank.digest for of in cases},
            rubric=rubric,
            answer_template="t1",
            compressor_model={"model": "m"},
            answer_model={"model": "m"},
            judge_model={"model": "j", "temperature": "0"},
            tokenizer="o200k_base",
        ),
        provenance=Provenance(
            target="builtin:anchored", source_sha="0123abcd" * 5, date="2026-03-01T10:00:00Z", version="0.1.0"
        ),
        models={"compressor": "m", "answer": "m", "judge": "j"},
        planned_runs=runs,
        planned_compress_runs=compress_runs,
        fixtures={of.fixture.name: [make(of, run, run < runs) for run in range(compress_runs)] for of in cases},
        probe_types={of.fixture.name: {probe.id: probe.type for probe in of.bank.probes} for of in cases},
        controls={
            name: Controls(
                probes={"recall-port": ProbeControl(ceiling=5.0, floor=0.0, ceiling_facts=1.0, floor_facts=0.0)}
            )
            for name in names
        },
        use={"judge": ModelUse(calls=12, input_tokens=900, cached_tokens=100, output_tokens=80, cost_usd=None)},
    )


def report(
    *,
    text: str = "",
    base_text: str = "",
    offline: bool = False,
    rubric: str = "r1",
    cases: Sequence[Case] | None = None,
    candidate: Callable[[Case, int, bool], RunRecord] | None = None,
) -> ReportData:
    """Return a report in which the candidate lost the port; what the texts say beside it is up to the caller."""
    shown = list(cases or (case("deploy"), case("migrate")))

    def worse(of: Case, run: int, graded: bool) -> RunRecord:
        return run_record(of, run, good=False, graded=graded, text=text)

    def better(of: Case, run: int, graded: bool) -> RunRecord:
        return run_record(of, run, good=True, graded=graded, text=base_text)

    base = measurement(shown, better, label="main", offline=offline)
    ours = measurement(shown, candidate or worse, label="change", offline=offline, rubric=rubric)
    verdict, _ = compare_measurements(base, ours)
    history = [
        HistoryLine(
            date=f"2026-0{month}-01T00:00:00Z",
            baseline="main",
            values={"overall": 3.0 + month / 10, "accuracy": 3.5, "facts_kept": 0.8},
        )
        for month in (1, 2, 3)
    ]
    return ReportData(ours, base, verdict, "baselines/main.json", {of.fixture.name: of for of in shown}, history)


def recorded(**changes: Any) -> ReportData:
    """Return the same report with every strand of evidence recorded and decided on, as runs of today are."""
    data = report(**changes)

    def whole(side: Measurement, kept: int) -> Measurement:
        size = SizeRecord(facts=10, kept=kept, recency=4.0, proportional=5.0)
        curve = [
            FrontierPoint(name=name, tokens=tokens, kept=share)
            for name, shares in (("recency", (0.1, 0.4, 0.8)), ("proportional", (0.2, 0.5, 0.9)))
            for tokens, share in zip((100, 300, 600), shares, strict=True)
        ]
        fixtures = {
            name: [run.model_copy(update={"size": size}) for run in runs] for name, runs in side.fixtures.items()
        }
        return side.model_copy(update={"fixtures": fixtures, "frontier": dict.fromkeys(fixtures, curve)})

    assert data.base is not None
    base, ours = whole(data.base, 9), whole(data.candidate, 7)
    verdict, part = compare_measurements(base, ours)
    return replace(data, candidate=ours, base=part, verdict=verdict)


def unscored(record: RunRecord, reason: str) -> RunRecord:
    """Return the run with its first probe unscored."""
    first = record.probes["recall-port"].model_copy(update={"result": Unscored(reason=reason)})
    return record.model_copy(update={"probes": {**record.probes, "recall-port": first}})
