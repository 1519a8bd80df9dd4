from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.errors import UserError
from eval_core.base.sealing import SealingKey
from eval_core.base.strict_json import BadJson
from eval_core.domain.call import Completion, Draw, Failed, ModelCall, ReplyCall, Usage
from eval_core.models.budget import Budget, Reservation
from eval_core.models.journal import Journal, call_key, parse_line
from tests.foreign import damaged_json

from .provider import call

USAGE = Usage(100, 20, 10, 0.5)


def key(text: str) -> str:
    return call_key(call(text))


def write(path: Path, *texts: str) -> None:
    async def scene() -> None:
        with Journal(path) as journal:
            for text in texts:
                journal.sent(key(text), 1.0, 500)
                await journal.done(key(text), call(text), f"answer to {text}", "served", USAGE, 1.25)

    asyncio.run(scene())


def test_a_finished_call_is_found_again_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, "one", "two")
    with Journal(path) as journal:
        assert journal.lookup(key("one")) == Completion("answer to one", USAGE, "served", 1.25, cached=True)
        assert journal.lookup(key("three")) is None
        assert (journal.finished, journal.spent.usd, journal.spent.tokens) == (2, 1.0, 220)
        assert journal.spent.unsure_usd == 0


@pytest.mark.parametrize(
    "change",
    [
        {"draw": Draw(1)},
        {"model": "other"},
        {"max_tokens": 51},
        {"temperature": 0.5},
        {"response_schema": {"type": "object"}},
        {"params": {"seed": 1}},
        {"messages": ({"role": "user", "content": "else"},)},
    ],
)
def test_every_part_of_a_call_is_part_of_its_key(change: dict[str, object]) -> None:
    assert call_key(replace(call("one"), **change)) != key("one")  # type: ignore[arg-type]


def test_what_does_not_change_the_answer_does_not_change_the_key() -> None:
    assert call_key(replace(call("one"), shared=1)) == key("one")


@given(cut=st.integers(min_value=1, max_value=400))
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "journal.jsonl"
    write(path, "one", "two")
    whole = path.read_bytes()
    done = [line for line in whole.splitlines(keepends=True) if b'"done"' in line]
    cut = min(cut, len(done[1]))
    path.write_bytes(whole[:-cut])
    with Journal(path) as journal:
        assert key("one") in journal
        assert key("two") not in journal
        assert journal.spent.unsure_usd == 1.0  # it was sent and may have been paid
    assert path.read_bytes().endswith(b"\n")
    write(path, "two")
    with Journal(path) as journal:
        assert key("two") in journal
        assert journal.broken_lines == 0


