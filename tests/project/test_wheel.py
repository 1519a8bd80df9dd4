"""The wheel, outside any checkout: everything that is documented works without the clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the tracked files and unpack it into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "source")]
    subprocess.run(wheel, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(built)], check=True)
    return folder / "site"


@pytest.mark.e2e
def test_one_command_runs_the_wheel_in_an_environment_of_its_own(installed: Path, tmp_path: Path) -> None:
    """`uvx --from WHEEL`, as documented, in a home that is closed to others: nothing of this environment is in reach.

    On a hosted runner this is a user with sudo, whose compressor runs as somebody else.
    """
    home, empty = tmp_path / "home", tmp_path / "empty"
    home.mkdir(mode=0o750)
    empty.mkdir()
    (wheel,) = installed.parent.glob("*.whl")
    uvx = str(Path(sys.executable).parent / "uvx")
    own = ("PYTHONPATH", "VIRTUAL_ENV", "UV_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    apart = {**{name: value for name, value in os.environ.items() if name not in own}, "HOME": str(home)}
    for words in (("--version",), ("doctor",), ("demo",)):
        done = subprocess.run(
            [uvx, "--python", sys.executable, "--from", str(wheel), "compression-eval", *words],
            cwd=empty,
            env=apart,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    comment = (empty / "results/demo/comment.md").read_text(encoding="utf-8")
    assert "Regressed" in comment
    sudo = shutil.which("sudo")
    if os.geteuid() and sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        assert "Sandbox: `bwrap-sudo" in comment


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Command:
    """Run `compression-eval` from the wheel in an empty folder; only its dependencies come from this environment."""

    def run(*words: str, expect: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-P", "-c", "from bot.cli import main; main()", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed), **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    return run


def test_the_code_and_the_data_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import bot, eval_core; from eval_core.base.shipped import shipped; print(bot.__file__, shipped('fixtures'))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(installed / "bot/__init__.py"), str(installed / "eval_core/shipped/fixtures")]


_TRACE = """
import atexit, json, pathlib, sys
def write():
    if sys.argv[1:2] in (["bot"], ["demo"]):
        path = pathlib.Path(__file__).parent / f"{sys.argv[-1] if sys.argv[1] == 'demo' else sys.argv[2]}.json"
        path.write_text(json.dumps(sorted(sys.modules)))
atexit.register(write)
"""


@pytest.fixture(scope="module")
def demonstrated(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the demo from the wheel in an empty folder, writing down which modules each of its steps loads."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "sitecustomize.py").write_text(_TRACE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from bot.cli import main; main()", "demo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{installed}:{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_demo_runs_in_an_empty_folder(demonstrated: Path) -> None:
    assert "Regressed" in (demonstrated / "results/demo/comment.md").read_text(encoding="utf-8")


def test_the_wheel_holds_of_the_demo_what_is_played_and_nothing_else(demonstrated: Path, installed: Path) -> None:
    loaded = set(json.loads((demonstrated / "demo.json").read_text(encoding="utf-8")))
    files = (installed / "bot" / "demo").rglob("*.py")
    names = {".".join(path.relative_to(installed).with_suffix("").parts).removesuffix(".__init__") for path in files}
    assert names - loaded == set()


@pytest.mark.parametrize(("step", "most"), [("gate", 60), ("fetch", 55), ("setup", 30), ("publish", 55)])
def test_a_step_with_a_token_loads_little_of_ours_and_nothing_that_measures(
    demonstrated: Path, step: str, most: int
) -> None:
    loaded = json.loads((demonstrated / f"{step}.json").read_text(encoding="utf-8"))
    own = [name for name in loaded if name.split(".")[0] in ("bot", "eval_core")]
    assert len(own) <= most, own
    rooms = ("comparing", "compressors", "judging", "measuring", "reporting", "sandbox")
    assert [name for name in own if name.startswith(tuple(f"eval_core.{room}" for room in rooms))] == []
    assert {"numpy", "aiohttp", "litellm", "tiktoken"} & set(loaded) == set()


def test_a_run_without_a_suite_uses_the_shipped_one_and_says_so(command: Command, tmp_path: Path) -> None:
    done = command("run", "--fixtures", "debug-session-feishu-id-model", "--target", "builtin:anchored", "--runs", "1")
    assert "shipped" in done.stderr
    summary = json.loads((tmp_path / "results/latest/summary.json").read_text(encoding="utf-8"))
    assert list(summary["fixtures"]) == ["debug-session-feishu-id-model"]


def test_doctor_runs_in_an_empty_folder(command: Command) -> None:
    assert "Traceback" not in command("doctor").stderr


def test_the_target_of_hermes_is_found(command: Command, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    done = command("run", "--runs", "1", expect=2, HERMES_AGENT_ROOT="missing")
    assert "HERMES_AGENT_ROOT=missing: no such folder" in done.stderr


def test_init_writes_a_workflow_that_doctor_finds(command: Command, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    code = "class ContextCompressor:\n    def compress(self, messages):\n        return messages\n"
    (tmp_path / "context_compressor.py").write_text(code, encoding="utf-8")
    command("init", "--action", f"acme/compression-eval@{'5' * 40}")
    workflow = (tmp_path / ".github/workflows/compression-eval.yml").read_text(encoding="utf-8")
    assert "acme/compression-eval@5555" in workflow
    assert "Traceback" not in command("doctor").stderr
