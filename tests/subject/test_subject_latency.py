"""What counts as latency: neither imports nor our own queue nor other runs on the same processors."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.call import Completion, Usage
from eval_core.domain.compression import Outcome
from eval_core.domain.target import target_from
from eval_core.sandbox.classify import CallRecord
from eval_core.sandbox.latency import felt, model_queue, processor_waits
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

SECONDS = st.floats(0, 100)


def test_imports_in_the_middle_of_a_step_are_told_apart(run, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "heavy.py").write_text("import time\ntime.sleep(0.8)\n")
    (tmp_path / "lazy.py").write_text(
        "def compress(messages):\n    import heavy\n    return [{'role': 'user', 'content': 'short'}]\n"
    )
    done = run({"compressor": "lazy:compress"}, tree=tmp_path, base=tmp_path)
    assert done.outcome is Outcome.OK
    assert done.steps[0].import_seconds >= 0.8
    assert done.cold_seconds >= done.start_seconds + 0.8


def test_what_another_thread_imports_meanwhile_is_not_taken_off(run, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "heavy.py").write_text("import time\ntime.sleep(0.8)\n")
    (tmp_path / "beside.py").write_text(
        "import threading, time\n"
        "def compress(messages):\n"
        "    other = threading.Thread(target=lambda: __import__('heavy'))\n"
        "    other.start()\n"
        "    other.join()\n"
        "    return [{'role': 'user', 'content': 'short'}]\n"
    )
    done = run({"compressor": "beside:compress"}, tree=tmp_path, base=tmp_path)
    assert done.outcome is Outcome.OK
    assert done.seconds >= 0.7


def test_the_time_until_the_compressor_is_built_is_no_latency(run, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "slow.py").write_text(
        "import time\ntime.sleep(0.8)\ndef compress(messages):\n    return [{'role': 'user', 'content': 'short'}]\n"
    )
    done = run({"compressor": "slow:compress"}, tree=tmp_path, base=tmp_path)
    assert done.start_seconds >= 0.8


class Queue:
    """A model client that waits for a turn before the model answers."""

    async def complete(self, call):
        await asyncio.sleep(0.8)
        return Completion("the summary", Usage(100, 0, 10, 0.001), "provider/served-1", 0.05)


def test_the_wait_for_a_turn_at_the_model_is_no_latency(run):
    examples = Path(__file__).parents[2] / "docs" / "targets" / "examples"
    spec = {"command": ["python3", "compress.py"], "llm": "required"}
    done = run(spec, Queue(), tree=examples, base=examples)
    assert done.outcome is Outcome.OK
    assert done.queued_seconds >= 0.7


def _call(asked: float, queued: float) -> CallRecord:
    return CallRecord(started=0, forwarded_at=asked, queued_seconds=queued)


def test_calls_side_by_side_wait_at_the_same_time():
    assert model_queue([_call(0, 2), _call(1, 2)]) == 3
    assert model_queue([_call(0, 2), _call(5, 1)]) == 3
    assert model_queue([_call(0, -2)]) == -2  # replayed from the journal: the model's own time is added
    assert model_queue([]) == 0


@given(wall=SECONDS, imports=st.floats(-10, 200), queue=SECONDS, waited=SECONDS)
def test_the_parts_never_exceed_the_whole(wall, imports, queue, waited):
    taken = felt(wall, imports=imports, queue=queue, before={(1, 1): 0.0}, after={(1, 1): waited})
    assert 0 <= taken.seconds <= wall
    assert 0 <= taken.import_seconds <= wall
    # What is left out is told: work that a compressor hides in an import is in the record all the same.
    assert taken.seconds + taken.import_seconds + taken.queued_seconds >= wall - 1e-9


def test_the_thread_that_waited_longest_for_a_processor_counts():
    before, after = {(1, 1): 1.0}, {(1, 1): 3.0, (1, 2): 0.5}
    assert felt(10, imports=0, queue=0, before=before, after=after).seconds == 8


def test_the_kernel_s_own_count_is_read_for_a_living_process():
    waits = processor_waits([os.getpid(), 2**22 + 1])
    assert all(pid == os.getpid() for pid, _ in waits)
    assert all(seconds >= 0 for seconds in waits.values())


BUSY = """
import time
def compress(messages):
    began = time.process_time()
    while time.process_time() - began < 0.5:
        sum(range(10_000))
    return [{"role": "user", "content": "short"}]
"""


def test_side_by_side_with_others_a_step_feels_no_longer_than_its_own_work(choice, session, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "busy.py").write_text(BUSY)
    spec = target_from({"compressor": "busy:compress", "llm": "none", "timeout_s": 60}, "spec")
    spec = resolve_paths(spec, tmp_path, tmp_path, tmp_path, "spec")
    subject = ProcessSubject(spec, tmp_path, choice, "served", None, lambda messages: len(str(messages)))

    async def together():
        return await asyncio.gather(*(subject.compress(session, run=run, seed=0) for run in range(5 * os.cpu_count())))

    found = asyncio.run(together())
    assert {done.outcome for done in found} == {Outcome.OK}
    # Five for each processor: what they waited for one another is told apart, and no step counts it.
    assert sum(done.queued_seconds for done in found) > sum(done.seconds for done in found)
