"""What a results folder is about: a resumed run must be of the same thing as the one it completes."""

from __future__ import annotations

from eval_core.compare.fingerprint import Fingerprint, differences
from eval_core.errors import UserError
from eval_core.files import parse, pretty, read_json
from eval_core.run.record import Record
from eval_core.run.store import ResultsFolder

__all__ = ["Claim", "claim_folder"]

_FILE = "session.json"


class Claim(Record):
    """Everything that shapes a fixture-run, besides its number."""

    target: str
    source_sha: str | None
    seed: int
    fingerprint: Fingerprint


def claim_folder(folder: ResultsFolder, claim: Claim, *, resume: bool) -> None:
    """Write the claim down; refuse to mix two different measurements in one folder."""
    path = folder.path / _FILE
    if resume and path.exists():
        before = parse(Claim, read_json(path), str(path))
        names = ("target", "source_sha", "seed")
        changed = [name for name in names if getattr(before, name) != getattr(claim, name)]
        changed += [item.field for item in differences(before.fingerprint, claim.fingerprint)]
        if changed:
            raise UserError(
                f"{folder.path}: --resume cannot complete this run: {', '.join(changed)} changed since it began; "
                "use the same options, or start anew with another --label"
            )
    folder.write(_FILE, pretty(claim.model_dump(mode="json")))
