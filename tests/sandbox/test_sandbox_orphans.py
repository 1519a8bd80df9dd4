"""When the evaluator dies, everything that it started dies with it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eval_core.sandbox.isolation import detect
from eval_core.sandbox.memory import process_family

ROOT = Path(__file__).parents[2]

# Compresses with a model that never answers, and says so as soon as it is asked.
EVALUATOR = """
import asyncio, sys
from pathlib import Path
from eval_core.domain.fixture import Fixture
from eval_core.sandbox.isolation import detect
from eval_core.domain.target import target_from
from eval_core.sandbox.subject import ProcessSubject

async def complete(call):
    print("asked", flush=True)
    await asyncio.Event().wait()

tree = Path(sys.argv[1])
spec = target_from({"compressor": "bombs:overspends", "timeout_s": 600}, "x")
subject = ProcessSubject(spec, tree, detect(sys.argv[2]), "m", complete, len)
session = Fixture(name="s", messages=[{"role": "user", "content": "x"}] * 4)
asyncio.run(subject.compress(session, run=0, seed=0))
"""


def test_the_kernel_ends_the_child_with_bubblewrap_even_if_it_holds_every_lock(attack, sandbox):
    if not sandbox.level.startswith("bwrap"):
        pytest.skip("docker ends its containers by itself")
    done = attack("bombs:death_signal")
    assert done.state[0]["content"] == str(int(signal.SIGKILL))


@pytest.mark.parametrize("wanted", ["auto", "none"])
def test_a_killed_evaluator_leaves_no_process_behind(sandbox, tree, wanted):
    evaluator = subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(tree), wanted],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert evaluator.stdout is not None
    assert evaluator.stdout.readline() == b"asked\n"
    family = [pid for pid in process_family(evaluator.pid) if pid != evaluator.pid]
    assert family
    handles = {os.pidfd_open(pid): pid for pid in family}
    evaluator.kill()
    evaluator.wait()
    evaluator.stdout.close()
    left = dict(handles)
    while left:
        ended = select.select(list(left), [], [], 20)[0]
        assert ended, f"still there: {sorted(left.values())} ({detect(wanted).level})"
        for handle in ended:
            del left[handle]
    for handle in handles:
        os.close(handle)
