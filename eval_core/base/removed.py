"""What older versions had: each flag, command and configuration key that is gone, and what to do now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLAGS: Mapping[str, str] = {
    "--batch": "It submitted calls to a provider's batch API; leave it out, as prompt caching saves about as much.",
    "--answer-model": "Set models.answer in the configuration, and leave out --model, which names all three.",
    "--api-base": "Set models.api_base in the configuration, or for one run with --set models.api_base=URL.",
    "--baseline": "Use --compare-to rerun, which measures the base in the same run.",
    "--compress-runs": "Set compress_runs in the configuration, or for one run with --set compress_runs=5.",
    "--concurrency": "Set concurrency in the configuration, or for one run with --set concurrency=8.",
    "--deadline": "Set deadline_minutes in the configuration, or for one run with --set deadline_minutes=30.",
    "--details": "Use `compression-eval report --details`, which prints the tables.",
    "--max-tokens-total": "Set max_tokens_total in the configuration, or for one run with --set.",
    "--price": "Set models.prices in the configuration, or --set 'models.prices={NAME: {input: 3, output: 15}}'.",
    "--seed": "It seeded what is random; leave it out, each run has a seed of its own.",
    "--splits": "It set how often a baseline was split; leave it out, 200 times is enough.",
    "--stop": "Set stop in the configuration, or for one run with --set stop=full.",
    "--trust-judge": "Set models.trust_judge in the configuration, or for one run with --set models.trust_judge=true.",
    "--drift-sample": "It graded stored answers again; leave it out, a control run of the base shows the same.",
    "--regrade-baseline": "It graded a baseline's answers again; use --compare-to rerun, or renew the baseline.",
    "--regraded": "It told the judge's share of the noise; see the line “Repeats” of `judge calibrate`.",
}
COMMANDS: Mapping[str, str] = {
    "bot record": "It stored GitHub's responses for our own tests; there is nothing to do now.",
    "bot remind": "It failed for an old baseline; delete the job `remind` and its `schedule` from the workflow.",
    "judge regrade": "It graded stored answers again; use `baseline update`, or `run --compare-to rerun`.",
}

KEYS: Mapping[str, str] = {
    "models.questions_per_call": "It let several probes share a call; delete it, every probe is a call of its own.",
    "bot.remind_after_days": "It set the age for `bot remind`; delete it, the comment says how old a baseline is.",
}


def removed_keys(content: Any) -> list[str]:
    """Return a sentence for each key of a configuration that older versions read."""
    return [f"{key} was removed. {said}" for key, said in KEYS.items() if _has(content, key.split("."))]


def _has(content: Any, path: list[str]) -> bool:
    if not isinstance(content, dict) or path[0] not in content:
        return False
    return len(path) == 1 or _has(content[path[0]], path[1:])
