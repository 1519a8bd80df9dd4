"""The fingerprint of a planned run is that of the run, and needs no client."""

from __future__ import annotations

import pytest
import small

from eval_core.domain.grade import Answerer, Judge
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.judging.grading import ModelJudge
from eval_core.measuring.wiring import Roles, compressor_identity, make_fingerprint, planned_fingerprint
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models
from eval_core.sandbox.targets import BuiltinSubject


@pytest.mark.parametrize("offline_judge", [False, True])
def test_a_plan_with_parameters_has_the_fingerprint_of_the_run(
    offline_judge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models("a", "b", "c", temperature=0.5, offline_judge=offline_judge, params={"b": {"top_p": 0.5}})
    client = ModelClient(models)
    answerer: Answerer = ExtractiveAnswerer() if offline_judge else ModelAnswerer(client)
    judge: Judge = FactJudge() if offline_judge else ModelJudge(client)
    roles = Roles(BuiltinSubject(), answerer, judge, offline=False, compressor=compressor_identity(models))
    run = make_fingerprint(small.cases(), roles, None)

    def refuse(*given: object, **more: object) -> None:
        raise AssertionError("a client was built to know a fingerprint")

    monkeypatch.setattr(ModelClient, "__init__", refuse)
    assert planned_fingerprint(small.cases(), models, None) == run


def test_parameters_are_part_of_the_plan() -> None:
    plain, other = Models("a", "b", "c"), Models("a", "b", "c", params={"b": {"top_p": 0.5}})
    assert planned_fingerprint(small.cases(), plain, None) != planned_fingerprint(small.cases(), other, None)
