"""The stage of the attacks: canaries on the host, listeners on loopback, a victim process, a tree with traps."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject

ATTACKS = Path(__file__).parent / "attacks"

# Holds the canary in its environment, in its memory and behind a descriptor, and says where.
VICTIM = """
import ctypes, os, sys
secret = os.environ["COMPRESSION_EVAL_KEY"]
held = ctypes.create_string_buffer(secret.encode())
descriptor = os.open(sys.argv[1], os.O_RDONLY)
print(ctypes.addressof(held), len(secret), descriptor, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def sandbox() -> SandboxChoice:
    try:
        return detect()
    except UserError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the attack battery needs a sandbox: {exc}")
        pytest.skip(f"NO SANDBOX, NOTHING OF THE ATTACK BATTERY WAS RUN: {exc}")


@pytest.fixture(scope="session")
def secret() -> str:
    return "CAN" + "ARY-" + secrets.token_hex(16)


def _echo(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            _, sender = listener.recvfrom(64)
            listener.sendto(b"pong", sender)


def _shared_segment(secret: str) -> tuple[int, int]:
    libc = ctypes.CDLL(None)
    key = secrets.randbelow(2**30) + 1
    segment = libc.shmget(key, 64, 0o1600)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, secret.encode(), len(secret))
    return key, segment


@pytest.fixture(scope="session")
def stage(secret: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Set everything out and return where it is."""
    host = tmp_path_factory.mktemp("host")
    host.chmod(0o755)
    file, loot = host / "key.txt", host / "loot"
    file.write_text(secret)
    loot.mkdir()
    loot.chmod(0o777)
    short = Path(os.path.realpath("/tmp")) / f"ce-test-{secrets.token_hex(6)}"  # socket paths are short
    short.mkdir()
    shm = Path("/dev/shm") / f"ce-test-{secrets.token_hex(6)}"
    shm.write_text(secret)
    key, segment = _shared_segment(secret)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, short)
        stack.callback(shm.unlink)
        stack.callback(ctypes.CDLL(None).shmctl, segment, 0, None)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        tcp6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6)) if socket.has_ipv6 else tcp
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=_echo, args=(udp,), daemon=True).start()
        abstract = f"ce-test-{secrets.token_hex(6)}"
        addresses = {"abstract": f"\0{abstract}", "path": str(short / "s"), "other_gateway": str(short / "llm.sock")}
        for address in addresses.values():
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen()
        victim = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", VICTIM, str(file)],
                env={"COMPRESSION_EVAL_KEY": secret},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        assert victim.stdin is not None
        assert victim.stdout is not None
        stack.callback(victim.stdin.close)
        address, length, descriptor = map(int, victim.stdout.readline().split())
        yield {
            "victim": victim.pid,
            "victim_fd": descriptor,
            "secret_address": address,
            "secret_length": length,
            "parent": os.getpid(),
            "file": str(file),
            "home": str(host),
            "loot": str(loot),
            "tcp": tcp.getsockname()[1],
            "tcp6": tcp6.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "path": addresses["path"],
            "other_gateway": addresses["other_gateway"],
            "shm": shm.name,
            "sysv": key,
        }


@pytest.fixture(scope="session")
def tree(secret: str, stage: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout with the attacks in it, and with everything that careless checkouts hold."""
    root = tmp_path_factory.mktemp("tree") / "checkout"
    shutil.copytree(ATTACKS, root)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(f"[http]\n\textraheader = AUTHORIZATION: basic {secret}\n")
    (root / ".env").write_text(f"KEY={secret}\n")
    (root / "probes").mkdir()
    (root / "probes" / "a.probes.json").write_text(json.dumps({"expected": secret}))
    (root / "way-out").symlink_to(stage["file"])
    return root


@pytest.fixture(scope="session")
def python(secret: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a virtual environment whose pip.conf holds a credential."""
    root = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (root / "pip.conf").write_text(f"[global]\nindex-url = {secret}\n")
    return root / "bin" / "python"


@pytest.fixture(scope="session")
def session() -> Fixture:
    turns = [{"role": role, "content": "words " * 2000} for role in ["user", "assistant"] * 3]
    return Fixture(name="session", messages=turns)


@pytest.fixture(scope="session")
def attack(sandbox: SandboxChoice, session: Fixture, tree: Path, python: Path) -> Callable[..., Compression]:
    """Return a function that runs one hostile subject in the sandbox."""

    def run(compressor: str, *, model_seconds: float = 0.0, **options: Any) -> Compression:
        async def complete(call: ModelCall) -> Completion:
            await asyncio.sleep(model_seconds)
            return Completion(f"served by {call.model}", Usage(100, 0, 10, 0.001), "m", 0.01)

        settings = {key: options.pop(key) for key in ("limits", "retries") if key in options}
        spec = target_from({"llm": "none", "timeout_s": 20, "python": str(python), **options,
                            "compressor": compressor}, "attack")  # fmt: skip
        assert isinstance(spec, TargetSpec)
        subject = ProcessSubject(
            spec, tree, sandbox, "provider/cheap", complete,
            lambda messages: sum(len(str(message.get("content"))) for message in messages),
            hidden=("probes",), **settings,
        )  # fmt: skip
        return asyncio.run(subject.compress(session, run=0, seed=0))

    return run
