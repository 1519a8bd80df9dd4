"""What `doctor` finds out: not what is configured, but whether it works, by doing it once."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from eval_core.base.config import CONFIG_FILE
from eval_core.base.errors import UserError
from eval_core.base.messages import Message, render
from eval_core.base.numbers import counted
from eval_core.base.tokens import count_messages
from eval_core.domain.case import Case, load_suite
from eval_core.domain.compression import Compression, Outcome, both_ends
from eval_core.domain.fixture import Fixture, fixture_files
from eval_core.domain.target import Builtin, TargetSpec
from eval_core.measuring.options import RunOptions
from eval_core.measuring.wiring import make_subject
from eval_core.sandbox.isolation import detect
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import Target
from eval_core.storage.baselines import list_baselines, stale_fields

State = Literal["ok", "warn", "missing", "broken"]
WORKFLOW = ".github/workflows/compression-eval.yml"
_SHORT = 40_000
"""Tokens of a session that a compressor is tried on; a longer one would take more than seconds."""
_PATIENCE = 60.0
_SHOWN = 200
_SAID = 800
_TURNS = 24
_PLAIN = 6
"""Exchanges without tools at the end, where many compressors keep a few messages as they are."""

_INIT = "`compression-eval init` writes it; where this program was installed as a package, with --action OWNER/REPO@SHA"
_ADVICE = {
    Outcome.SETUP_ERROR: "compare compressor, pythonpath, init and method with the code; see docs/targets/README.md",
    Outcome.NOT_EXERCISED: "it must call ${LLM_BASE_URL}; if it works by rules, say `llm: none` under target",
    Outcome.NOT_COMPRESSED: "a short session may lie below its threshold: if it has an option to force it, set it",
}


_COMMAND_ADVICE = {
    **_ADVICE,
    Outcome.SETUP_ERROR: "`compression-eval target check` tests it against the protocol; see docs/targets/commands.md",
    Outcome.TARGET_ERROR: "`compression-eval target check` tests it against the protocol; see docs/targets/commands.md",
}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was looked at."""

    state: State
    what: str
    advice: str = ""


def diagnose(options: RunOptions, config: Path | None = None) -> Iterator[Diagnosis]:
    """Try everything that a run needs, the compressor included; nothing is paid for."""
    cases: list[Case] = []
    parts: tuple[Callable[[], Iterator[Diagnosis]], ...] = (
        lambda: _configuration(options, config),
        lambda: _suite(options, cases),
        lambda: _baselines(options, cases),
        lambda: _sandbox(options),
        lambda: _target(options, [case.fixture for case in cases]),
        lambda: _keys(options),
        lambda: _budget(options, cases),
        lambda: _github(options),
    )
    for part in parts:
        try:
            yield from part()
        except UserError as exc:
            yield Diagnosis("broken", str(exc))


def _configuration(options: RunOptions, config: Path | None) -> Iterator[Diagnosis]:
    path = config or options.root / CONFIG_FILE
    if path.exists():
        yield Diagnosis("ok", f"configuration: {path}")
    else:
        yield Diagnosis("missing", f"configuration: no {path}", "`compression-eval init` writes one")


def _suite(options: RunOptions, cases: list[Case]) -> Iterator[Diagnosis]:
    """Load every fixture with its bank; the good ones are left in `cases`."""
    fixtures, probes = options.root / options.settings.fixtures, options.root / options.settings.probes
    names = [path.stem for path in fixture_files(fixtures)] if fixtures.is_dir() else []
    if not names:
        yield Diagnosis(
            "missing", f"{fixtures}: no fixture", "`compression-eval fixture import SESSION` makes one from a log"
        )
        return
    for name in names:
        try:
            cases += load_suite(fixtures, probes, [name])
        except UserError as exc:
            yield Diagnosis("broken", str(exc))
    questions = sum(len(case.bank.probes) for case in cases)
    if cases:
        yield Diagnosis("ok", f"suite: {counted(len(cases), 'fixture')} in {fixtures}, {counted(questions, 'probe')}")
    if drafts := sum(probe.draft for case in cases for probe in case.bank.probes):
        yield Diagnosis("warn", f"{probes}: {drafts} probes are drafts", 'keep the good ones and remove their "draft"')


