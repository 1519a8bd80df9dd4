"""Which sandbox is taken, what its command line holds, and that a sandbox with a hole is not used."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import http.server
import json
import os
import shutil
import socketserver
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.compression import Outcome
from eval_core.domain.target import target_from
from eval_core.sandbox import isolation as sandbox_module
from eval_core.sandbox.isolation import SandboxChoice, SandboxView, detect, interpreter, run_folder, view_of
from eval_core.sandbox.seccomp import AARCH64, DENIED, DENIED_WHERE_COUNTED, X86_64, abi_of, program
from eval_core.sandbox.subject import ProcessSubject, SandboxBreach


def test_a_machine_without_any_sandbox_refuses_and_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: None)
    with pytest.raises(UserError) as error:
        detect.__wrapped__("auto")
    assert "bubblewrap is not installed" in str(error.value)
    assert "apt-get install bubblewrap" in str(error.value)
    assert "--sandbox none" in str(error.value)


@dataclasses.dataclass(frozen=True)
class Leaky(SandboxChoice):
    """The real sandbox with words of its command line taken out."""

    missing: tuple[tuple[str, ...], ...] = ()

    def wrap(self, view, folder, inner, seconds, memory):
        words = super().wrap(view, folder, inner, seconds, memory)
        for part in self.missing:
            if part == ("setpriv",):
                del words[words.index("setpriv") : words.index(inner[0], words.index("setpriv"))]
                continue
            at = next(at for at in range(len(words)) if tuple(words[at : at + len(part)]) == part)
            del words[at : at + len(part)]
        return words


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        ([("--unshare-net",)], "the host's loopback answers"),
        ([("--unshare-net",)], "an abstract unix socket of the host answers"),
        ([("--unshare-pid",), ("--as-pid-1",)], "of another program is visible"),
        ([("--as-pid-1",)], "process 1 of another program is visible"),
        ([("--seccomp", "9")], "Seccomp is 0"),
        ([("--seccomp", "9")], "descriptor 9 is open"),
        ([("-i",), ("--clearenv",)], "COMPRESSION_EVAL_CANARY' holds the canary"),
        ([("setpriv",)], "the process runs as root"),
        ([("setpriv",), ("--remount-ro", "/")], "/ can be written to"),
        ([("--bounding-set=-all",)], "CapBnd is"),
    ],
)
def test_the_self_test_finds_each_hole_and_the_subject_is_not_started(sandbox, session, tree, missing, found):
    if sandbox.level != "bwrap-root":
        pytest.skip("the holes are cut into the privileged command line")
    spec = target_from({"compressor": "bombs:limits", "llm": "none"}, "x")

    async def complete(call):
        raise AssertionError("no model is asked")

    subject = ProcessSubject(spec, tree, Leaky(sandbox.level, missing=tuple(missing)), "m", complete, len)
    with pytest.raises(SandboxBreach, match="was not started") as error:
        asyncio.run(subject.compress(session, run=0, seed=0))
    assert found in str(error.value)


def test_the_environment_of_the_chain_is_empty(sandbox):
    with run_folder() as folder:
        words = sandbox.command(SandboxView("/usr/bin/python3", ()), folder, 10, 256)
    assert words[words.index("/usr/bin/env") + 1] == "-i" or sandbox.level == "docker"


def test_docker_gets_no_network_no_capability_and_no_writable_root(tmp_path):
    view = SandboxView(
        "/usr/bin/python3", (("/usr/lib", "/subject"),), (("/subject/.git", True), ("/subject/.env", False))
    )
    words = " ".join(SandboxChoice("docker").command(view, tmp_path, 10, 512))
    for part in (
        "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--user 65534:65534",
        "--pids-limit 128", "--memory 512m", "--pull never", "src=/usr/lib,dst=/subject,readonly",
        "/subject/.git:ro", "src=/dev/null,dst=/subject/.env,readonly",
    ):  # fmt: skip
        assert part in words


NAMES_WITH_OPTIONS = [
    "x,type=volume,src=postgres-data",
    "x,type=volume,src=v,volume-opt=type=none,volume-opt=o=bind,volume-opt=device=..",
    'x",src=elsewhere,"',
    '"',
    "x:rw",
    "--privileged",
    "\u200d\u00e9 \u3042",
]


def docker_words(tree: Path, folder: Path) -> list[str]:
    """Return docker's command line for a tree that is shown entry by entry."""
    tree.chmod(0o700)
    return SandboxChoice("docker").wrap(view_of(Path("/usr/bin/python3"), tree, None), folder, ["true"], 10, 256)


