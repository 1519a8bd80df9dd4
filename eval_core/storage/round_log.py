"""Rounds of a fixture-run on disk, one line each, until the run is finished: a killed run goes on after its last."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.compression import ModelRequest, ModelUse, Round, Step


@dataclass(frozen=True)
class RoundFile:
    """The rounds of one fixture-run; the folder's identity says what compressor and session they are of."""

    path: Path

    def read(self) -> list[Round]:
        """Return the rounds that are there; a torn line and what follows it are made again."""
        found: list[Round] = []
        lines = self.path.read_text(encoding="utf-8").split("\n")[:-1] if self.path.exists() else []
        for line in lines:
            try:
                found.append(_round(parse_json(line)))
            except (BadJson, ValueError, TypeError, KeyError):
                break
        if len(found) < len(lines) or (lines and not self.path.read_bytes().endswith(b"\n")):
            self.path.write_text("".join(f"{line}\n" for line in lines[: len(found)]), encoding="utf-8")
        return found

    def add(self, done: Round) -> None:
        """Append one, on disk before the next begins."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(done), default=ModelUse.model_dump) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def remove(self) -> None:
        """Remove what a finished run no longer needs."""
        self.path.unlink(missing_ok=True)


def _round(body: dict[str, Any]) -> Round:
    step, requests = body["step"], body["requests"]
    return Round(
        Step(**{**step, "use": ModelUse.model_validate(step["use"])}),
        None
        if requests is None
        else tuple(
            ModelRequest(tuple(item["messages"]), item["step"], item["reply"], tuple(item["settings"]))
            for item in requests
        ),
        body["state"],
    )