def _baselines(options: RunOptions, cases: list[Case]) -> Iterator[Diagnosis]:
    folder = options.root / options.settings.baselines
    paths, watched = list_baselines(folder), options.digest_of(options.root)
    if not paths:
        advice = "`compression-eval baseline update` makes one; until then the base is measured beside each change"
        yield Diagnosis("missing", f"{folder}: no baseline", advice)
    for path in paths:
        if stale := stale_fields(path, cases, watched):
            advice = f"`compression-eval baseline update {path.stem}` measures it again"
            yield Diagnosis("warn", f"{path}: out of date: {', '.join(stale[:3])} changed", advice)
        else:
            yield Diagnosis("ok", f"baseline: {path}")


def _sandbox(options: RunOptions) -> Iterator[Diagnosis]:
    choice = detect(options.sandbox)
    if not choice.confined:
        yield Diagnosis("warn", f"sandbox: {choice.in_words}", choice.warning)
    elif choice.level.startswith("bwrap"):
        yield Diagnosis("ok", f"sandbox: {choice.in_words}")
    else:
        yield Diagnosis("ok", f"sandbox: {choice.in_words}", "bubblewrap starts faster: apt-get install bubblewrap")


def _target(options: RunOptions, fixtures: list[Fixture]) -> Iterator[Diagnosis]:
    """Import the compressor and compress one short session with it."""
    target = options.load_target()
    if isinstance(target.spec, Builtin):
        yield Diagnosis(
            "warn",
            f"target: builtin:{target.spec.name} would be measured: the built-in reference, not your compressor",
            "name yours under `target:` in .compression-eval.yml (`compression-eval init` finds it), or with --target",
        )
    else:
        yield from _other_program(target.spec)
    lengths = {fixture.name: count_messages(fixture.messages) for fixture in fixtures}
    short = [fixture for fixture in fixtures if lengths[fixture.name] <= _SHORT]
    session = min(short, key=lambda fixture: lengths[fixture.name]) if short else short_session()
    began = time.monotonic()
    done = _tried(options, target, session)
    is_command = isinstance(target.spec, TargetSpec) and target.spec.command is not None
    if isinstance(target.spec, TargetSpec):
        # Said after the try: a class that is misspelt is not ok.
        state: State = "ok" if done.outcome in (Outcome.OK, Outcome.NOT_COMPRESSED) else "warn"
        yield Diagnosis(state, f"target: {target.spec.name} {_surroundings(target)}")
    yield _told(done, session, time.monotonic() - began, _COMMAND_ADVICE if is_command else _ADVICE)
    for note in done.notes:
        yield Diagnosis("warn", f"target: {note}")


def _other_program(spec: TargetSpec) -> Iterator[Diagnosis]:
    """Tell where the user's shell finds another program than the sandbox does, which has its own search path."""
    named = spec.command[0] if spec.command else "/"
    found = None if "/" in named else shutil.which(named)
    own = [Path(spec.runtime, "bin", named), Path(spec.runtime, "node_modules/.bin", named)] if spec.runtime else []
    if found is None or any(path.exists() for path in own):
        return
    if not any(Path(found).is_relative_to(folder) for folder in ("/usr", "/bin", "/sbin")):
        yield Diagnosis(
            "warn",
            f"target.command: {named} is {found} for you, which the sandbox does not show: it looks in /usr",
            f"to use yours, add `runtime: {Path(found).parent.parent}` under target (the folder above its bin); where "
            "others run it too, install it there or below /usr",
        )


def _surroundings(target: Target) -> str:
    """Say where a target's code is and what it is run with."""
    spec = target.spec
    assert isinstance(spec, TargetSpec)
    if spec.command is None:
        python = spec.python or "the evaluator's own Python"
        return f"in {target.tree}, with {python}"
    return f"in {spec.directory}, a command" + (f", with {spec.runtime}" if spec.runtime else "")


def _tried(options: RunOptions, target: Target, session: Fixture) -> Compression:
    """Compress offline, once, within a minute."""
    if not isinstance(target.spec, Builtin):
        seconds = min(target.spec.timeout_s, _PATIENCE)
        target = replace(target, spec=target.spec.model_copy(update={"timeout_s": seconds}))
    subject, _ = make_subject(options, target)
    if isinstance(subject, ProcessSubject):
        subject = replace(subject, retries=0)
    return asyncio.run(subject.compress(session, run=0, seed=options.seed, focus_topic=options.topic))


