"""Small sessions with probe banks: a dozen messages each, enough to compress, quick to run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eval_core.base.messages import Message
from eval_core.domain.case import Case
from eval_core.domain.fixture import Fixture, dump_fixture
from eval_core.domain.measurement import Controls, Measurement
from eval_core.domain.probe import Probe, ProbeBank, dump_bank
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.storage.results import ResultsFolder

REPOSITORY = Path(__file__).parent.parent

SYSTEM = {"role": "system", "content": "You are a careful engineer. Answer briefly."}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(*wanted: tuple[str, str, dict[str, Any]]) -> Message:
    """Build an assistant message that calls tools: (id, tool, arguments) each."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for name, tool, arguments in wanted
        ],
    }


def result(name: str, output: str, **more: Any) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": json.dumps({"output": output, **more})}


def bulk(subject: str, lines: int = 40) -> str:
    """Return output that nobody needs: what a compression is for."""
    return "\n".join(
        f"looked at the {subject} and saw nothing of note there" + " again" * (n % 7) for n in range(lines)
    )


def debug_fixture() -> Fixture:
    """A bug hunt: an error, a file that is patched, a decision, a number of tests."""
    return Fixture(
        name="small-debug",
        description="A refused login is traced to a cache and mended.",
        messages=[
            SYSTEM,
            user("The login endpoint /api/auth/login answers 401 since release v2.4.1. Find out why. Leave billing/."),
            calls(("c1", "terminal", {"command": "tail -n 60 auth.log"})),
            result("c1", bulk("access log") + "\nERROR 401 TokenStale: session_store.py line 88 read an expired token"),
            calls(
                ("c2", "read_file", {"path": "src/session_store.py"}),
                ("c3", "read_file", {"path": "src/redis_client.py"}),
            ),
            result("c2", bulk("session store") + "\nTOKEN_TTL = 900"),
            result("c3", bulk("redis client") + "\nPOOL_SIZE = 4"),
            say("I decided to switch to a pooled connection because one socket is shared by 12 workers."),
            calls(
                (
                    "c4",
                    "patch",
                    {"path": "src/redis_client.py", "old_string": "POOL_SIZE = 4", "new_string": "POOL_SIZE = 32"},
                )
            ),
            result("c4", "patched", success=True),
            calls(("c5", "terminal", {"command": "pytest -q tests/test_auth.py"})),
            result("c5", bulk("test run", 10) + "\n41 passed, 1 failed: test_refresh_window", exit_code=1),
            user("Good. What is left?"),
            say("Next I will mend test_refresh_window and open pull request #318."),
            calls(("c6", "terminal", {"command": "git status --short"})),
            result("c6", "M src/redis_client.py"),
            say("The tree holds one change."),
        ],
    )


def debug_bank() -> ProbeBank:
    return ProbeBank.model_validate(
        {
            "fixture": "small-debug",
            "probes": [
                {
                    "id": "recall-error",
                    "type": "recall",
                    "question": "Which error code did the login endpoint answer, and since which release?",
                    "expected_facts": ["401", "v2.4.1"],
                },
                {
                    "id": "artifact-file",
                    "type": "artifact",
                    "question": "Which file was patched, and what is the pool size now?",
                    "expected_facts": [
                        {"fact": "src/redis_client.py", "kind": "path"},
                        "POOL_SIZE = 32",
                        {"not": "POOL_SIZE = 4"},
                    ],
                },
                {
                    "id": "decision-pool",
                    "type": "decision",
                    "question": "What was decided about the connection, and why?",
                    "expected_facts": ["pooled connection", "12 workers"],
                },
                {
                    "id": "continuation-left",
                    "type": "continuation",
                    "question": "Which failing test is left to mend, and which pull request comes next?",
                    "expected_facts": ["test_refresh_window", "#318"],
                },
            ],
        }
    )


def plan_fixture() -> Fixture:
    """A schedule that the user changes half-way: superseded values, parallel calls, a refusal."""
    return Fixture(
        name="small-plan",
        description="A nightly job is scheduled, moved and refused once.",
        messages=[
            SYSTEM,
            user("Schedule the export nightly at 02:00 with cron `0 2 * * *` into the bucket reports-eu."),
            calls(("p1", "terminal", {"command": "scheduler list"})),
            result("p1", bulk("schedule")),
            calls(("p2", "terminal", {"command": "scheduler add export --cron '0 2 * * *'"})),
            result("p2", bulk("quota", 12) + "\ncreated job 7f3e9a21c4b8 for export"),
            user("Change of plan: the backup runs then. Use `30 4 * * *` instead, bucket reports-us."),
            calls(
                ("p3", "terminal", {"command": "scheduler set 7f3e9a21c4b8 --cron '30 4 * * *'"}),
                ("p4", "terminal", {"command": "bucket check reports-us"}),
            ),
            result("p3", "updated job 7f3e9a21c4b8"),
            result("p4", bulk("bucket", 12) + "\nError E_QUOTA_FULL: reports-us has 0 bytes left", exit_code=3),
            say("The bucket reports-us is refused with E_QUOTA_FULL; I keep the job paused until quota is raised."),
            user("Fine, ask ops for 50 GB."),
            calls(("p5", "write_file", {"path": "notes/quota.md", "content": "Ask ops for 50 GB in reports-us."})),
            result("p5", "written", success=True),
            say("Written to notes/quota.md."),
            user("Thanks."),
            say("You are welcome."),
        ],
    )


