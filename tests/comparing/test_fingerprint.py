"""Which fields make two results incomparable, and which baseline is nearest."""

from __future__ import annotations

from typing import Any

from eval_core.domain.fingerprint import Difference, Fingerprint, differences, nearest

SHA = {name: name * 64 for name in "abcdef"}


def fingerprint(**changes: Any) -> Fingerprint:
    values: dict[str, Any] = {
        "schema_version": 1,
        "fixtures": {"debug": SHA["a"], "config": SHA["b"]},
        "probes": {"debug": SHA["c"], "config": SHA["d"]},
        "rubric": SHA["e"],
        "answer_template": SHA["f"],
        "compressor_model": {"model": "m", "temperature": "0"},
        "answer_model": {"model": "m", "temperature": "0"},
        "judge_model": {"model": "j", "temperature": "0"},
        "focus_topic": None,
        "tokenizer": "o200k_base",
    }
    return Fingerprint(**{**values, **changes})


def test_equal_fingerprints_have_no_difference_and_one_digest() -> None:
    assert differences(fingerprint(), fingerprint()) == []
    assert fingerprint().digest == fingerprint().digest


def test_key_order_is_no_difference() -> None:
    other = fingerprint(judge_model={"temperature": "0", "model": "j"})
    assert differences(fingerprint(), other) == []
    assert other.digest == fingerprint().digest


def test_the_file_or_parameter_that_differs_is_named() -> None:
    other = fingerprint(
        fixtures={"debug": SHA["f"], "extra": SHA["b"]},
        judge_model={"model": "j2", "temperature": "0"},
        focus_topic="tests",
    )
    assert differences(fingerprint(), other) == [
        Difference("fixtures/config.json", "b" * 12, "absent"),
        Difference("fixtures/debug.json", "a" * 12, "f" * 12),
        Difference("judge_model.model", "j", "j2"),
        Difference("focus_topic", "absent", "tests"),
        Difference("fixtures/extra.json", "absent", "b" * 12),
    ]
    assert other.digest != fingerprint().digest


def test_a_changed_probe_bank_is_named_by_its_file() -> None:
    other = fingerprint(probes={"debug": SHA["c"], "config": SHA["a"]})
    assert [item.field for item in differences(fingerprint(), other)] == ["probes/config.probes.json"]


def test_digests_that_share_their_beginning_still_differ() -> None:
    one, other = fingerprint(rubric="a" * 64), fingerprint(rubric="a" * 63 + "b")
    assert [item.field for item in differences(one, other)] == ["rubric"]


def test_the_nearest_baseline_is_named_with_what_differs() -> None:
    candidate = fingerprint(tokenizer="cl100k_base")
    far = fingerprint(rubric=SHA["a"], judge_model={"model": "x"})
    found = nearest(candidate, [("far", far), ("near", fingerprint())])
    assert found == ("near", [Difference("tokenizer", "o200k_base", "cl100k_base")])
    assert nearest(candidate, []) is None