def _told(done: Compression, session: Fixture, seconds: float, advised: Mapping[Outcome, str]) -> Diagnosis:
    if done.outcome in (Outcome.OK, Outcome.NOT_COMPRESSED):
        before, after = count_messages(session.messages), done.steps[-1].tokens_after
        text = _plain(render(done.state))
        calls = f", offline model called {done.use.calls} x" if done.use.calls else ""
        what = (
            f"{session.name}: {len(session.messages)} messages, {before:,} tokens became {len(done.state)} messages, "
            f"{after:,} tokens, in {seconds:.1f} s{calls}"
        )
        back = f"what came back: {text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}"
        if done.outcome is Outcome.OK:
            return Diagnosis("ok", f"compressed {what}", back)
        return Diagnosis("warn", f"not compressed: {what}", advised[done.outcome])
    said = both_ends(_plain(done.output), _SAID)
    advice = "; ".join(part for part in (advised.get(done.outcome, ""), f"it printed: {said}" if said else "") if part)
    return Diagnosis("broken", f"target: {done.outcome}: {_plain(done.detail)}", advice)


def _plain(text: str) -> str:
    """Return text of the compressor's on one line, without what a terminal would obey."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _keys(options: RunOptions) -> Iterator[Diagnosis]:
    from eval_core.models.credentials import require_keys

    models = options.models
    if models is None:
        advice = "set models in .compression-eval.yml, COMPRESSION_EVAL_MODEL or --model to use some"
        yield Diagnosis("ok", "models: none, everything runs offline and a label costs nothing", advice)
        return
    yield Diagnosis("ok", f"models: compressor {models.compressor}, answer {models.answer}, judge {models.judge}")
    require_keys(models)
    yield Diagnosis("ok", "model keys: set")


def _budget(options: RunOptions, cases: list[Case]) -> Iterator[Diagnosis]:
    """Say what one label costs, and hold the budget against it."""
    if options.models is None or not cases:
        return
    from eval_core.measuring.cost import price_of_one_label

    price = price_of_one_label(replace(options, names=tuple(case.fixture.name for case in cases)))
    if price is None:
        return
    budget, usd = price.budget_usd, price.total.cached_cost_usd
    if usd is None:
        unknown = ", ".join(price.unpriced)
        advice = "give it under models.prices (dollars per million tokens)"
        yield Diagnosis("broken", f"price of {unknown}: unknown, so the budget of ${budget:g} cannot be kept", advice)
    elif usd > budget:
        advice = "raise budget_usd, or run fewer fixtures or runs; a run that stops early can be resumed"
        yield Diagnosis("warn", f"one label: {price}", advice)
    else:
        yield Diagnosis("ok", f"one label: {price}; the budget of ${budget:g} covers it")
    for note in price.notes:
        yield Diagnosis("warn", note)


def _github(options: RunOptions) -> Iterator[Diagnosis]:
    """Look at what the repository says about the bot; settings on GitHub cannot be read from here."""
    if not (options.root / ".git").exists():
        return
    path, label = options.root / WORKFLOW, options.settings.bot.label
    if not path.is_file():
        yield Diagnosis("missing", f"{path}: no workflow, so no bot", _INIT)
    elif label not in path.read_text(encoding="utf-8", errors="replace"):
        advice = f"the workflow starts on another label than bot.label ({label}): name it in both"
        yield Diagnosis("broken", f"{path}: does not name the label {label}", advice)
    else:
        yield Diagnosis("ok", f"workflow: {path}, label {label}")


def short_session() -> Fixture:
    """Return a session that every compressor can shorten: some file reading, some decisions, a bug that is found."""
    messages: list[Message] = [
        {"role": "system", "content": "You are a coding agent. Answer briefly."},
        {"role": "user", "content": "The nightly export fails since Tuesday. Find out why and fix it."},
        {"role": "assistant", "content": "I read the parts of the export one after the other."},
        {"role": "user", "content": "Good, go on."},
    ]
    for turn in range(_TURNS):
        call: dict[str, Any] = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "read_file", "arguments": f'{{"path": "export/part_{turn}.py"}}'},
        }
        lines = "\n".join(f"{number:3}  row_{turn}_{number} = load(part={turn}, row={number})" for number in range(40))
        messages += [
            {"role": "assistant", "content": f"I look at part {turn}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": lines},
            {"role": "assistant", "content": f"Part {turn} is fine; we decided to check the next one."},
            {"role": "user", "content": f"Go on after part {turn}."},
        ]
    for number in range(_PLAIN):
        messages += [
            {"role": "assistant", "content": f"Found it: export/part_{number}.py opens its file without a timeout."},
            {"role": "user", "content": f"Set it to {30 + number} seconds there."},
        ]
    messages.append({"role": "assistant", "content": "Done: the timeouts are set and the export runs again."})
    return Fixture(name="short-session", messages=messages, context_length=32_000)
