"""The fixture: one recorded session, as stored in `fixtures/<name>.json` or, if large, compressed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from eval_core.base.errors import UserError
from eval_core.base.files import ForeignRecord, digest, json_value, parse, pretty, read_json, write_atomic
from eval_core.base.gzip_files import PACKED_SUFFIX, PLAIN_LIMIT, pack, packed_name, split_name, unpack
from eval_core.base.messages import message_problems
from eval_core.base.strict_json import without_surrogates

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,79}$"
MIN_MESSAGES = 4
TRIGGER = 0.7
"""Agents compress when so much of their window is used."""
STUCK = 5
"""So many compressions in a row that free next to nothing: from there on it is only called again and again."""
ALLOW_FILE = "allow.json"


class Fixture(ForeignRecord):
    """A recorded session and what is needed to compress it again; fields of other programs are kept."""

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    name: Annotated[str, Field(pattern=NAME_PATTERN, description="Equal to the file's name without what follows it.")]
    description: Annotated[str, Field(description="One or two sentences: what happens in the session.")] = ""
    model: Annotated[str, Field(description="The model that the session was recorded with.")] = "unknown"
    context_length: Annotated[int, Field(gt=0, description="That model's context window in tokens.")] = 200_000
    messages: Annotated[list[dict[str, Any]], Field(description="OpenAI chat messages, tool pairs whole.")]
    segments: Annotated[
        list[int],
        Field(description="Exclusive end indexes of earlier segments; a compression happens at each, then at the end."),
    ] = []
    notes: Annotated[str, Field(description="Where the session came from and what was changed in it.")] = ""
    focus_topic: Annotated[
        str | None, Field(description="What the compressor is told to focus on, unless the run names another topic.")
    ] = None
    truncated_to: Annotated[int | None, Field(description="Index at which a longer session was cut.")] = None

    @model_validator(mode="after")
    def _whole(self) -> Fixture:
        problems = []
        if len(self.messages) < MIN_MESSAGES:
            problems.append(
                f"messages: {len(self.messages)} messages are too few to compress; at least {MIN_MESSAGES} are needed"
            )
        problems += message_problems(self.messages)
        previous = 0
        for cut in self.segments:
            if not previous < cut < len(self.messages):
                problems.append(f"segments: {cut} must lie between {previous} and {len(self.messages)}, increasing")
            elif self.messages[cut].get("role") == "tool":
                problems.append(f"segments: {cut} cuts a tool call from its answer")
            previous = cut
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def cuts(self) -> list[int]:
        """The exclusive ends of all segments, the last one being the end of the session."""
        return [*self.segments, len(self.messages)]

    @property
    def digest(self) -> str:
        """The sha256 that identifies the session's content in fingerprints."""
        # A field that is newer than stored baselines counts only where it is used.
        return digest(self.model_dump(mode="json", exclude=None if self.focus_topic else {"focus_topic"}))


def fixture_files(folder: Path) -> list[Path]:
    """Return the fixture files of a folder, plain and compressed; the audit's allow list lies beside them."""
    found = [*folder.glob("*.json"), *folder.glob(f"*{PACKED_SUFFIX}")]
    return sorted(path for path in found if path.name != ALLOW_FILE)


def fixture_name(path: Path) -> str:
    """Return the name of the fixture that a file holds."""
    return split_name(path)[0]


def find_fixtures(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the file of each of these fixtures that is there; two files would leave open which of them is meant."""
    found: dict[str, list[Path]] = {name: [] for name in names}
    for path in fixture_files(folder):
        found.get(fixture_name(path), []).append(path)
    for name, paths in found.items():
        if len(paths) > 1:
            files = " and ".join(path.name for path in paths)
            raise UserError(f"{folder}: {files} both hold fixture {name!r}; remove the one that is out of date")
    return {name: paths[0] for name, paths in found.items() if paths}


def find_fixture(folder: Path, name: str) -> Path | None:
    """Return the one file of a fixture, or None."""
    return find_fixtures(folder, [name]).get(name)


def named_fixture(given: str, folder: Path) -> Path:
    """Return the file that a user means by a fixture's name or path."""
    if given.endswith((".json", PACKED_SUFFIX)):
        path = Path(given)
        return path if path.exists() else find_fixture(path.parent, fixture_name(path)) or path
    found = find_fixture(folder, given)
    if found is None:
        known = ", ".join(sorted({fixture_name(path) for path in fixture_files(folder)}))
        raise UserError(f"{folder / given}.json: no such fixture; there are: {known or 'none'}")
    return found


def load_fixture(path: Path) -> Fixture:
    """Read and check one fixture file, plain or compressed.

    Logs do hold halves of characters. They are replaced: no compressor could return them, and no report hold them.
    """
    name, packed = split_name(path)
    fixture = parse(Fixture, without_surrogates(_packed_json(path) if packed else read_json(path)), str(path))
    if name != fixture.name:
        raise UserError(f"{path}: name: {fixture.name!r} should equal the file's name, {name!r}")
    return fixture


def _packed_json(path: Path) -> Any:
    try:
        return json_value(unpack(path).decode("utf-8"), path)
    except UnicodeDecodeError as exc:
        raise UserError(f"{path}: not UTF-8 (byte {exc.start}); save the file as UTF-8") from None


def dump_fixture(fixture: Fixture) -> str:
    """Return the file text of a fixture; a reference to its schema, which editors follow, is kept."""
    body = fixture.model_dump(mode="json", exclude_none=True) | fixture.unknown
    if not fixture.segments:
        body.pop("segments")
    return pretty({"$schema": fixture.json_schema, **body} if fixture.json_schema else body)


def write_fixture(folder: Path, fixture: Fixture) -> Path:
    """Store a fixture in the form that its size asks for, in place of any earlier one of that name."""
    text = dump_fixture(fixture).encode("utf-8", "backslashreplace")
    earlier = [path for path in fixture_files(folder) if fixture_name(path) == fixture.name]
    if len(text) < PLAIN_LIMIT:
        target, content = folder / f"{fixture.name}.json", text
    else:
        target, content = folder / packed_name(fixture.name, text), pack(text)
    write_atomic(target, content)
    for path in earlier:
        if path != target:
            path.unlink()
    return target
