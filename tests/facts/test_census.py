"""The census finds what a session is about, by form alone and the same way every time."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.messages import Message
from eval_core.facts.census import CENSUS_KINDS, KIND_LIMITS, MESSAGE_LIMIT, CensusFact, census


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def call(number: int, **arguments: Any) -> Message:
    function = {"name": "run_tool", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]}


def output(number: int, value: object) -> Message:
    content = value if isinstance(value, str) else json.dumps(value)
    return {"role": "tool", "tool_call_id": f"c{number}", "content": content}


def values(messages: list[Message], kind: str) -> list[str]:
    return [fact.value for fact in census(messages) if fact.kind == kind]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("wrote gateway/adapters/feishu.py:41 today", "path", "gateway/adapters/feishu.py"),
        ("open /home/user/proj/src/app.ts", "path", "src/app.ts"),
        ("see C:\\work\\proj\\src\\app.ts", "path", "src/app.ts"),
        ("GET /v4/threads now", "path", "/v4/threads"),
        ("(https://docs.acme.example/errors).", "url", "https://docs.acme.example/errors"),
        ("it runs on db-7.acme.io now", "host", "db-7.acme.io"),
        ("merged 4d68d0b9", "hash", "4d68d0b9"),
        ("now on v2.14.0", "version", "v2.14.0"),
        ("see PR 412", "pr", "#412"),
        ("https://forge.example/a/b/pull/412", "pr", "#412"),
        ("schedule 15 8 * * 1-5 set", "cron", "15 8 * * 1-5"),
        ("KeyError: 'union_id'", "error", "KeyError: 'union_id'"),
        ("HTTP/1.1 503 busy", "error", "HTTP 503"),
        ("connect ECONNREFUSED", "error", "ECONNREFUSED"),
        ("exit_code: 137", "error", "exit code 137"),
        ("=== 47 passed in 3.1s ===", "test_count", "47 passed"),
        ("On branch fix/617-union-id", "branch", "fix/617-union-id"),
        ("never touch schema/ledger.sql please", "decision", "schema/ledger.sql"),
        ("the room becomes #pricing-watch", "decision", "#pricing-watch"),
    ],
)
def test_each_kind_of_fact_is_read_off_the_text(text: str, kind: str, value: str) -> None:
    assert value in values([user(text)], kind)


@pytest.mark.parametrize(
    "text",
    [
        'error: null\n"error": null',
        "and/or, read/write, n/a",
        "self.db.execute(x).fetchone().strip()",
        "the branch is still there",
        "sed s/8413/TMP/ file",
        "/dev/null and /usr/bin/env",
        "index 1a2b3c4..5d6e7f8 100644",
        "a\\n\\nb\\xef\\xbb",
        "0 failed",
    ],
)
def test_what_only_looks_like_a_fact_is_left_out(text: str) -> None:
    assert census([{"role": "tool", "tool_call_id": "x", "content": text}]) == ()


def test_arguments_are_unfolded_and_their_field_names_are_not_facts() -> None:
    messages = [call(1, target_file="src/deep/thing.py", body="def load_all(): pass"), output(1, {"exit_code": 0})]
    assert values(messages, "path") == ["src/deep/thing.py"]
    assert values(messages, "identifier") == ["load_all"]


def test_a_fact_knows_every_message_it_stands_in() -> None:
    messages = [user("look at src/a/run.py"), call(1, path="/home/u/p/src/a/run.py"), output(1, "ok"), user("thanks")]
    (fact,) = [fact for fact in census(messages) if fact.kind == "path"]
    assert (fact.value, fact.messages) == ("a/run.py", (0, 1))


def test_the_short_and_the_full_hash_are_one_fact() -> None:
    full = "4d68d0b9" + "0f" * 16
    assert [fact.messages for fact in census([user("4d68d0b9"), user(full)]) if fact.kind == "hash"] == [(0, 1)]


def test_what_the_user_says_and_what_is_passed_to_tools_outranks_what_is_only_read() -> None:
    messages = [
        user("fix lib/asked.py"),
        call(1, path="lib/passed.py"),
        output(1, "lib/listed.py"),
    ]
    assert values(messages, "path") == ["lib/asked.py", "lib/passed.py", "lib/listed.py"]


def test_a_name_seen_once_in_some_output_is_not_what_the_session_is_about() -> None:
    assert values([output(1, "def helper_one(): pass")], "identifier") == []
    assert values([output(1, "def helper_one(): pass"), output(2, "helper_one()")], "identifier") == ["helper_one"]


def test_an_overtaken_test_count_gives_way_to_the_last_one() -> None:
    messages = [output(1, "44 passed"), output(2, "47 passed, 2 failed")]
    assert sorted(values(messages, "test_count")) == ["2 failed", "47 passed"]


def test_a_value_that_stands_nearly_everywhere_is_no_fact() -> None:
    messages = [user(f"src/app/main.py again {index}") for index in range(40)]
    assert values(messages, "path") == []


def test_limits_hold_per_kind_and_per_message() -> None:
    one = [user("\n".join(f"src/one/file{index}.py" for index in range(400)))]
    assert len(census(one)) == MESSAGE_LIMIT
    many = [user(" ".join(f"src/d{index}/file{inner}.py" for inner in range(9))) for index in range(40)]
    counted = Counter(fact.kind for fact in census(many))
    assert counted["path"] == KIND_LIMITS["path"]


def test_every_kind_has_a_limit() -> None:
    assert set(KIND_LIMITS) == set(CENSUS_KINDS)


def test_the_census_is_the_same_on_every_run() -> None:
    messages = [user("src/a/x.py and src/b/y.py, #412, 1.2.3"), output(1, "4d68d0b 47 passed"), user("never use X_Y_Z")]
    first = census(messages)
    assert census(json.loads(json.dumps(messages))) == first
    assert list(first) == sorted(first, key=lambda fact: (-fact.salience, fact.messages[0], fact.kind, fact.value))


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), st.text(max_size=200)), max_size=6))
def test_any_text_can_be_counted(pairs: list[tuple[str, str]]) -> None:
    facts = census([{"role": role, "content": text} for role, text in pairs])
    assert all(isinstance(fact, CensusFact) and fact.messages for fact in facts)


def test_hostile_runs_of_characters_are_read_in_linear_time() -> None:
    # A quadratic expression would not return from these within the life of a test run.
    runs = [
        "a" * 200_000,
        "a/" * 100_000,
        "1 " * 100_000,
        "x_" * 100_000,
        "a." * 100_000,
        "#" * 100_000,
        "* " * 100_000,
    ]
    runs += ["git push " + "-u " * 50_000, "exit code " * 30_000, "http://" * 30_000, "E " * 50_000]
    census([{"role": role, "content": run} for run in runs for role in ("user", "tool")])
