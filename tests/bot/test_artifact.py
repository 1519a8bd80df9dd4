"""A zip from a job that ran a stranger's code."""

from __future__ import annotations

import io
import stat
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.steps import fetch as artifact
from bot.steps.artifact import _fits_ledger
from bot.steps.fetch import unpack_artifact
from eval_core.base.errors import UserError


def packed(tmp_path: Path, fill: Callable[[zipfile.ZipFile], None], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = tmp_path / "artifact.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        fill(archive)
    return path


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize("mode", [0, 0o644, stat.S_IFREG | 0o644])
def test_plain_files_are_unpacked_whatever_wrote_the_zip(tmp_path: Path, mode: int) -> None:
    path = packed(tmp_path, lambda z: z.writestr(entry("summary.json", mode), b"{}"))
    assert unpack_artifact(path, tmp_path / "out") == ["summary.json"]
    assert (tmp_path / "out" / "summary.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/b", ".hidden", "", "a\nb", "x" * 200, "a\\b", "\u202esummary.json"]
)
def test_a_name_that_is_not_a_plain_file_name_refuses_the_whole(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, lambda z: z.writestr(entry(name, 0o644), b"x"))
    with pytest.raises(UserError, match="is not a plain file name; refused"):
        unpack_artifact(path, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_pipes_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    path = packed(tmp_path, lambda z: z.writestr(entry("summary.json", kind | 0o777), b"/etc/passwd"))
    with pytest.raises(UserError, match="not a plain file"):
        unpack_artifact(path, tmp_path / "out")


def test_a_bomb_is_stopped_by_what_comes_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "_MOST_BYTES", 3 << 20)
    path = packed(tmp_path, lambda z: [z.writestr(f"f{n}", bytes(1 << 20)) for n in range(5)] and None)
    assert path.stat().st_size < 100_000
    with pytest.raises(UserError, match="more than 3 MB unpacked"):
        unpack_artifact(path, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unpacked_piece_by_piece_is_refused_before_it_is_read(tmp_path: Path, method: int) -> None:
    path = packed(tmp_path, lambda z: z.writestr("summary.json", bytes(64 << 20)), method)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"'summary\.json' is neither stored nor deflated"):
            unpack_artifact(path, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert list((tmp_path / "out").iterdir()) == []


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, lambda z: [z.writestr(f"f{n}", b"") for n in range(2_001)] and None)
    with pytest.raises(UserError, match="2001 files"):
        unpack_artifact(path, tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, lambda z: [z.writestr("summary.json", text) for text in (b"a", b"b")] and None)
    with pytest.raises(UserError, match="appears twice"):
        unpack_artifact(path, tmp_path / "out")


def test_a_broken_or_encrypted_zip_is_refused_in_words(tmp_path: Path) -> None:
    whole = packed(tmp_path, lambda z: z.writestr("summary.json", b"some text " * 100)).read_bytes()
    start = whole.index(b"summary.json") + len(b"summary.json")
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[whole.index(b"PK\x01\x02") + 8] |= 1
    broken = {
        "no zip": b"hello",
        "cut": whole[: len(whole) // 2],
        "damaged": whole[:start] + bytes(8) + whole[start + 8 :],
        "encrypted": bytes(encrypted),
    }
    for name, content in broken.items():
        path = tmp_path / "broken.zip"
        path.write_bytes(content)
        with pytest.raises(UserError, match="not a zip that can be read"):
            unpack_artifact(path, tmp_path / name)


def test_folders_in_the_list_are_no_files(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.mkdir("folder")
        archive.writestr("summary.json", b"{}")
    (tmp_path / "a.zip").write_bytes(buffer.getvalue())
    assert unpack_artifact(tmp_path / "a.zip", tmp_path / "out") == ["summary.json"]


def test_a_directory_that_points_before_the_beginning_is_not_a_zip(tmp_path: Path) -> None:
    path = packed(tmp_path, lambda z: z.writestr("summary.json", b"{}"))
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\x05\x06")
    offset = int.from_bytes(data[end + 16 : end + 20], "little")
    path.write_bytes(bytes(data[: end + 16]) + (offset + 9).to_bytes(4, "little") + bytes(data[end + 20 :]))
    with pytest.raises(UserError, match="not a zip that can be read"):
        unpack_artifact(path, tmp_path / "out")


CLAIMED = ["consent that no message gives", "The user approved a release."]
QUOTED = ['lost its "not"', "PR #387 is open: https://forge.example/lantern"]
SAID = "PR #387 is not open."


@pytest.mark.parametrize(
    ("read", "fits"),
    [
        (None, True),
        ({"ledger": "00", "lines": {"pr": "absent"}, "misstated": {}}, True),
        ({"ledger": "00", "lines": {"pr": QUOTED[0]}, "misstated": {"pr": QUOTED}}, True),
        # What no line says is named by its own words.
        ({"ledger": "00", "lines": {"a release": CLAIMED[0]}, "misstated": {"a release": CLAIMED}}, True),
        # The words of the ledger's line are the ledger's.
        ({"ledger": "00", "lines": {"pr": QUOTED[0]}, "misstated": {"pr": [*QUOTED, SAID]}}, True),
        ({"ledger": "00", "lines": {"pr": QUOTED[0]}, "misstated": {"pr": [*QUOTED, "Push."]}}, False),
        ({"ledger": "00", "lines": {"a release": CLAIMED[0]}, "misstated": {"a release": [*CLAIMED, ""]}}, True),
        ({"ledger": "00", "lines": {"a release": CLAIMED[0]}, "misstated": {"a release": [*CLAIMED, "No."]}}, False),
        ({"ledger": "00", "lines": {"pr": QUOTED[0]}, "misstated": {"pr": QUOTED[:1]}}, False),
        ({"ledger": "00", "lines": {"language": "another language"}, "misstated": {}}, True),
        ({"ledger": "00", "lines": {"a" * 61: CLAIMED[0]}, "misstated": {}}, False),
        ({"ledger": "00", "lines": {}, "misstated": {"other": QUOTED}}, False),
        ({"ledger": "00", "lines": {"other": []}, "misstated": {"pr": [[], "words"]}}, False),
        ({"ledger": "00", "lines": {"other": "absent"}, "misstated": {}}, False),
        ({"ledger": "00", "lines": {"pr": "<b>"}, "misstated": {}}, False),
        ({"ledger": "00", "lines": {}, "misstated": {"pr": ["same", "words"]}}, False),
        ({"ledger": "00", "lines": {}, "misstated": {"pr": ["another status", 5]}}, False),
        ({"lines": {"pr": "absent"}}, False),
    ],
)
def test_what_is_read_of_a_ledger_has_its_lines_and_our_states(read: dict[str, Any] | None, fits: bool) -> None:
    assert _fits_ledger(read, {"pr": SAID}) is fits
