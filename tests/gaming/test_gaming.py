"""Compressors that try to win without compressing better, end to end: the shipped suite, the real sandbox."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import small

from bot.demo.journey import package_source, write_tree
from eval_core.comparing.compare import ReportData
from eval_core.comparing.overfitting import bank_overfitting
from eval_core.compressors.strategies import STRATEGIES
from eval_core.domain.case import load_suite
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import load_bank
from eval_core.facts.fact_text import infer_kind
from eval_core.storage.results import read_measurement

pytestmark = pytest.mark.long
PLAN = ("--runs", "1", "--set", "compress_runs=3", "--quiet")
TARGET = "pythonpath: [.]\ncompressor: {name}\nllm: none\n"
HONEST = "agent.context_compressor:ContextCompressor"
CARRYING = ("gaming:Carrying", "gaming:CarryingLittle", "gaming:CarryingWords")
REFUSED = ("gaming:HidingInParts", "gaming:HidingInImages")
DEALT_WITH = ("gaming:HidingInFields", "gaming:DroppingAndDrawing")
LOOSE = ("gaming:Listing", "gaming:Commenting", "gaming:Aside")
HOARDING = ("gaming:HoardingMore", "gaming:HoardingHalf", "gaming:DroppingLittle")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped fixtures and banks, the reference as somebody's own compressor, and the tricks beside it."""
    root = tmp_path_factory.mktemp("gaming")
    for folder in ("fixtures", "probes"):
        shutil.copytree(small.REPOSITORY / folder, root / folder)
    write_tree(package_source(small.REPOSITORY / "eval_core" / "compressors", "agent"), root)
    shutil.copy(Path(__file__).with_name("gaming.py"), root / "gaming.py")
    banks = [load_bank(path) for path in sorted((root / "probes").glob("*.probes.json"))]
    facts = [[value for probe in bank.probes for fact in probe.required for value in fact.values] for bank in banks]
    carried = [
        {"facts": values, "words": [value for value in values if infer_kind(value) in ("text", "number")]}
        for values in facts
    ]
    small.write(root / "banks.json", json.dumps(carried))
    for name in (HONEST, *CARRYING, *LOOSE, *HOARDING, *REFUSED, *DEALT_WITH):
        small.write(root / f"{name.split(':')[1]}.yml", TARGET.format(name=name))
    return root


class Arena:
    """Measures each compressor once and compares with the reference."""

    def __init__(self, root: Path, cli: small.Cli) -> None:
        self.root, self.cli = root, cli
        if not (root / "results/ContextCompressor").exists():
            self.run("ContextCompressor", "none")

    def run(self, name: str, compare_to: str = "results/ContextCompressor") -> small.Ran:
        done = self.cli("run", "--target", f"{name}.yml", *PLAN, "--label", name, "--compare-to", compare_to)
        assert done.code == 0, done.err
        return done

    def verdict(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads((self.root / "results" / name / "verdict.json").read_text())
        return body

    def texts(self, name: str) -> str:
        folder = self.root / "results" / name
        return (folder / "report.md").read_text() + (folder / "report.html").read_text()


@pytest.fixture
def arena(suite: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch) -> Arena:
    monkeypatch.chdir(suite)
    return Arena(suite, cli)


@pytest.mark.parametrize("trick", CARRYING)
def test_a_compressor_that_carries_the_public_probes_is_called_suspicious(arena: Arena, trick: str) -> None:
    name = trick.split(":")[1]
    ran = arena.run(name)
    measured = read_measurement(arena.root / "results" / name)
    assert measured.provenance.sandbox.startswith(("bwrap", "docker"))
    assert "Suspicious: of the facts that the baseline loses" in " ".join(ran.out.split())
    assert arena.texts(name).count("This is what a compressor that knows the public probes looks like") >= 2
    assert "Merge when" not in arena.texts(name) + ran.out


@pytest.mark.parametrize("trick", HOARDING)
def test_a_compressor_that_hoards_is_never_an_improvement(arena: Arena, trick: str) -> None:
    name = trick.split(":")[1]
    arena.run(name)
    base = read_measurement(arena.root / "results/ContextCompressor")
    measured = read_measurement(arena.root / "results" / name)
    assert _removed(base) > 0.6
    assert 0 < _removed(measured) < 0.45
    assert all(run.ok for runs in measured.fixtures.values() for run in runs)
    verdict = arena.verdict(name)
    assert verdict["kind"] != "improved", verdict["headline"]
    assert not verdict["headline"].startswith("Improved"), verdict["headline"]


@pytest.mark.parametrize("trick", LOOSE)
def test_facts_that_no_sentence_carries_are_no_improvement(arena: Arena, trick: str) -> None:
    name = trick.split(":")[1]
    arena.run(name)
    verdict = arena.verdict(name)
    assert verdict["kind"] == "regressed", verdict["headline"]
    assert "only where no sentence carries them" in verdict["headline"]


@pytest.mark.parametrize("trick", REFUSED)
def test_a_session_in_parts_that_nobody_counts_is_refused(arena: Arena, trick: str) -> None:
    name = trick.split(":")[1]
    arena.run(name)
    assert arena.verdict(name)["kind"] == "broken"
    assert "a part that is not text" in arena.texts(name)


def test_a_session_in_fields_that_nobody_reads_is_dropped(arena: Arena) -> None:
    arena.run("HidingInFields")
    base, measured = (
        read_measurement(arena.root / "results" / name) for name in ("ContextCompressor", "HidingInFields")
    )
    assert arena.verdict("HidingInFields")["kind"] == "no_detectable_change"
    assert [run.messages for runs in measured.fixtures.values() for run in runs] == [
        run.messages for runs in base.fixtures.values() for run in runs
    ]
    stored = [
        sum(p.stat().st_size for p in (arena.root / "results" / n).glob("*-run-*.json"))
        for n in ("ContextCompressor", "HidingInFields")
    ]
    assert stored[1] < 1.1 * stored[0]


def test_a_number_drawn_in_each_run_does_not_hide_what_every_run_loses(arena: Arena) -> None:
    arena.run("DroppingAndDrawing")
    verdict = arena.verdict("DroppingAndDrawing")
    assert verdict["kind"] == "regressed", verdict["headline"]
    assert "#all-hands" in [fact["name"] for fact in verdict["facts"] if fact["clear"]]


def test_a_compressor_that_carries_the_probes_needs_no_baseline_to_be_noticed(arena: Arena) -> None:
    arena.run("Carrying", "none") if not (arena.root / "results/Carrying").exists() else None
    assert bank_overfitting(None, read_measurement(arena.root / "results/Carrying")) is not None


def _removed(measurement: Measurement) -> float:
    runs = [run for runs in measurement.fixtures.values() for run in runs]
    return 1 - sum(run.tokens_after for run in runs) / sum(run.tokens_before for run in runs)


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measurement]:
    cases = load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes")
    return {name: small.measure(cases, tmp_path_factory.mktemp(name), name) for name in STRATEGIES}


def test_no_built_in_compressor_is_suspicious_whatever_it_replaces(built_in: dict[str, Measurement]) -> None:
    for name, measurement in built_in.items():
        assert ReportData(measurement).overfitting is None, name
        for other, base in built_in.items():
            assert bank_overfitting(base, measurement) is None, (other, name)
