"""The stage of the attacks: canaries on the host, listeners on loopback, a victim process, a tree with traps."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ctypes
import json
import os
import pickle
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox.gateway import GatewayLimits
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject

ROOT = Path(__file__).parents[2]
ATTACKS = Path(__file__).parent / "attacks"

# What careless checkouts hold at any depth.
CREDENTIALS = (
    ".env", ".env.local", ".ENV.production", "prod.env", ".envrc", ".git-credentials", "sub/.git/config", ".git/config",
    ".netrc", ".npmrc", ".pypirc", ".pgpass", "id_rsa", "id_ed25519", "server.pem", "server.key", "store.p12",
    ".aws/credentials", ".ssh/config", ".docker/config.json", ".kube/config", "service-account-prod.json",
    "terraform.tfstate", ".streamlit/secrets.toml", "a/b/c/d/.env",
)  # fmt: skip

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
    for name in CREDENTIALS:
        place = root / "deep" / "er" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"-----BEGIN PRIVATE KEY-----\n{secret}\n")
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


def describe(compressor: str | None, python: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a Python compressor, or of the command in the options."""
    what = {} if compressor is None else {"python": str(python), "compressor": compressor}
    return {"llm": "none", "timeout_s": 20, **what, **options}


@dataclass(frozen=True)
class Attack:
    """Runs one hostile subject in the sandbox of this process."""

    sandbox: SandboxChoice
    session: Fixture
    tree: Path
    python: Path
    reach: dict[str, Any]
    """Where the canaries are that the evaluator itself can reach."""

    @property
    def evaluator(self) -> list[str]:
        """How an evaluator of this level starts Python."""
        return [sys.executable]

    @property
    def counted(self) -> bool:
        """Whether memory is limited by counting alone."""
        return self.sandbox.memory == "count"

    def __call__(
        self,
        compressor: str | None,
        *,
        model_seconds: float = 0.0,
        limits: GatewayLimits | None = None,
        retries: int = 2,
        **options: Any,
    ) -> Compression:
        async def complete(call: ModelCall) -> Completion:
            await asyncio.sleep(model_seconds)
            return Completion(f"served by {call.model}", Usage(100, 0, 10, 0.001), "m", 0.01)

        spec = target_from(describe(compressor, self.python, options), "attack")
        assert isinstance(spec, TargetSpec)
        subject = ProcessSubject(
            spec, self.tree, self.sandbox, "provider/cheap", complete,
            lambda messages: sum(len(str(message.get("content"))) for message in messages),
            hidden=("probes",), limits=limits or GatewayLimits(), retries=retries,
        )  # fmt: skip
        return asyncio.run(subject.compress(self.session, run=0, seed=0))


# The same in an evaluator without privileges, whose interpreter and checkout lie in a home that is shut to others.
SOMEBODY = """
import base64, pickle, sys
sys.path[:0] = sys.argv[1].split(":")
sys.modules["conftest_of_attacks"] = module = type(sys)("conftest_of_attacks")
module.__file__ = sys.argv[2]
exec(compile(open(sys.argv[2]).read(), sys.argv[2], "exec"), module.__dict__)
arguments, options, place = pickle.loads(base64.b64decode(sys.stdin.read()))
choice = module.detect("bwrap")
assert choice.level == "bwrap-user", choice
attack = module.Attack(choice, place["session"], place["tree"], place["python"], {})
sys.stdout.write(base64.b64encode(pickle.dumps(attack(*arguments, **options))).decode())
"""


@dataclass(frozen=True)
class RootlessAttack:
    """Runs one hostile subject in the sandbox of an evaluator without privileges."""

    interpreter: Path
    uid: int
    session: Fixture
    tree: Path
    python: Path
    reach: dict[str, Any]
    counted = True

    @property
    def evaluator(self) -> list[str]:
        """How an evaluator of this level starts Python."""
        return [*become(self.uid), str(self.interpreter)]

    def __call__(self, *arguments: Any, **options: Any) -> Compression:
        place = {"session": self.session, "tree": self.tree, "python": self.python}
        path = ":".join(
            entry for entry in [str(ROOT), *sys.path] if entry.startswith(str(ROOT)) or "-packages" in entry
        )
        ran = subprocess.run(
            [*self.evaluator, "-c", SOMEBODY, path, __file__],
            input=base64.b64encode(pickle.dumps((arguments, options, place))),
            env={"PATH": os.defpath, "HOME": str(self.tree.parent), "LANG": "C.UTF-8"},
            cwd="/",
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr.decode()
        done: Compression = pickle.loads(base64.b64decode(ran.stdout))
        return done


def become(uid: int) -> list[str]:
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]


@pytest.fixture(scope="session")
def rootless(session: Fixture, tree: Path, secret: str, stage: dict[str, Any]) -> Iterator[RootlessAttack]:
    """Set a home out for somebody, with an environment, a checkout and canaries in it."""
    interpreter = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if os.geteuid() != 0 or not interpreter.exists():
        pytest.skip("needs root, to become somebody else, and a Python for everybody of the same version")
    uid = 1_800_000_000 + secrets.randbelow(10_000_000)
    home = Path("/home") / f"ce-test-{uid}"
    home.mkdir()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home)
        subprocess.run([str(interpreter), "-m", "venv", "--without-pip", str(home / ".venv")], check=True)
        (home / ".venv" / "pip.conf").write_text(f"[global]\nindex-url = {secret}\n")
        shutil.copytree(tree, home / "checkout", symlinks=True)
        (home / "key.txt").write_text(secret)
        (home / "loot").mkdir()
        for path in [home, *home.rglob("*")]:
            os.lchown(path, uid, uid)
        home.chmod(0o700)
        victim = stack.enter_context(
            subprocess.Popen(
                [*become(uid), str(interpreter), "-c", VICTIM, str(home / "key.txt")],
                env={"COMPRESSION_EVAL_KEY": secret, "PATH": os.defpath},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        assert victim.stdin is not None
        assert victim.stdout is not None
        stack.callback(victim.stdin.close)
        address, length, descriptor = map(int, victim.stdout.readline().split())
        reach = {
            "victim": victim.pid, "victim_fd": descriptor, "secret_address": address, "secret_length": length,
            "file": str(home / "key.txt"), "home": str(home), "loot": str(home / "loot"),
        }  # fmt: skip
        yield RootlessAttack(
            interpreter, uid, session, home / "checkout", home / ".venv" / "bin" / "python", {**stage, **reach}
        )


# Somebody with the interpreter of the system is easier to contain than with one at home: the bench tries both.
LEVELS = os.environ.get("ATTACK_LEVELS", "privileged,home").split(",")


@pytest.fixture(scope="session", params=LEVELS)
def attack(request: pytest.FixtureRequest, session: Fixture, tree: Path, python: Path) -> Attack | RootlessAttack:
    """Return a function that runs one hostile subject, on each level that this machine can start."""
    if request.param != "privileged":
        found: RootlessAttack = request.getfixturevalue("rootless")
        return found if request.param == "home" else replace(found, python=found.interpreter)
    return Attack(request.getfixturevalue("sandbox"), session, tree, python, request.getfixturevalue("stage"))
