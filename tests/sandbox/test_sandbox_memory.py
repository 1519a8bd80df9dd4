"""The memory limit, by each way to keep it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eval_core.domain.compression import Outcome
from eval_core.domain.target import target_from
from eval_core.sandbox.memory import MemoryGroup, find_limiter, group_of, memory_group, process_family, tree_memory
from eval_core.sandbox.subject import ProcessSubject

LIMIT = 512 * 2**20
# Takes what its argument says, tells that it has, and waits.
TAKER = """
import mmap, os, sys
size = 64 * 2**20
if sys.argv[1] == "memfd":
    handle = os.memfd_create("x")
    os.write(handle, os.urandom(size))
elif sys.argv[1] == "mapped":
    held = mmap.mmap(-1, size)
    held.write(os.urandom(size))
elif sys.argv[1] == "child":
    if os.fork():
        os.wait()
    held = bytearray(os.urandom(size))
elif sys.argv[1] == "thread without its leader":
    import ctypes, threading, time
    held = bytearray(os.urandom(size))
    def tell():
        while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        print("taken", flush=True)
        sys.stdin.read()
    threading.Thread(target=tell, daemon=True).start()
    ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
else:
    held = bytearray(os.urandom(size))
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["private", "mapped", "memfd", "child", "thread without its leader"])
def test_the_count_sees_every_kind_of_memory(how):
    with subprocess.Popen([sys.executable, "-c", TAKER, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"taken\n"
        seen = tree_memory(process.pid)
        process.stdin.close()
        process.kill()
    assert 64 * 2**20 <= seen < 200 * 2**20


@pytest.fixture
def counted(sandbox, session, tree, python):
    """Return a function that runs one hostile subject where memory is counted, though this machine could do better."""

    async def complete(call):
        raise AssertionError("no model is asked")

    def run(name, call):
        description = {"compressor": f"bombs:{name}", "llm": "none", "python": str(python), "memory_mb": 512}
        spec = target_from({**description, "call": call}, "x")
        subject = ProcessSubject(spec, tree, replace(sandbox, memory="count"), "m", complete, len)
        return asyncio.run(subject.compress(session, run=0, seed=0))

    return run


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("memory_bomb_of_many", {}),
        ("memory_behind_a_name", {"name": "x kB"}),
        ("memory_behind_a_dead_leader", {}),
    ],
)
def test_the_count_alone_keeps_the_limit_as_well(counted, name, call):
    done = counted(name, call)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


def _ignores_sigterm(pid):
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    (ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_watch_that_fails_ends_what_it_watched(counted, monkeypatch):
    exceeded = MemoryGroup.exceeded

    def fails(self, pid):
        if not any(_ignores_sigterm(each) for each in process_family(pid)):
            return exceeded(self, pid)  # its start may take longer than the first look at its memory
        raise ValueError("no such number")

    monkeypatch.setattr(MemoryGroup, "exceeded", fails)
    done = counted("ignores_term", {})
    assert done.outcome is Outcome.TARGET_ERROR
    assert done.detail == "the compressor's memory could not be watched any more (ValueError: no such number)"


def test_a_control_group_is_there_while_it_is_used_and_gone_afterwards():
    limiter = find_limiter("bwrap-root" if os.geteuid() == 0 else "bwrap-user")
    if not limiter.startswith("cgroup"):
        pytest.skip(f"no control group can be made here, memory is limited by: {limiter}")
    with memory_group(limiter, LIMIT, 10, sudo=False) as group:
        assert all(folder.is_dir() for folder in group.folders)
        told = subprocess.run(
            group.enter(["/bin/cat", "/proc/self/cgroup"]), capture_output=True, text=True, check=True
        )
        assert group.folders[0].name in told.stdout
        assert not group.exceeded(os.getpid())
        # The kernel's limit, not ours: nothing watches here.
        if limiter == "cgroup-v1":
            assert (group.folders[0] / "memory.kmem.tcp.limit_in_bytes").read_text() == f"{LIMIT}\n"
            assert (group.folders[2] / "cpu.cfs_quota_us").read_text() == "200000\n"
        taker = [sys.executable, "-c", "x = bytearray(2**30)"]
        assert subprocess.run(group.enter(taker), check=False).returncode == -9
        assert group.exceeded(os.getpid())
    assert not any(folder.exists() for folder in group.folders)


def test_version_two_is_told_its_limits_beside_the_slices():
    group = group_of("cgroup-v2", "name", LIMIT, 128, sudo=False)
    assert group.folders == (Path("/sys/fs/cgroup/name"),)
    assert dict(group.settings) == {
        "/sys/fs/cgroup/name/memory.max": str(LIMIT),
        "?/sys/fs/cgroup/name/memory.swap.max": "0",
        "?/sys/fs/cgroup/name/memory.oom.group": "1",
        "?/sys/fs/cgroup/name/cpu.max": "200000 100000",
        "/sys/fs/cgroup/name/pids.max": "136",
    }


def test_through_sudo_the_group_is_joined_behind_it():
    group = group_of("cgroup-v2", "name", LIMIT, 128, sudo=True)
    words = group.enter(["sudo", "-n", "/usr/bin/env", "-i", "true"])
    assert words[:4] == ["sudo", "-n", "/bin/sh", "-c"]
    assert words[5:] == ["1", "/sys/fs/cgroup/name/cgroup.procs", "/usr/bin/env", "-i", "true"]


def test_a_scope_of_the_user_s_systemd_starts_the_chain_and_passes_on_only_its_address(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("PROVIDER_API_KEY", "secret")
    group = group_of("systemd-user", "name", LIMIT, 128, sudo=False)
    words = group.enter(["/usr/bin/env", "-i", "true"])
    assert words[:3] == ["systemd-run", "--user", "--scope"]
    assert f"MemoryMax={LIMIT}" in words
    assert {"TasksMax=136", "CPUQuota=200%"} <= set(words)
    assert words[-4:] == ["--", "/usr/bin/env", "-i", "true"]
    assert "PROVIDER_API_KEY" not in group.environment
    assert group.environment["XDG_RUNTIME_DIR"] == "/run/user/1000"