@pytest.mark.parametrize("name", NAMES_WITH_OPTIONS)
def test_no_name_in_the_tree_becomes_an_option_of_docker(name, tmp_path):
    (tmp_path / name).mkdir()
    with run_folder() as folder:
        words = docker_words(tmp_path, folder)
    mounts = [next(csv.reader([words[at + 1]])) for at, word in enumerate(words) if word == "--mount"]
    assert ["type=bind", f"src={tmp_path / name}", f"dst=/subject/{name}", "readonly"] in mounts
    assert all(len(fields) == 4 and fields[0] == "type=bind" and fields[3] == "readonly" for fields in mounts)


class Daemon(http.server.BaseHTTPRequestHandler):
    """Plays docker's daemon: it writes down what it is asked to create, and refuses."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[dict[str, Any]]] = []

    def address_string(self):
        return ""

    def log_message(self, *words):
        pass

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "/containers/create" in self.path:
            self.asked.append(json.loads(body))
        self.send_response(200 if "_ping" in self.path else 500)
        self.send_header("Api-Version", "1.40")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET = do_POST = _answer


@pytest.mark.skipif(not shutil.which("docker"), reason="the client of docker is not installed")
@pytest.mark.parametrize("name", NAMES_WITH_OPTIONS)
def test_docker_s_own_client_reads_every_name_as_a_name(name, tmp_path, monkeypatch):
    (tmp_path / name).mkdir()
    monkeypatch.setattr(Daemon, "asked", [])
    with run_folder() as folder, socketserver.ThreadingUnixStreamServer(str(folder / "d"), Daemon) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "DOCKER_HOST": f"unix://{folder / 'd'}"}
        words = docker_words(tmp_path, folder)
        ran = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        server.shutdown()
    assert Daemon.asked, ran.stderr
    mounts = Daemon.asked[0]["HostConfig"]["Mounts"]
    wanted = {"Type": "bind", "Source": str(tmp_path / name), "Target": f"/subject/{name}", "ReadOnly": True}
    assert wanted in mounts
    assert {mount["Type"] for mount in mounts} == {"bind"}


@pytest.mark.parametrize("name", ["a\r\nb", "a\nb", "a\tb", "ends in a space ", os.fsdecode(b"\xff")])
def test_a_name_that_docker_cannot_express_is_refused_by_name(name, tmp_path):
    (tmp_path / name).mkdir()
    with run_folder() as folder, pytest.raises(UserError, match="docker cannot mount") as error:
        docker_words(tmp_path, folder)
    assert str(error.value).isprintable()


def test_a_hidden_folder_whose_name_docker_would_split_is_refused(tmp_path):
    (tmp_path / "a:exec").mkdir()
    (tmp_path / ".git").symlink_to("a:exec")
    tmp_path.chmod(0o755)
    view = view_of(Path("/usr/bin/python3"), tmp_path, None)
    with run_folder() as folder, pytest.raises(UserError, match="docker cannot mount '/subject/a:exec'"):
        SandboxChoice("docker").wrap(view, folder, ["true"], 10, 256)


def test_only_the_parts_of_a_prefix_that_an_interpreter_needs_are_seen(python, tree, tmp_path):
    view = view_of(python, tree, tmp_path, ("probes", "../elsewhere", "nothing-here"))
    sources = [source for source, _ in view.binds]
    assert str(python.parent.parent) not in sources
    assert str(python.parent) in sources
    assert not any("pip.conf" in source for source in sources)
    assert ("/subject/probes", True) in view.masks
    assert ("/subject/.git", True) in view.masks
    assert ("/subject/.env", False) in view.masks
    covered = {Path(path) for path, _ in view.masks}
    held = [Path("/subject") / path.relative_to(tree) for path in (tree / "deep").rglob("*") if path.is_file()]
    assert [path for path in held if covered.isdisjoint((path, *path.parents))] == []
    assert len(held) > 20


def test_what_only_looks_like_a_credential_is_shown(tmp_path):
    """Code reads these when it starts: templates with defaults, certificates, packages of that name."""
    for name in (
        ".env.example",
        "deep/.env.template",
        "cacert.pem",
        "credentials/__init__.py",
        "environment.py",
        "keys.py",
    ):
        small.write(tmp_path / name, "-----BEGIN CERTIFICATE-----\n")
    assert view_of(Path("/usr/bin/python3"), tmp_path, None).masks == ()


def test_a_link_named_like_a_credential_covers_what_it_leads_to_and_nothing_is_covered_twice(tmp_path):
    small.write(tmp_path / "settings" / "dev", "KEY=1")
    small.write(tmp_path / "probes" / "deep" / ".env", "KEY=1")
    small.write(tmp_path / ".git" / "sub" / ".env", "KEY=1")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / ".env").symlink_to("../settings/dev")
    (tmp_path / "app" / ".netrc").symlink_to("/etc/passwd")
    (tmp_path / "app" / ".npmrc").symlink_to(".npmrc")
    (tmp_path / "app" / ".pypirc").symlink_to("nowhere")
    view = view_of(Path("/usr/bin/python3"), tmp_path, None, ("probes",))
    assert sorted(view.masks) == [
        ("/subject/.git", True), ("/subject/probes", True), ("/subject/settings/dev", False),
    ]  # fmt: skip


def test_the_folder_that_a_command_lives_from_is_covered_too(tmp_path):
    tree, runtime = tmp_path / "tree", tmp_path / "runtime"
    tree.mkdir()
    small.write(runtime / "node_modules" / "pkg" / ".npmrc", "token")
    masks = view_of(Path("/usr/bin/python3"), tree, None, (), str(runtime)).masks
    assert set(masks) == {(f"{runtime}/node_modules/pkg/.npmrc", False), ("/node_modules/pkg/.npmrc", False)}


def test_more_credentials_than_can_be_covered_are_refused_by_name(tmp_path):
    for number in range(2_001):
        (tmp_path / f"{number}.key").touch()
    with pytest.raises(UserError, match=r"more than 2,000 files are named like credentials \(0.key"):
        view_of(Path("/usr/bin/python3"), tmp_path, None)


def test_a_tree_given_by_a_relative_path_is_shown_and_its_hidden_names_are_covered(python, tmp_path, monkeypatch):
    (tmp_path / "probes").mkdir()
    monkeypatch.chdir(tmp_path)
    view = view_of(python, Path(), None, ("probes",))
    assert any(source.startswith(str(tmp_path.resolve())) for source, _ in view.binds)
    assert ("/subject/probes", True) in view.masks


def test_a_hidden_name_that_is_a_link_hides_what_it_leads_to(python, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "probes").symlink_to("real")
    assert ("/subject/real", True) in view_of(python, tmp_path, None, ("probes",)).masks


def test_a_tree_that_only_its_owner_may_enter_is_shown_without_following_its_links(
    sandbox, session, python, stage, tmp_path
):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    (shut / "reader.py").write_text(
        "def compress(messages):\n"
        "    try:\n"
        "        said = open('/subject/way-out').read()\n"
        "    except OSError as exc:\n"
        "        said = type(exc).__name__\n"
        "    return [{'role': 'user', 'content': said}]\n"
    )
    (shut / "way-out").symlink_to(stage["file"])
    view = view_of(python, shut, None)
    assert not any(stage["file"] in source or "way-out" in source for source, _ in view.binds)
    spec = target_from({"compressor": "reader:compress", "llm": "none", "python": str(python)}, "x")

    async def complete(call):
        raise AssertionError("no model is asked")

    subject = ProcessSubject(spec, shut, sandbox, "m", complete, lambda messages: len(str(messages)))
    done = asyncio.run(subject.compress(session, run=0, seed=0))
    assert done.state == [{"role": "user", "content": "FileNotFoundError"}]


def test_the_evaluator_s_own_interpreter_is_the_default():
    assert interpreter(None) == Path(sys.executable)


def run_filter(code: bytes, number: int, arch: int, *arguments: int) -> int:
    """Interpret the program as the kernel would."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    lines = [struct.unpack_from("<HBBI", code, offset) for offset in range(0, len(code), 8)]
    at, value = 0, 0
    while True:
        operation, if_true, if_false, constant = lines[at]
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        elif operation == 0x06:
            return constant
        else:
            holds = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[operation]
            at += if_true if holds else if_false


