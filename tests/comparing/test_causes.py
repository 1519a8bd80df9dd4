"""The cause in the headline: at most one clause, and none where the losses have nothing in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_core.domain.compression import Outcome
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Measurement, Provenance
from eval_core.domain.record import CensusEntry, CensusRecord, RunRecord
from eval_core.facts.language import language
from eval_core.strands.causes import cause_of
from eval_core.strands.findings import FactChange

ENGLISH = (
    "The loader was moved to the new queue, and the tests for it are green. The user wants that the old path is kept "
    "for now; it is not to be removed. The next step is to look at the cache."
)
GERMAN = (
    "Der Lader wurde in die neue Warteschlange verschoben, und die Tests dafür sind grün. Das ist von dem Nutzer so "
    "gewünscht; der alte Pfad wird nicht entfernt. Der nächste Schritt ist ein Blick auf den Cache mit dem Fehler."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENGLISH, "English"),
        (GERMAN, "German"),
        (
            "Le chargeur est dans la file et les tests sont verts. Il ne faut pas que le cache soit vide.",
            "French",
        ),
        (
            "El cargador está en la cola. No borrar la ruta para que siga como es; los datos se copian por el bus.",
            "Spanish",
        ),
        ("加载器已经移到新的队列，测试全部通过。用户要求保留旧路径。", "Chinese"),
        ("ローダーは新しいキューに移されました。テストはすべて成功しています。", "Japanese"),
        ("src/a.py src/b.py src/c.py", None),
        ("", None),
    ],
)
def test_the_language_of_a_summary(text: str, expected: str | None) -> None:
    assert language(text) == expected


def _measured(runs: Callable[[int], dict[str, object]], entries: int = 20) -> Measurement:
    records = [
        RunRecord.model_validate(
            {"fixture": "f", "run": at, "graded": False, "outcome": Outcome.OK, "summary": ENGLISH, **runs(at)}
        )
        for at in range(3)
    ]
    empty: dict[str, str] = {}
    return Measurement(
        label="x",
        offline=True,
        fingerprint=Fingerprint(
            schema_version=1, fixtures={"f": "0"}, probes={"f": "0"}, rubric="", answer_template="",
            compressor_model=empty, answer_model=empty, judge_model=empty, tokenizer="",
        ),
        provenance=Provenance(target="t"),
        models={},
        planned_runs=0,
        planned_compress_runs=3,
        fixtures={"f": records},
        census={"f": [CensusEntry(value=f"v{at}", kind="path", messages=[at]) for at in range(entries)]},
    )  # fmt: skip


def _lost(at: int, name: str = "") -> FactChange:
    return FactChange(
        fixture="f", name=name or f"v{at}", kind="path", messages=(at,), base_kept=3, base_runs=3, candidate_kept=0,
        candidate_runs=3, clear=True,
    )  # fmt: skip


def _fates(lost: set[int]) -> dict[str, object]:
    return {"census": CensusRecord(fates="".join("0" if at in lost else "1" for at in range(20)))}


def test_another_language_is_the_cause() -> None:
    base, german = _measured(lambda at: {}), _measured(lambda at: {"summary": GERMAN})
    facts = [_lost(at) for at in (1, 9, 15)]
    assert cause_of(facts, base, german) == "the summary is in German, before in English"
    assert cause_of(facts[:2], base, german) == ""
    assert cause_of(facts, base, base) == ""


def test_everything_lost_is_older_than_a_message() -> None:
    base = _measured(lambda at: _fates(set()))
    old, spread = {0, 1, 2, 3, 5}, {0, 4, 9, 14, 19}
    assert cause_of([_lost(at) for at in old], base, _measured(lambda at: _fates(old))) == (
        "everything lost is older than message 6 of f"
    )
    assert cause_of([_lost(at) for at in spread], base, _measured(lambda at: _fates(spread))) == ""


def test_lost_from_a_later_compression_on() -> None:
    base = _measured(lambda at: {"held": [10, 20, 30, 40]})
    facts = [_lost(at) for at in (1, 9, 15)]
    for held, expected in (([10, 20, 20, 25], "lost from the third compression on"), ([5, 10, 20, 25], "")):
        assert cause_of(facts, base, _measured(lambda at, held=held: {"held": held})) == expected  # type: ignore[misc]


def test_numbers_that_are_rounded() -> None:
    base = _measured(lambda at: {"summary": "It copied 184,220 rows in 12847 ms over 3461 batches."})
    facts = [_lost(3, "184220 rows"), _lost(5, "12847 ms"), _lost(9, "3461")]
    rounded = _measured(lambda at: {"summary": "It copied about 184k rows in 12.8k ms over 3,500 batches."})
    assert cause_of(facts, base, rounded) == "numbers are rounded"
    gone = _measured(lambda at: {"summary": "It copied the rows."})
    assert cause_of(facts, base, gone) == ""
