"""The fingerprint comes from configuration and content: nothing is started to know it."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.domain.fingerprint import differences
from eval_core.measuring.controls import control_path
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models


def test_parameters_are_part_of_it_and_no_client_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise AssertionError("a client was built to know a fingerprint")

    monkeypatch.setattr(ModelClient, "__init__", refuse)
    plain, other = Models("a", "b", "c"), Models("a", "b", "c", params={"b": {"top_p": 0.5}})
    found = differences(make_fingerprint(small.cases(), plain), make_fingerprint(small.cases(), other))
    assert [item.field for item in found] == ["answer_model.params"]


def test_an_offline_judge_leaves_the_model_that_compresses() -> None:
    judged = make_fingerprint(small.cases(), Models("a", "b", "c"))
    offline = make_fingerprint(small.cases(), Models("a", "b", "c", offline_judge=True))
    assert judged.models == {"compressor": "a", "answer": "b", "judge": "c"}
    assert offline.models == {"compressor": "a", "answer": "offline:extractive", "judge": "offline:facts"}
    assert offline.compressor_model == judged.compressor_model


def test_controls_that_were_paid_for_by_an_earlier_version_are_found(tmp_path: Path) -> None:
    case = small.cases()[0]
    path = control_path(tmp_path, case, make_fingerprint([case], Models("a", "b", "c", temperature=0.5)))
    assert path.name == "4c89432e826de89bbffa98e2dd811e8a25760ef3eda751973a8018abb6dca7bb.json"
