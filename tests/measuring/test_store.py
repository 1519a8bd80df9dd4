"""Results on disk: one writer, earlier results untouched, `latest` where one expects it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.storage.results import ResultsFolder, free_label, open_results, read_measurement


@pytest.mark.parametrize("label", ["../x", "a/b", "", ".hidden", "latest", "x" * 81, "a b", "a\n"])
def test_a_label_is_one_folder_inside_the_results(tmp_path: Path, label: str) -> None:
    with pytest.raises(UserError, match="--label"), open_results(tmp_path / "results", label, resume=False):
        pass
    assert not (tmp_path / "results").exists()


def test_a_label_with_results_is_not_overwritten(tmp_path: Path) -> None:
    with open_results(tmp_path, "a", resume=False) as folder:
        folder.write("summary.json", "{}")
    again = open_results(tmp_path, "a", resume=False)
    with pytest.raises(UserError, match="has results already; choose another --label, or --resume"), again:
        pass
    with open_results(tmp_path, "a", resume=True) as folder:
        assert (folder.path / "summary.json").read_text() == "{}"


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    code = (
        "import fcntl, os, sys\n"
        "handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    (tmp_path / "a").mkdir()
    command = [sys.executable, "-c", code, str(tmp_path / "a" / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="another run is writing here"), open_results(tmp_path, "a", resume=False):
            pass
        other.communicate("")
    with (
        open_results(tmp_path, "a", resume=False) as folder,
        (folder.path / ".lock").open() as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_latest_follows_the_newest_result(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with open_results(tmp_path, name, resume=False) as folder:
            folder.write("x", name)
            folder.point_latest()
    assert (tmp_path / "latest").readlink() == Path("b")
    assert (tmp_path / "latest" / "x").read_text() == "b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "latest"]


def test_a_folder_called_latest_is_not_replaced(tmp_path: Path) -> None:
    small.write(tmp_path / "latest" / "mine", "x")
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match="latest: cannot point to the newest result"):
        ResultsFolder(tmp_path / "a").point_latest()
    assert (tmp_path / "latest" / "mine").read_text() == "x"


def test_a_folder_without_a_result_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no summary\.json here; give a results folder such as results/latest"):
        read_measurement(tmp_path)


def test_a_path_below_a_file_cannot_hold_results(tmp_path: Path) -> None:
    small.write(tmp_path / "file", "")
    below = open_results(tmp_path / "file", "a", resume=False)
    with pytest.raises(UserError, match="choose another folder with --results"), below:
        pass


def test_two_runs_in_one_second_get_two_folders(tmp_path: Path) -> None:
    assert free_label(tmp_path, "now") == "now"
    for name in ("now", "now-2"):
        (tmp_path / name).mkdir()
    assert free_label(tmp_path, "now") == "now-3"
