"""Sessions too large for plain JSON: stored compressed, named by digest, and read back by every command."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import root
from eval_core.base import gzip_files
from eval_core.base.errors import UserError
from eval_core.domain.case import load_suite
from eval_core.domain.fixture import Fixture, dump_fixture, find_fixture, load_fixture, named_fixture, write_fixture
from tests.suite.conftest import openai_rows
from tests.suite.sessions import session

WORDS = " ".join(f"shard{number} leases window{number * 7}" for number in range(6_000))


def _large(name: str = "large") -> Fixture:
    return session(WORDS).model_copy(update={"name": name})


def test_a_large_fixture_is_one_file_named_by_the_digest_of_its_text(tmp_path: Path) -> None:
    path = write_fixture(tmp_path, _large())
    text = dump_fixture(_large()).encode()
    assert path.name == f"large.{hashlib.sha256(text).hexdigest()[:8]}.json.gz"
    assert gzip.decompress(path.read_bytes()) == text
    assert load_fixture(path) == _large()
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_fixture_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_fixture(tmp_path / "a", _large()).read_bytes()
    monkeypatch.setattr("time.time", lambda: 86_400.0)
    assert write_fixture(tmp_path / "b", _large()).read_bytes() == first


def test_a_fixture_that_grows_or_shrinks_leaves_no_older_file_behind(tmp_path: Path) -> None:
    small = session("the port is 8471").model_copy(update={"name": "large"})
    assert write_fixture(tmp_path, small).name == "large.json"
    path = write_fixture(tmp_path, _large())
    assert list(tmp_path.iterdir()) == [path]
    write_fixture(tmp_path, small)
    assert [item.name for item in tmp_path.iterdir()] == ["large.json"]


def test_content_that_is_not_what_the_name_says_is_refused(tmp_path: Path) -> None:
    path = write_fixture(tmp_path, _large())
    path.write_bytes(gzip_files.pack(dump_fixture(_large()).replace("shard7", "shard8").encode()))
    with pytest.raises(UserError, match=r"has the digest [0-9a-f]{8}, its name says [0-9a-f]{8}; restore the file"):
        load_fixture(path)


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.00000000.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        for _ in range(gzip_files.MAX_UNPACKED // 2**20 + 2):
            stream.write(b" " * 2**20)
    with pytest.raises(UserError, match=r"bomb.*unpacks to more than 67,108,864 bytes"):
        load_fixture(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.00000000.json.gz", gzip_files.pack(b"{}" * 5_000)[:-9], "not a whole gzip file"),
        ("text.00000000.json.gz", b"{}", "not a whole gzip file"),
        ("plain.json.gz", gzip_files.pack(b"{}"), r"is named NAME\.DIGEST\.json\.gz"),
        (gzip_files.packed_name("latin", b"\xff"), gzip_files.pack(b"\xff"), "not UTF-8"),
        (gzip_files.packed_name("half", b"{"), gzip_files.pack(b"{"), "broken JSON"),
    ],
)
def test_a_broken_file_gets_one_sentence(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_fixture(tmp_path / name)


def test_two_files_of_one_fixture_are_told_instead_of_one_being_picked(tmp_path: Path) -> None:
    write_fixture(tmp_path, _large())
    (tmp_path / "large.json").write_text(dump_fixture(session("x").model_copy(update={"name": "large"})))
    with pytest.raises(UserError, match=r"both hold fixture 'large'; remove the one that is out of date"):
        find_fixture(tmp_path, "large")


def test_a_name_and_either_path_mean_the_same_file(tmp_path: Path) -> None:
    path = write_fixture(tmp_path, _large())
    assert named_fixture("large", tmp_path) == path
    assert named_fixture(str(path), Path()) == path
    assert named_fixture(str(tmp_path / "large.json"), Path()) == path
    with pytest.raises(UserError, match=r"small\.json: no such fixture; there are: large"):
        named_fixture("small", tmp_path)


def test_a_session_long_enough_to_need_compression_goes_through_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = openai_rows()
    for number in range(60):
        arguments = json.dumps({"path": f"src/ledger_{number}.py"})
        call = {"id": f"t{number}", "type": "function", "function": {"name": "write_file", "arguments": arguments}}
        output = "\n".join(f"src/ledger_{number}.py:{line} retries = {line}" for line in range(200))
        rows += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"t{number}", "content": output},
            {"role": "assistant", "content": f"I decided to split ledger_{number} because shard {number}17 is full."},
        ]
    source = jsonl(*rows)
    run = CliRunner().invoke
    done = run(root, ["fixture", "import", str(source), "--name", "long", "--yes", "--max-output", "0"])
    assert done.exit_code == 0, done.output
    assert "stored compressed" in done.stderr
    (stored,) = Path("fixtures").glob("*.json.gz")
    assert load_fixture(stored).messages[6]["content"].count("\n") == 199
    assert run(root, ["fixture", "audit"]).exit_code == 0
    assert "compressed" in run(root, ["fixture", "list"]).output
    assert "185 messages" in run(root, ["fixture", "show", "long"]).output
    assert run(root, ["fixture", "scrub", str(stored), "--yes"]).exit_code == 0
    assert len(list(Path("fixtures").iterdir())) == 1
    done = run(root, ["probe", "propose", "long"])
    assert done.exit_code == 0, done.output
    assert "no such" not in run(root, ["probe", "lint", "long"]).output
    (case,) = load_suite(Path("fixtures"), Path("probes"))
    assert case.fixture.name == "long"
    assert json.loads(run(root, ["run", "--fixtures", "long", "--compare-to", "none", "--format", "json"]).stdout)