def test_a_broken_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, "one", "two")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"\0" * (len(lines[1]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    with Journal(path) as journal:
        assert key("one") not in journal
        assert journal.lookup(key("two")) is not None
        assert journal.broken_lines == 1


def test_unusable_replies_are_counted_but_not_replayed(tmp_path: Path) -> None:
    async def scene() -> None:
        with Journal(tmp_path / "journal.jsonl") as journal:
            journal.sent(key("one"), 1.0, 500)
            await journal.failed(key("one"), call("one"), Failed("empty", True, "it is empty", USAGE), "yes")
            journal.sent(key("two"), 1.0, 500)
            await journal.failed(key("two"), call("two"), Failed("timeout", True, "too slow"), "unsure")
            journal.sent(key("three"), 1.0, 500)
            await journal.failed(key("three"), call("three"), Failed("server", True, "HTTP 500"), "no")

    asyncio.run(scene())
    with Journal(tmp_path / "journal.jsonl") as journal:
        assert journal.finished == 0
        assert journal.wasted(key("one")) == USAGE
        assert (journal.spent.usd, journal.spent.unsure_usd) == (0.5, 1.0)
    assert "it is empty" in (tmp_path / "journal.jsonl").read_text()


def test_the_second_process_on_one_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my-label" / "journal.jsonl"
    script = (
        "import sys; from pathlib import Path; from eval_core.models.journal import Journal\n"
        "j = Journal(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(UserError, match=r"my-label.*another run"):
            Journal(path)
        holder.stdin.close()
    Journal(path).close()


def test_many_writers_in_one_process_leave_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def scene() -> None:
        with Journal(path) as journal:
            await asyncio.gather(
                *(journal.done(key(str(n)), call(str(n)), "é" * n, "m", USAGE, 0.1) for n in range(60))
            )
            for n in (0, 31, 59):
                found = journal.lookup(key(str(n)))
                assert found is not None
                assert found.text == "é" * n

    asyncio.run(scene())
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 60


def test_a_cancelled_writer_still_leaves_a_whole_line(tmp_path: Path) -> None:
    async def scene() -> None:
        with Journal(tmp_path / "journal.jsonl") as journal:
            task = asyncio.create_task(journal.done(key("x"), call("x"), "text", "m", USAGE, 0.1))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await journal.drain()
            assert key("x") in journal

    asyncio.run(scene())


def test_a_full_disk_is_one_message_and_no_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def scene() -> None:
        with Journal(path) as journal:
            await journal.done(key("x"), call("x"), "text", "m", USAGE, 0.1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 40, before[1]))
            try:
                with pytest.raises(UserError, match=r"cannot be written.*kept"):
                    await journal.done(key("y"), call("y"), "text", "m", USAGE, 0.1)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert key("y") not in journal
            await journal.done(key("z"), call("z"), "text", "m", USAGE, 0.1)

    asyncio.run(scene())
    with Journal(path) as journal:
        assert (key("x") in journal, key("y") in journal, key("z") in journal) == (True, False, True)
        assert journal.broken_lines == 0


def test_an_answer_is_in_the_file_before_the_disk_is_synced(tmp_path: Path) -> None:
    async def scene() -> None:
        path = tmp_path / "journal.jsonl"
        with Journal(path) as journal:
            writing = asyncio.create_task(journal.done(key("one"), call("one"), "the answer", "served", USAGE, 1.0))
            await asyncio.sleep(0)  # the task has run up to its first wait, which is for the disk
            assert not writing.done()
            assert b"the answer" in path.read_bytes()
            await writing

    asyncio.run(scene())


def test_half_a_character_in_an_answer_does_not_lose_it(tmp_path: Path) -> None:
    async def scene() -> None:
        with Journal(tmp_path / "journal.jsonl") as journal:
            await journal.done(key("one"), call("one"), "cut \ud83d here", "served", USAGE, 1.0)
        with Journal(tmp_path / "journal.jsonl") as journal:
            found = journal.lookup(key("one"))
            assert found is not None
            assert found.text == "cut \ud83d here"

    asyncio.run(scene())


def test_an_answer_is_not_handed_on_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    synced: list[int] = []
    really = os.fsync

    def fsync(file: int) -> None:
        really(file)
        synced.append(path.read_bytes().count(b'"at":"done"') if os.fstat(file).st_ino == path.stat().st_ino else 0)

    monkeypatch.setattr(os, "fsync", fsync)

    async def scene() -> None:
        with Journal(path) as journal:
            for number, text in enumerate(("one", "two")):
                await journal.done(key(text), call(text), "text", "served", USAGE, 1.0)
                assert synced[-1] == number + 1

    asyncio.run(scene())


def test_a_call_that_never_came_back_counts_beside_the_one_that_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.sent(key("one"), 1.0, 500)  # the process dies here
    write(path, "one")
    with Journal(path) as journal:
        assert (journal.spent.usd, journal.spent.unsure_usd, journal.spent.unsure_tokens) == (0.5, 1.0, 500)
    with Journal(path) as journal:
        journal.sent(key("two"), 2.0, 700)
        journal.sent(key("two"), 2.0, 700)
        assert (journal.spent.unsure_usd, journal.spent.unsure_tokens) == (5.0, 1_900)


DONE = {"at": "done", "key": "ab" * 32, "usage": {"input_tokens": 1}, "text": "t", "served": "s", "seconds": 1.0}


@pytest.mark.parametrize(
    "line",
    [
        [],
        "text",
        None,
        {},
        {**DONE, "at": "gone"},
        {**DONE, "key": 7},
        {**DONE, "key": "xyz"},
        {**DONE, "usage": None},
        {**DONE, "usage": {"input_tokens": "many"}},
        {**DONE, "usage": {"cost_usd": -1e9}},
        {**DONE, "usage": {"cost_usd": float("nan")}},
        {**DONE, "usage": {"tokens": 1}},
        {**DONE, "usage": {"output_tokens": True}},
        {name: value for name, value in DONE.items() if name != "text"},
        {**DONE, "text": ["t"]},
        {**DONE, "served": None},
        {**DONE, "seconds": "soon"},
        {**DONE, "calls": True},
        {**DONE, "calls": {"id": "1", "name": "read", "arguments": "{}"}},
        {**DONE, "calls": ["read"]},
        {**DONE, "calls": [{"id": "1", "name": "read"}]},
        {**DONE, "calls": [{"id": "1", "name": "read", "arguments": {"path": "a.py"}}]},
        {"at": "sent", "key": "ab" * 32, "usd": float("inf"), "tokens": 1},
        {"at": "sent", "key": "ab" * 32, "usd": 1.0},
        {"at": "sent", "key": "ab" * 32, "usd": 1.0, "tokens": -5},
        {"at": "sent", "key": "ab" * 32, "usd": 1.0, "tokens": 1e999},
    ],
)
def test_a_line_that_says_nonsense_is_neither_replayed_nor_counted(line: object, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.sent("ab" * 32, 1.0, 500)
    with path.open("a") as stream:
        stream.write(json.dumps(line) + "\n")
    write(path, "one")
    with Journal(path) as journal:
        assert journal.broken_lines == 1
        assert journal.lookup("ab" * 32) is None
        assert (journal.spent.usd, journal.spent.unsure_usd) == (0.5, 1.0)


def test_a_line_of_brackets_without_end_is_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("[" * 200_000 + "\n")
    with Journal(path) as journal:
        assert journal.broken_lines == 1


DAMAGE = {
    "a cost of 400 digits": {"at": "sent", "key": "ab", "usd": 10**400, "tokens": 1},
    "tokens as text": {"at": "sent", "key": "ab", "usd": 1, "tokens": "many"},
    "a key that is no digest": {"at": "sent", "key": 7, "usd": 1, "tokens": 1},
    "a key of another alphabet": {"at": "sent", "key": "zz", "usd": 1, "tokens": 1},
    "usage as a list": {"at": "paid", "key": "ab", "usage": [1]},
    "usage with text": {"at": "paid", "key": "ab", "usage": {"input_tokens": "x"}},
    "usage with a stranger": {"at": "paid", "key": "ab", "usage": {"tokens": 1}},
    "negative usage": {"at": "paid", "key": "ab", "usage": {"input_tokens": -5}},
    "an answer without its text": {"at": "done", "key": "ab", "usage": {}, "served": "m", "seconds": 1},
    "an answer with a number as text": {"at": "done", "key": "ab", "usage": {}, "served": "m", "seconds": 1, "text": 4},
    "an unknown kind": {"at": "won", "key": "ab"},
    "a list": [1, 2],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_of_any_shape_is_counted_and_costs_only_itself(tmp_path: Path, name: str) -> None:
    path = tmp_path / "j.jsonl"
    write(path, "one")
    with path.open("ab") as stream:
        stream.write(json.dumps(DAMAGE[name]).encode() + b"\n" + b"[" * 5000 + b"\n<<<<<<< HEAD\n\xff\xfe\n")
    with Journal(path) as journal:
        assert journal.broken_lines == 4
        assert journal.finished == 1
        found = journal.lookup(key("one"))
        assert found is not None
        assert journal.spent.calls == 1


@given(st.binary(max_size=200) | damaged_json().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_the_line_parser_raise_anything_but_its_own_error(raw: bytes) -> None:
    with suppress(BadJson):
        parse_line(raw)


def test_a_run_whose_calls_wait_in_a_batch_is_not_continued_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    path, one, two = tmp_path / "journal.jsonl", key("one"), key("two")
    older: list[dict[str, object]] = [
        {"at": "batch", "key": "ab" * 8, "model": "m", "since": 7},
        {"at": "queued", "key": one, "batch": "ab" * 8, "usd": 1.0, "tokens": 500},
        {"at": "queued", "key": two, "batch": "ab" * 8, "usd": 2.0, "tokens": 700},
        {"at": "submitted", "key": "ab" * 8, "id": "batch_1"},
        {"at": "collected", "key": one, "status": 200, "body": "{}"},
        {"at": "free", "key": two, "kind": "queued", "reason": "expired"},
        {"at": "ended", "key": "ab" * 8},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in older))
    before = path.read_bytes()
    for _ in range(2):  # the lock is given up
        with pytest.raises(UserError, match="1 call of this run went to a provider's batch API, which was removed"):
            Journal(path)
    assert path.read_bytes() == before
    path.write_text(path.read_text() + json.dumps({**DONE, "key": one}) + "\n")
    with Journal(path) as journal:
        assert (one in journal, two in journal, journal.spent.unsure_usd) == (True, False, 0.0)


# Digests that older versions wrote, when a draw was one number with its parts added to the run.
OLDER = {
    Draw(3): "40de6562b897b1a9d4e7c97cdc1b0585d1f9a1e35621770865427532af8734a1",
    Draw(3, attempt=1): "71a907d8c923661a84fa1e40ff5f58185bc50f48063004aff38fde8dc35e1d35",
    Draw(3, repeat=1): "6a2c6243ec926eab6b95bdbb763dc5446ce4b574e0a578eee3eaf8cd5a50f824",
    Draw(3, repeat=2): "782bcf0a696caa17e07628f67f2b989380f575d00d4ca3a52108aeb5d7867951",
    Draw(3, "base"): "8893c68ae0a5260633eda713f784ce8ff8d90568aa0be1d128bf14174b68d06c",
    Draw(3, "base", attempt=1): "8daf027bc162d1dd792dff1a9e81707c5fe5cbe51188047f9aedaf66d0f0a935",
    Draw(control=True): "1a3f028edcd208144abb95e29c8520ea533801f7e9e60e259647c22954196b7e",
}


@pytest.mark.parametrize("draw", OLDER)
def test_what_older_versions_paid_for_is_found_again(draw: Draw) -> None:
    assert call_key(ModelCall("judge", "m", ({"role": "user", "content": "q"},), 10, draw)) == OLDER[draw]


def test_no_two_draws_share_a_key() -> None:
    draws = [
        Draw(run, arm, attempt, repeat)  # type: ignore[arg-type]
        for run in (0, 1, 999, 1_000, 10_000, 100_000)
        for arm in ("candidate", "base")
        for attempt in (0, 1, 10)
        for repeat in (0, 1, 2, 10)
    ]
    keys = {call_key(replace(call("q"), draw=draw)) for draw in [*draws, Draw(control=True)]}
    assert len(keys) == len(draws) + 1


def test_the_journal_says_arm_attempt_and_repeat_in_fields_of_their_own(tmp_path: Path) -> None:
    drawn = replace(call("q"), draw=Draw(3, "base", attempt=1, repeat=2))

    async def scene() -> None:
        with Journal(tmp_path / "j") as journal:
            await journal.done(call_key(drawn), drawn, "text", "served", USAGE, 1.0)
            await journal.failed("ab" * 32, call("q"), Failed("server", True, "HTTP 500"), "no")

    asyncio.run(scene())
    done, failed = [json.loads(line) for line in (tmp_path / "j").read_text(encoding="utf-8").splitlines()][-2:]
    assert {name: done[name] for name in ("run", "arm", "attempt", "repeat")} == {
        "run": 3, "arm": "base", "attempt": 1, "repeat": 2
    }  # fmt: skip
    assert failed["run"] == 0
    assert not {"arm", "attempt", "repeat", "control"} & failed.keys()


def test_a_call_that_failed_and_may_have_been_charged_counts_at_its_worst(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def scene() -> None:
        with Journal(path) as journal:
            for number, charge in enumerate(("unsure", "no", "yes")):
                journal.sent(key(charge), 2.0**number, 10**number)
                await journal.failed(key(charge), call(charge), Failed("timeout", True, "late", usage=USAGE), charge)
                assert key(charge) not in journal

    asyncio.run(scene())
    for _ in range(2):
        with Journal(path) as journal:
            spent = journal.spent
            assert (spent.unsure_usd, spent.unsure_tokens) == (1.0, 1)
            assert (spent.usd, spent.tokens, spent.calls) == (0.5, USAGE.tokens, 1)
            assert (journal.wasted(key("yes")), journal.wasted(key("no"))) == (USAGE, Usage())


def test_a_call_without_a_known_price_costs_tokens_and_no_dollars(tmp_path: Path) -> None:
    async def scene() -> None:
        with Journal(tmp_path / "j.jsonl") as journal:
            await journal.done(key("one"), call("one"), "text", "served", replace(USAGE, cost_usd=None), 1.0)
            assert (journal.spent.usd, journal.spent.tokens) == (0.0, USAGE.tokens)

    asyncio.run(scene())
    budget = Budget(1.0)
    budget.charge(Reservation(0.0, 0), replace(USAGE, cost_usd=None))
    assert (budget.spent_usd, budget.spent_tokens) == (0.0, USAGE.tokens)


def test_a_private_reply_is_read_only_with_the_key_that_sealed_it(tmp_path: Path) -> None:
    path, private = tmp_path / "journal.jsonl", call("one", private=True)
    (mine, _), (other, _) = SealingKey.new(), SealingKey.new()
    one = call_key(private)

    async def write_sealed() -> None:
        with Journal(path, mine) as journal:
            await journal.done(one, private, "the answer", "served", USAGE, 1.0)
        with Journal(path) as journal, pytest.raises(ValueError, match="no key"):
            await journal.done(key("three"), private, "text", "served", USAGE, 1.0)

    asyncio.run(write_sealed())
    assert b"the answer" not in path.read_bytes()
    for sealing, answer in ((mine, "the answer"), (other, None), (None, None)):
        with Journal(path, sealing) as journal:
            found = journal.lookup(one)
            assert (found and found.text) == answer


def test_a_private_call_is_filed_under_a_key_that_nobody_else_can_make(tmp_path: Path) -> None:
    path, private = tmp_path / "journal.jsonl", call("one", private=True)
    (_, old), (_, new) = SealingKey.new(), SealingKey.new()
    mine, both, newer = (SealingKey.parse(text, "KEY") for text in (old, f"{new},{old}", new))
    calls = (ReplyCall("c1", "search", '{"query": "one"}'),)

    async def scene() -> None:
        with Journal(path, mine) as journal:
            assert journal.key(call("one")) == key("one")
            assert journal.key(private) != call_key(private)
            await journal.done(journal.key(private), private, "text", "served", USAGE, 1.0, calls)
        # A key that is added finds what the one before it filed, and what is filed from then on outlives that one.
        with Journal(path, both) as journal:
            found = journal.lookup(journal.key(private))
            assert found is not None
            assert (found.text, found.calls) == ("text", calls)
            later = call("two", private=True)
            await journal.done(journal.key(later), later, "text", "served", USAGE, 1.0)
        with Journal(path, newer) as journal:
            assert journal.lookup(journal.key(later)) is not None
            assert journal.lookup(journal.key(private)) is None
            # As older versions filed it: it is paid for, and must be found.
            older = call("three", private=True)
            await journal.done(call_key(older), older, "text", "served", USAGE, 1.0)
            assert journal.lookup(journal.key(older)) is not None
        with Journal(path) as journal, pytest.raises(ValueError, match="no key"):
            journal.key(private)

    asyncio.run(scene())
    assert b"search" not in path.read_bytes()


def test_a_reply_that_asks_for_tools_is_replayed_with_them(tmp_path: Path) -> None:
    asked = (ReplyCall("c1", "read", '{"path": "a"}'),)

    async def scene() -> None:
        with Journal(tmp_path / "j.jsonl") as journal:
            await journal.done(key("one"), call("one"), "", "served", USAGE, 1.23456, asked)
            found = journal.lookup(key("one"))
            assert found is not None
            assert (found.calls, found.seconds) == (asked, 1.235)

    asyncio.run(scene())


def test_the_largest_amounts_and_none_at_all_are_read() -> None:
    for amount in (0, 10**12):
        parse_line(json.dumps({"at": "sent", "key": "ab", "usd": amount, "tokens": amount}).encode())
    for line in (
        {"at": "sent", "key": "ab", "usd": 1, "tokens": 10**12 + 1},
        {"at": "sent", "key": "ab", "usd": 1, "tokens": 1.5},
        {"at": "sent", "key": "ab", "usd": True, "tokens": 1},
        {"at": "sent", "key": "ab" * 65, "usd": 1, "tokens": 1},
        {**DONE, "sealed": 1},
        {**DONE, "usage": {"input_tokens": None}},
    ):
        with pytest.raises(BadJson):
            parse_line(json.dumps(line).encode())
    parse_line(json.dumps({**DONE, "usage": {"cost_usd": None}, "sealed": True}).encode())


def test_a_journal_that_cannot_be_opened_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match=r"taken/j\.jsonl: cannot be opened: "):
        Journal(tmp_path / "taken" / "j.jsonl")


def test_a_disk_that_fails_to_sync_fails_every_call_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(file: int) -> None:
        raise OSError(5, "Input/output error")

    async def scene() -> None:
        with Journal(tmp_path / "j.jsonl") as journal:
            waiting = (journal.done(key(text), call(text), "t", "s", USAGE, 1.0) for text in ("one", "two", "three"))
            found = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 120)
            assert ["cannot be written: Input/output error" in str(item) for item in found] == [True] * 3
            await journal.drain()

    monkeypatch.setattr(os, "fsync", fsync)
    asyncio.run(scene())


def test_a_journal_that_is_refused_leaves_no_open_file(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path):
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(UserError, match="another run is writing"):
            Journal(path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