ALLOW, KILL, NOTHING, EPERM, EINVAL = 0x7FFF0000, 0x80000000, 0x50000, 0x50001, 0x50016
ENOSYS, ENOPROTOOPT, EAFNOSUPPORT = 0x50026, 0x5005C, 0x50061


@pytest.mark.parametrize("abi", [X86_64, AARCH64], ids=lambda abi: abi.name)
def test_the_filter_denies_what_it_lists_and_lets_the_rest_pass(abi):
    code, arch = program(abi), abi.audit_arch
    for numbers in DENIED.values():
        if numbers[abi.column] is not None:
            assert run_filter(code, numbers[abi.column], arch) == EPERM
    assert run_filter(code, 0, arch) == ALLOW
    for family in range(64):
        wanted = ALLOW if family in (1, 2, 10) else EAFNOSUPPORT
        assert run_filter(code, abi.socket, arch, family) == wanted
        assert run_filter(code, abi.socketpair, arch, family) == wanted
    assert run_filter(code, abi.clone, arch, 0x1200011) == ALLOW  # fork, as libc does it
    assert run_filter(code, abi.clone, arch, 0x3D0F00) == ALLOW  # a thread
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert run_filter(code, abi.clone, arch, flag | 17) == EPERM
    assert run_filter(code, abi.clone3, arch) == ENOSYS
    assert run_filter(code, abi.ioctl, arch, 0, 0x5412) == EPERM
    assert run_filter(code, abi.ioctl, arch, 0, 0x5413) == ALLOW
    for signal in range(65):  # PR_SET_PDEATHSIG
        assert run_filter(code, abi.prctl, arch, 1, signal) == (ALLOW if signal == 9 else EPERM)
    assert run_filter(code, abi.prctl, arch, 15, 0) == ALLOW
    assert run_filter(code, abi.memfd_create, arch) == ALLOW
    assert run_filter(code, abi.mmap, arch, 0, 4096, 3, 0x21) == ALLOW
    for foreign in (0x40000003, 0x40000028, X86_64.audit_arch ^ AARCH64.audit_arch):
        assert run_filter(code, 0, foreign) == KILL


