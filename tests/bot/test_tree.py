"""A pull request's files arrive whole, and nothing in them reaches out."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.steps.fetch import TreeLimits, fetch_tree, unpack
from eval_core.base.errors import UserError

SHA = "a" * 40
Entry = tuple[str, bytes | str | None]


def tarball(place: Path, *entries: tarfile.TarInfo | Entry, comment: str | None = SHA) -> Path:
    """Write an archive: bytes make a file, a text a link to it, None a folder."""
    headers = {"comment": comment} if comment else {}
    with tarfile.open(place, "w:gz", format=tarfile.PAX_FORMAT, pax_headers=headers) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            name, content = entry
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type = tarfile.DIRTYPE if content is None else tarfile.SYMTYPE
                info.linkname = content or ""
                tar.addfile(info)
    return place


def special(name: str, kind: bytes, linkname: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, linkname
    return info


def test_a_commit_is_fetched_by_its_sha_without_the_top_folder(
    gh: LoopbackGitHub, client: GitHub, tmp_path: Path
) -> None:
    old = client.pull(1).head_sha
    gh.push_to_pull(1, {"src/compressor.py": b"moved on\n"})
    folder = fetch_tree(client, old, tmp_path / "pr")
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == gh.state.history.commits[old].tree


def test_whatever_the_umask_is_another_user_can_read_the_tree(tmp_path: Path) -> None:
    """The sandbox runs as one: a folder that only we may enter would make every compressor broken."""
    archive = tarball(tmp_path / "a", ("top/", None), ("top/deep/er/a.py", b"1"), ("top/b", None), ("top/b/c.py", b"2"))
    before = os.umask(0o077)
    try:
        tree = unpack(archive, SHA, tmp_path / "work" / "pr")
    finally:
        os.umask(before)
    closed = [
        path for path in (tree, *tree.rglob("*")) if path.stat().st_mode & (0o055 if path.is_dir() else 0o044) == 0
    ]
    assert closed == []


def test_links_inside_the_tree_are_kept(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a", ("top", None), ("top/a/b.txt", b"hello"), ("top/c/link", "../a/b.txt"))
    folder = unpack(archive, SHA, tmp_path / "out")
    assert (folder / "c/link").is_symlink()
    assert (folder / "c/link").read_bytes() == b"hello"


def test_a_link_in_a_circle_harms_nobody(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a", ("top/x", b"1"), ("top/loop", "loop"))
    assert (unpack(archive, SHA, tmp_path / "out") / "x").read_bytes() == b"1"


ESCAPES: dict[str, list[tarfile.TarInfo | Entry]] = {
    "link through a link": [("top/sub/up", ".."), ("top/x", "sub/up/../..")],
    "link through a link, unseen by its words": [("top/sub/up", ".."), ("top/sub/f", b""), ("top/x", "sub/up/..")],
    "file behind a link": [("top/d", "sub"), ("top/sub/f", b""), ("top/d/../../x", b"")],
    "path upwards": [("top/../../x", b"1")],
    "absolute path": [("/etc/x", b"1")],
    "dot in the path": [("top/./x", b"1")],
    "empty part": [("top//x", b"1")],
    "hard link": [("top/a", b"1"), special("top/b", tarfile.LNKTYPE, "top/a")],
    "pipe": [special("top/x", tarfile.FIFOTYPE)],
    "device": [special("top/x", tarfile.CHRTYPE)],
    "the same name twice": [("top/x", b"1"), ("top/x", b"2")],
    "a link and then a file": [("top/x", "y"), ("top/x", b"2")],
    "nothing": [("top", None)],
    "a very long path": [("top/" + "/".join(["d" * 200] * 6), b"1")],
}


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", ".."])
def test_a_link_that_leads_out_is_left_out_and_costs_nothing_else(
    tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tarball(tmp_path / "a", ("top/agent.py", b"1"), ("top/x", target))
    folder = unpack(archive, SHA, tmp_path / "out")
    assert [path.name for path in folder.iterdir()] == ["agent.py"]
    assert "'x' leads out of the tree" in capsys.readouterr().out


@pytest.mark.parametrize("case", ESCAPES)
def test_an_archive_that_reaches_out_is_refused(tmp_path: Path, case: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    archive = tarball(tmp_path / "a.tar.gz", *ESCAPES[case])
    with pytest.raises(UserError, match="files of commit aaaaaaa"):
        unpack(archive, SHA, tmp_path / "in" / "out")
    assert outside.read_text() == "untouched"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "in", "outside"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]


@pytest.mark.parametrize(
    "limits",
    [TreeLimits(file=99), TreeLimits(unpacked=150), TreeLimits(entries=1), TreeLimits(unpacked=199, entries=2)],
)
def test_a_tree_that_is_too_large_is_refused(tmp_path: Path, limits: TreeLimits) -> None:
    archive = tarball(tmp_path / "a", ("top/x", b"1" * 100), ("top/y", b"2" * 100))
    with pytest.raises(UserError, match="refused"):
        unpack(archive, SHA, tmp_path / "out", limits)


def test_a_small_archive_cannot_unpack_without_end(tmp_path: Path) -> None:
    # Headers count too: a long path is stored in one of its own.
    archive = tarball(tmp_path / "a", ("top/" + "x" * 50_000, b""))
    with pytest.raises(UserError, match="unpacks to more than allowed"):
        unpack(archive, SHA, tmp_path / "out", TreeLimits(unpacked=1 << 10, entries=10))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE])
@pytest.mark.parametrize("before", [b"", b"1" * 100_000], ids=["first", "behind a file"])
def test_a_name_that_is_read_before_it_can_be_checked_is_refused_early(
    tmp_path: Path, kind: bytes, before: bytes
) -> None:
    header, bomb = tarfile.TarInfo("top/x"), tmp_path / "a"
    header.type, header.size = kind, 64 << 20
    file = tarfile.TarInfo("top/file")
    file.size = len(before)
    padding = bytes(-len(before) % tarfile.BLOCKSIZE)
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        stream.write(file.tobuf(tarfile.GNU_FORMAT) + before + padding)
        stream.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            stream.write(b"a" * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="a header is longer than 64 KB"):
            unpack(bomb, SHA, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_chain_of_headers_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("top/x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    link = header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(tarfile.BLOCKSIZE, b"\0")
    (tmp_path / "a").write_bytes(gzip.compress(link * 2_000 + tarfile.TarInfo("top/x").tobuf() + bytes(1024)))
    with pytest.raises(UserError, match="a header is longer"):
        unpack(tmp_path / "a", SHA, tmp_path / "out")


NUMBERS = {
    "sparse map": {"GNU.sparse.map": "x,y"},
    "sparse size": {
        "GNU.sparse.size": "zz", "GNU.sparse.offset": "q", "GNU.sparse.numblocks": "1", "GNU.sparse.numbytes": "z",
    },
    "sparse 1.0": {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "top/x", "GNU.sparse.realsize": "10",
    },
    "sparse file": {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1", "GNU.sparse.numblocks": "1"},
    "negative size": {"size": "-1"},
    "huge size": {"size": "9" * 400},
    "no size": {"size": "x"},
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_are_none_are_refused_in_words(tmp_path: Path, case: str) -> None:
    info = tarfile.TarInfo("top/x")
    info.size, info.pax_headers = 1, NUMBERS[case]
    with tarfile.open(tmp_path / "a", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b"1"))
    with contextlib.suppress(UserError):  # or read as if the field were not there
        assert [path.name for path in unpack(tmp_path / "a", SHA, tmp_path / "out").iterdir()] == ["x"]


def test_a_link_to_no_path_is_refused(tmp_path: Path) -> None:
    info = special("top/x", tarfile.SYMTYPE, "a")
    info.pax_headers = {"linkpath": "a\0b"}
    with pytest.raises(UserError, match="broken or refused"):
        unpack(tarball(tmp_path / "a", info), SHA, tmp_path / "out")


@pytest.mark.parametrize("date", ["9223372036854775807", "inf", "1e300", "nan", "-1", "-9223372036854775808"])
def test_a_commit_of_any_date_is_unpacked(tmp_path: Path, date: str) -> None:
    file, folder = tarfile.TarInfo("top/d/x"), special("top/d", tarfile.DIRTYPE)
    file.pax_headers = folder.pax_headers = {"mtime": date}
    tree = unpack(tarball(tmp_path / "a", folder, file), SHA, tmp_path / "out")
    assert (tree / "d/x").stat().st_mtime == 0


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def corrupted(content: bytes) -> bytes:
    return content[:20] + bytes(byte ^ 0x55 for byte in content[20:60]) + content[60:]


@pytest.mark.parametrize("damage", [truncated, corrupted, lambda content: b"", lambda content: b"<html>no</html>"])
def test_a_damaged_archive_is_said_to_be_broken(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    archive = tarball(tmp_path / "a", ("top/x", bytes(range(256)) * 50))
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(UserError, match="files of commit"):
        unpack(archive, SHA, tmp_path / "out")


def test_an_archive_of_another_commit_is_refused(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a", ("top/x", b"1"), comment="b" * 40)
    with pytest.raises(UserError, match="another commit"):
        unpack(archive, SHA, tmp_path / "out")


def test_a_folder_in_use_is_not_written_to(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a", ("top/x", b"1"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(UserError, match="not empty"):
        unpack(archive, SHA, tmp_path / "out")


def test_set_user_id_bits_do_not_survive(tmp_path: Path) -> None:
    info = tarfile.TarInfo("top/x")
    info.mode = 0o6777
    folder = unpack(tarball(tmp_path / "a", info), SHA, tmp_path / "out")
    assert (folder / "x").stat().st_mode & 0o7022 == 0
