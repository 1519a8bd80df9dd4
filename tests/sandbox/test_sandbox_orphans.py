"""When the evaluator dies, everything that it started dies with it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
spec = target_from({"compressor": sys.argv[3], "timeout_s": 600}, "x")
subject = ProcessSubject(spec, tree, detect(sys.argv[2]), "m", complete, len)
session = Fixture(name="s", messages=[{"role": "user", "content": "x"}] * 4)
asyncio.run(subject.compress(session, run=0, seed=0))
"""


def _leaves_nothing(command: list[str]) -> None:
    """Kill an evaluator in the middle of a model call, and wait for all that it started."""
    path = [entry for entry in [str(ROOT), *sys.path] if entry.startswith(str(ROOT)) or "-packages" in entry]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path)}
    evaluator = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
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
        if not ended:
            for handle in left:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        assert ended, f"still there: {sorted(left.values())}"
        for handle in ended:
            del left[handle]
    for handle in handles:
        os.close(handle)


@pytest.mark.parametrize("wanted", ["auto", "none"])
def test_a_killed_evaluator_leaves_no_process_behind(sandbox, tree, wanted):
    _leaves_nothing([sys.executable, "-c", EVALUATOR, str(tree), wanted, "bombs:overspends"])


def test_the_kernel_ends_a_child_that_took_every_measure_against_it(attack, sandbox):
    if not sandbox.level.startswith("bwrap"):
        pytest.skip("docker ends its containers by itself")
    _leaves_nothing([*attack.evaluator, "-c", EVALUATOR, str(attack.tree), "auto", "bombs:outlives_the_evaluator"])