def plan_bank() -> ProbeBank:
    return ProbeBank.model_validate(
        {
            "fixture": "small-plan",
            "probes": [
                {
                    "id": "recall-refusal",
                    "type": "recall",
                    "question": "With which error was the bucket refused?",
                    "expected_facts": [{"fact": "E_QUOTA_FULL", "kind": "identifier", "evidence": [9, 10]}],
                },
                {
                    "id": "artifact-job",
                    "type": "artifact",
                    "question": "What is the id of the export job?",
                    "expected_facts": [{"fact": "7f3e9a21c4b8", "kind": "hash"}],
                },
                {
                    "id": "decision-time",
                    "type": "decision",
                    "question": "At which cron time and into which bucket does the export run after the change?",
                    "expected_facts": [{"fact": "30 4 * * *", "kind": "cron"}, "reports-us", {"not": "0 2 * * *"}],
                },
                {
                    "id": "continuation-quota",
                    "type": "continuation",
                    "question": "How much quota must ops be asked for?",
                    "expected_facts": [{"any": ["50 GB", "50GB"]}],
                },
            ],
        }
    )


def chained_fixture() -> Fixture:
    """Two compressions in one session: what the first summary holds must outlive the second."""
    first = [
        SYSTEM,
        user("Move the orders table to Postgres. The ticket is MIG-77."),
        calls(("m1", "terminal", {"command": "psql -c '\\dt'"})),
        result("m1", bulk("tables")),
        say("I decided to copy in batches of 5000 rows because locks must stay short."),
        calls(("m2", "write_file", {"path": "migrations/0004_orders.sql", "content": "create table orders_new ();"})),
        result("m2", bulk("disk", 20), success=True),
        say("The migration file is written."),
        calls(("m3", "terminal", {"command": "date"})),
        result("m3", "tuesday"),
        say("It is early."),
        user("Go on."),
    ]
    second = [
        calls(("m4", "terminal", {"command": "python copy.py --batch 5000"})),
        result("m4", bulk("batches") + "\ncopied 184220 rows, 3 skipped"),
        say("Next: compare checksums, then drop orders_old."),
        calls(("m5", "terminal", {"command": "python checksum.py"})),
        result("m5", bulk("checksums") + "\nError ChecksumMismatch in shard 9", exit_code=1),
        user("Stop there for today."),
        say("Stopped."),
        user("Good."),
        say("Until tomorrow."),
        user("Bye."),
    ]
    return Fixture(
        name="small-chained",
        description="A migration with two compressions.",
        messages=[*first, *second],
        segments=[len(first)],
    )


def chained_bank() -> ProbeBank:
    return ProbeBank.model_validate(
        {
            "fixture": "small-chained",
            "probes": [
                {
                    "id": "recall-ticket",
                    "type": "recall",
                    "question": "Which ticket asks to move the orders table?",
                    "expected_facts": [{"fact": "MIG-77", "kind": "identifier"}],
                },
                {
                    "id": "artifact-migration",
                    "type": "artifact",
                    "question": "Which migration file was written?",
                    "expected_facts": [{"fact": "migrations/0004_orders.sql", "kind": "path"}],
                },
                {
                    "id": "decision-batches",
                    "type": "decision",
                    "question": "In batches of how many rows is copied, and why?",
                    "expected_facts": ["5000", "locks must stay short"],
                },
                {
                    "id": "continuation-mismatch",
                    "type": "continuation",
                    "question": "Which checksum error in which shard must be looked at next?",
                    "expected_facts": ["ChecksumMismatch", "shard 9"],
                },
            ],
        }
    )


def cases() -> list[Case]:
    """Return the three small cases, sorted by name as a suite is."""
    return [
        Case(chained_fixture(), chained_bank()),
        Case(debug_fixture(), debug_bank()),
        Case(plan_fixture(), plan_bank()),
    ]


def write_suite(root: Path, wanted: Iterable[Case] | None = None) -> Path:
    """Store cases where the commands look for them."""
    for case in cases() if wanted is None else wanted:
        write(root / "fixtures" / f"{case.fixture.name}.json", dump_fixture(case.fixture))
        write(root / "probes" / f"{case.fixture.name}.probes.json", dump_bank(case.bank))
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def edit_json(path: Path, change: Any) -> None:
    """Load a JSON file, let a function change it, store it."""
    body = json.loads(path.read_text(encoding="utf-8"))
    change(body)
    path.write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")


def probe(expected: list[Any], question: str = "What is it?", kind: str = "recall") -> Probe:
    return Probe.model_validate({"id": "p", "type": kind, "question": question, "expected_facts": expected})


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *arguments: str) -> Ran: ...


def measure(
    cases: list[Case],
    folder: Path,
    strategy: str | BuiltinSubject,
    runs: int = 1,
    compress_runs: int = 1,
    controls: dict[str, Controls] | None = None,
) -> Measurement:
    """Measure a reference compressor offline."""
    subject = BuiltinSubject(strategy) if isinstance(strategy, str) else strategy
    roles = Roles(subject, ExtractiveAnswerer(), FactJudge(), offline=True)
    session = MeasuringSession(
        cases,
        roles,
        make_fingerprint(cases, None),
        ResultsFolder(folder),
        subject.strategy,
        runs,
        compress_runs,
        tree=folder,
        known_controls=controls or {},
    )
    return asyncio.run(session.measure())