@pytest.mark.parametrize("abi", [X86_64, AARCH64], ids=lambda abi: abi.name)
def test_the_filter_denies_more_where_memory_is_counted(abi):
    code, counted, arch = program(abi), program(abi, counted=True), abi.audit_arch
    for numbers in DENIED_WHERE_COUNTED.values():
        assert run_filter(code, numbers[abi.column], arch) == ALLOW
        assert run_filter(counted, numbers[abi.column], arch) == EINVAL
    for flags in (0x1200011, 0x3D0F00, 0x4111, 17):  # fork, a thread, vfork, fork without libc
        assert run_filter(counted, abi.clone, arch, flags) == ALLOW
    assert run_filter(counted, abi.clone, arch, 0x111) == EPERM  # the same memory in another process
    assert run_filter(code, abi.clone, arch, 0x111) == ALLOW
    done = {(1, 60): ENOPROTOOPT, (1, 7): NOTHING, (1, 8): NOTHING}  # SO_ZEROCOPY, SO_SNDBUF, SO_RCVBUF
    for level, option in (*done, (1, 9), (6, 60), (0, 7), (41, 8)):
        wanted = done.get((level, option), ALLOW)
        assert run_filter(code, abi.setsockopt, arch, 3, level, option) == ALLOW
        assert run_filter(counted, abi.setsockopt, arch, 3, level, option) == wanted
    assert run_filter(counted, abi.memfd_create, arch) == ENOSYS
    for flags in (0x21, 0x23, 0x4021):  # shared without a file, whatever else it is
        assert run_filter(counted, abi.mmap, arch, 0, 4096, 3, flags) == EPERM
    for flags in (0x22, 0x01, 0x02, 0x4022):
        assert run_filter(counted, abi.mmap, arch, 0, 4096, 3, flags) == ALLOW


def test_files_can_be_copied_though_the_fast_ways_may_be_shut(attack):
    done = attack("bombs:copies_files")
    assert done.outcome is Outcome.OK, done
    copied = json.loads(done.state[0]["content"])
    assert {f"/tmp/by-{way}" for way in ("python", "cp", "cat", "socket")} <= set(copied)
    assert all(copied.values())


def test_the_x32_numbering_is_foreign_on_x86():
    assert run_filter(program(X86_64), 0x40000000 + 39, X86_64.audit_arch) == KILL


def test_an_unknown_machine_is_refused():
    with pytest.raises(UserError, match="riscv64"):
        abi_of("riscv64")


def test_runs_side_by_side_have_uids_of_their_own():
    uids = {sandbox_module._fresh_uid() for _ in range(500)}
    assert len(uids) == 500
    assert all(2**31 > uid > 1_000_000_000 for uid in uids)


def test_runtimes_that_reserve_more_than_they_use_get_no_limit_of_address_space():
    choice = SandboxChoice("bwrap-root")
    limits = choice.resource_limits(2**31, 10, address_space=False)
    assert "AS" not in limits
    assert limits["NOFILE"] == 1024
    assert choice.resource_limits(2**31, 10)["AS"] == 2**31


def test_what_limits_memory_is_part_of_what_is_told_of_the_sandbox():
    assert SandboxChoice("bwrap-root", memory="cgroup-v2").in_words == (
        "bwrap-root, memory limited by a control group (v2)"
    )
