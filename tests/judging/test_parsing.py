from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.grade import DIMENSIONS
from eval_core.judging.grading import GRADE_SCHEMA, Scores, Unusable, example_replies, parse_grade
from tests.foreign import damaged_json, json_values

SCORES = {"accuracy": 4, "context_awareness": 3.5, "artifact_trail": 0, "completeness": 5, "continuity": 2,
          "instruction_following": 1}  # fmt: skip
GOOD = {"reason": 'Says {most} of it, "quoted".', **SCORES}
TEXT = json.dumps(GOOD)
SHORT = {"accuracy": 4, "context": 3.5, "artifact": 0, "complete": 5, "continuity": 2, "instruction": 1}


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        json.dumps(GOOD, indent=4),
        f"```json\n{TEXT}\n```",
        f"Here is my grade:\n\n{TEXT}\n\nI hope this helps.",
        f"<think>maybe {{'accuracy': 1}}? no.</think>{TEXT}",
        TEXT[:-1] + ",}",
        json.dumps({**GOOD, **{name: str(score) for name, score in SCORES.items()}}),
        json.dumps({**GOOD, **{name: f"{score}/5" for name, score in SCORES.items()}}),
        json.dumps({**GOOD, **{name: {"score": score, "why": "x"} for name, score in SCORES.items()}}),
        json.dumps({"reason": GOOD["reason"], "scores": SCORES}),
        json.dumps({"reason": GOOD["reason"], **{name.replace("_", " ").title(): s for name, s in SCORES.items()}}),
        json.dumps({"reason": GOOD["reason"], **SHORT}, separators=(",", ":")),
        json.dumps({"reason": GOOD["reason"], "scores": SHORT}),
        TEXT + TEXT,
        'I quote: "it is' + "\n" + TEXT,
    ],
)
def test_a_grade_is_read_in_whatever_dress_it_comes(reply: str) -> None:
    result = parse_grade(reply)
    assert isinstance(result, Scores), result
    assert result.values == {name: float(score) for name, score in SCORES.items()}
    assert result.reason == GOOD["reason"]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "no JSON"),
        ("five out of five", "no JSON"),
        ("[1, 2, 3]", "no JSON"),
        (TEXT[: len(TEXT) // 2], "cut off"),
        (TEXT[:-2], "cut off"),
        ("{'accuracy': 5}", "broken JSON"),
        (json.dumps({"accuracy": 5}), "lacks context, artifact, complete"),
        (json.dumps({**GOOD, "accuracy": 6}), "accuracy is 6, outside of 0 to 5"),
        (json.dumps({**GOOD, "continuity": -0.5}), "continuity is -0.5"),
        (json.dumps({**GOOD, "accuracy": None}), "accuracy is null, not a number"),
        (json.dumps({**GOOD, "accuracy": True}), "accuracy is true, not a number"),
        (json.dumps({**GOOD, "accuracy": "high"}), 'accuracy is "high", not a number'),
        (TEXT.replace("3.5", "NaN"), "NaN is not a number"),
        (TEXT.replace("3.5", "Infinity"), "Infinity is not a number"),
        (TEXT.replace("3.5", "9" * 400), "a number has 400 digits"),
        (TEXT.replace("3.5", "9" * 5000), "a number has 5,000 digits"),
        (TEXT.replace("3.5", '"' + "9" * 400 + '"'), "outside of 0 to 5"),
        (TEXT.replace("3.5", '{"score": ' + "9" * 400 + "}"), "a number has 400 digits"),
        (TEXT + json.dumps({**GOOD, "accuracy": 1}), "several different grades"),
        ('{"a":' * 5000, "cut off"),
    ],
)
def test_a_reply_without_a_whole_grade_is_unusable_and_says_why(reply: str, problem: str) -> None:
    result = parse_grade(reply)
    assert isinstance(result, Unusable)
    assert problem in result.problem


@given(st.text() | damaged_json() | json_values().map(lambda value: json.dumps({**GOOD, "accuracy": value})))
def test_no_reply_breaks_the_reader(reply: str) -> None:
    assert isinstance(parse_grade(reply), Scores | Unusable)


@given(
    st.fixed_dictionaries({name: st.floats(0, 5) for name in DIMENSIONS}),
    st.text(alphabet=st.characters(blacklist_categories=("Cs",)), max_size=200),
    st.sampled_from(["{}", "```json\n{}\n```", "Well. {} Done.", "\n{},"]),
)
def test_every_honest_grade_survives_the_way_through_prose(values: dict[str, float], reason: str, dress: str) -> None:
    result = parse_grade(dress.replace("{}", json.dumps({"reason": reason, **values})))
    if "<think" not in reason:
        assert result == Scores(values, reason)


def test_the_schema_asks_for_every_dimension() -> None:
    asked = {"reason", *SHORT}
    assert set(GRADE_SCHEMA["required"]) == asked == set(GRADE_SCHEMA["properties"])
    assert [json.loads(reply).keys() for reply in example_replies()] == [dict.fromkeys(["reason", *SHORT]).keys()] * 4
    assert all(isinstance(parse_grade(reply), Scores) for reply in example_replies())
