"""Published releases side by side: small wheels from a folder, real environments, real sandboxed runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import small
import yaml

from eval_core.domain.package import read_package
from eval_core.sandbox.installs import cache_folder, install

ONE_FIXTURE = ("--fixtures", "constraints-and-reversals", "--set", "compress_runs=1", "--runs", "1")

KEEPS = """
class Agent:
    def compress(self, messages):
        return [*messages[:2], {"role": "user", "content": "Summary: " + str(messages[2:])[-9000:]}]
"""
FORGETS = KEEPS.replace("[-9000:]", "[-200:]")


def _wheel(folder: Path, version: str, source: str, requires: str = "", name: str = "toy_agent") -> None:
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n{requires}"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": about,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of three releases, of which the second is the first that forgets, and a target file for them."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version, source in (("1.0", KEEPS), ("1.1", FORGETS), ("1.2", FORGETS + "# as before\n")):
        _wheel(wheels, version, source)
    _wheel(wheels, "9.0", KEEPS, "Requires-Python: >=9.0\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    spec = {
        "target": {"compressor": "toy_agent:Agent", "llm": "none"},
        "package": {"index": "pypi", "name": "toy-agent", "compaction": ["toy_agent.py"]},
    }
    file = tmp_path / "toy.yml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file


def test_the_release_that_forgets_is_found_and_nothing_is_installed_twice(cli: small.Cli, toy: Path) -> None:
    done = cli("releases", str(toy), "1.0", "1.2", "--bisect", *ONE_FIXTURE)
    assert done.code == 0, done.out
    assert "1.1 is the first release that is worse than 1.0; 1.0 is not." in done.out
    entries = {path: path.stat().st_ino for path in cache_folder().glob("toy-agent-*") if path.is_dir()}
    assert len(entries) == 3

    pair = cli("releases", str(toy), "1.1", "1.2", "--install-only")
    assert pair.out.splitlines()[-1] == "The compaction code of 1.1 and 1.2 is not the same."
    assert {path: path.stat().st_ino for path in entries} == entries

    pruned = cli("releases", "--prune")
    assert pruned.out.startswith("3 releases removed")
    assert not list(cache_folder().iterdir())


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("7.7", "toy-agent 7.7: the index lacks this version"),
        ("9.0", "toy-agent 9.0: it needs another Python"),
        ("--upgrade", "No such option"),
        ("1.0; rm", "is not a version"),
    ],
)
def test_a_version_that_cannot_be_installed_is_one_message_and_leaves_nothing(
    cli: small.Cli, toy: Path, version: str, said: str
) -> None:
    done = cli("releases", str(toy), version, "1.0", "--install-only")
    assert done.code == 2
    assert said in done.err
    assert not list(cache_folder().glob(".installing-*"))
    assert not list(cache_folder().glob(f"toy-agent-{version}*/versions.json"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody", "1", "2"], "neither a target file nor a shipped target"),
        (["langchain", "1.0"], "give a target and two versions"),
        (["langchain", "1.0", "1.0"], "a version is given twice"),
        (["langchain", "1", "2", "3", "--bisect"], "takes two versions"),
    ],
)
def test_bad_words_are_told_before_anything_is_installed(
    cli: small.Cli, toy: Path, words: list[str], said: str
) -> None:
    done = cli("releases", *words)
    assert done.code == 2
    assert said in done.err
    assert not cache_folder().exists()


def test_a_target_without_a_package_says_what_to_add(cli: small.Cli, toy: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yml"
    plain.write_text("target: {compressor: 'a:B', llm: none}\n", encoding="utf-8")
    done = cli("releases", str(plain), "1", "2")
    assert "package: {index: pypi" in done.err


def test_a_later_release_gets_the_same_versions_of_everything_else(toy: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    for version in ("2.0", "2.1"):
        _wheel(wheels, version, KEEPS, "Requires-Dist: toy-helper\n")
    _wheel(wheels, "1.0", "", name="toy_helper")
    package = read_package(toy)
    first = install(package, "2.0")
    _wheel(wheels, "1.1", "", name="toy_helper")

    beside = install(package, "2.1", like=first)
    assert (beside.versions["toy-agent"], beside.versions["toy-helper"]) == ("2.1", "1.0")
    assert (first.versions["toy-agent"], first.versions["toy-helper"]) == ("2.0", "1.0")
    found = subprocess.run(
        [str(first.environment / "bin" / "python"), "-m", "pip", "list", "--format=json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {"name": "toy-agent", "version": "2.0"} in json.loads(found.stdout)


def test_nothing_is_removed_while_a_release_is_being_installed(cli: small.Cli, toy: Path) -> None:
    install(read_package(toy), "1.0")
    with (cache_folder().parent / "releases.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        done = cli("releases", "--prune")
    assert done.code == 2
    assert "a release is being installed there" in done.err
    assert len([path for path in cache_folder().iterdir() if path.is_dir()]) == 1


def test_a_full_disk_is_one_message_and_leaves_nothing(cli: small.Cli, toy: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no permission to mount a small disk")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(full))
            done = cli("releases", str(toy), "1.0", "1.1", "--install-only")
            left = [path for path in cache_folder().iterdir() if path.is_dir()]
    finally:
        subprocess.run(["umount", str(full)], check=True)
    assert done.code == 2
    assert "toy-agent 1.0: the disk is full" in done.err
    assert not left


def test_an_index_that_is_down_is_named(cli: small.Cli, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_INDEX_URL", address)
    monkeypatch.setenv("PIP_RETRIES", "1")
    done = cli("releases", str(toy), "1.0", "1.1", "--install-only")
    assert done.code == 2
    assert "toy-agent 1.0: the package index cannot be reached" in done.err
    assert not list(cache_folder().glob("toy-agent-1.0-*/"))


def test_a_python_that_only_seems_to_be_there_is_told(
    cli: small.Cli, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "bin" / "python3.99"
    small.write(shim, "#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent), prepend=":")
    about = yaml.safe_load(toy.read_text(encoding="utf-8"))
    about["package"]["python"] = "3.99"
    toy.write_text(yaml.safe_dump(about), encoding="utf-8")
    done = cli("releases", str(toy), "1.0", "1.1", "--install-only")
    assert done.code == 2
    assert "toy-agent needs Python 3.99 or later, and there is no python3.99 on the PATH" in done.err


def test_a_release_that_the_index_hides_from_this_python_is_not_called_missing(
    cli: small.Cli, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = "".join(
        f'<a href="../../wheels/toy_agent-{version}-py3-none-any.whl" data-requires-python="&gt;={python}">'
        f"toy_agent-{version}-py3-none-any.whl</a>\n"
        for version, python in (("9.0", "9.0"), ("1.1", "9.1"))
    )
    small.write(tmp_path / "index/toy-agent/index.html", f"<!DOCTYPE html>{links}")
    monkeypatch.delenv("PIP_NO_INDEX")
    for name, value in (("FIND_LINKS", ""), ("EXTRA_INDEX_URL", ""), ("INDEX_URL", (tmp_path / "index").as_uri())):
        monkeypatch.setenv(f"PIP_{name}", value)
    hidden = cli("releases", str(toy), "9.0", "1.1", "--install-only")
    assert "toy-agent 9.0: it needs another Python (9.0 Requires-Python >=9.0)" in hidden.err
    missing = cli("releases", str(toy), "7.7", "1.1", "--install-only")
    assert "toy-agent 7.7: the index lacks this version, or one that it needs (" in missing.err


def _installing(toy: Path, version: str) -> subprocess.Popen[bytes]:
    script = "import sys; from pathlib import Path; from eval_core.domain.package import read_package; "
    script += "from eval_core.sandbox.installs import install; install(read_package(Path(sys.argv[1])), sys.argv[2])"
    return subprocess.Popen([sys.executable, "-c", script, str(toy), version], start_new_session=True)


def test_two_commands_at_once_install_a_release_once(toy: Path) -> None:
    both = [_installing(toy, "1.0") for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    (folder,) = (path for path in cache_folder().iterdir() if path.is_dir())
    assert folder.name.startswith("toy-agent-1.0-")


def test_what_a_killed_installation_left_is_removed_by_the_next_one_and_one_that_goes_on_is_not(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, monkeypatch.context() as patch:
        patch.delenv("PIP_NO_INDEX")
        patch.setenv("PIP_FIND_LINKS", "")
        patch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        patch.setenv("PIP_DEFAULT_TIMEOUT", "600")
        begun = {version: _installing(toy, version) for version in ("1.0", "1.1", "1.2")}
        try:
            while len(list(cache_folder().glob(".installing-*"))) < len(begun):
                assert all(process.poll() is None for process in begun.values())
                time.sleep(0.05)
            for version in ("1.0", "1.1"):
                os.killpg(begun[version].pid, signal.SIGKILL)
                begun[version].wait()
            patch.undo()
            install(read_package(toy), "1.0")
            (left,) = cache_folder().glob(".installing-*")
            assert "toy-agent-1.2-" in left.name
        finally:
            for process in begun.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def test_a_first_release_that_the_target_does_not_drive_is_told_and_proves_nothing(
    cli: small.Cli, toy: Path, tmp_path: Path
) -> None:
    raises = KEEPS.replace("return", "raise RuntimeError('another call')  #")
    _wheel(tmp_path / "wheels", "0.9", raises)
    done = cli("releases", str(toy), "0.9", "1.0", *ONE_FIXTURE)
    assert done.code == 2
    assert "toy-agent 0.9 never compressed through toy.yml, so nothing can be compared with it" in done.err
    assert "another call" in done.err
