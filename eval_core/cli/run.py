"""`compression-eval run`, with `--dry-run`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from eval_core.base.errors import UserError
from eval_core.base.numbers import counted, listed
from eval_core.cli.options import fail_on_option, format_option, model_options, run_options

if TYPE_CHECKING:
    from eval_core.base.config import Config
    from eval_core.comparing.compare import ReportData
    from eval_core.domain.measurement import Measurement
    from eval_core.domain.shard import Shard
    from eval_core.measuring.cost import CostEstimate
    from eval_core.measuring.options import RunOptions
    from eval_core.measuring.plan import Plan


# `compression-eval run --dry-run`: what a run would cost.


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"${value:.4f}" if value < 1 else f"${value:.2f}"


def print_estimate(plan: Plan, label: str | None = None) -> None:
    """Print calls, tokens and cost of a run by role; send nothing. What the run would refuse is refused here too."""
    from eval_core.measuring.cost import estimate_cost
    from eval_core.models.budget import Budget

    found = estimate_cost(plan, label)
    if plan.rounds.runs:
        click.echo(plan.rounds.price(plan.models))
    if plan.tasks.sides and plan.models is not None:
        click.echo(plan.tasks.price(plan.models))
    if found is None:
        click.echo(
            f"Offline: {plan.size} fixture-runs of {counted(len(plan.cases), 'fixture')}, no model call, "
            "no cost. Name a model with --model to see what that costs."
        )
        return
    print_rows(found)
    if (models := plan.models) is not None:
        budget = Budget(found.budget_usd, plan.options.settings.max_tokens_total)
        budget.require_prices(models.distinct, {model: models.tariff(model) for model in models.distinct})


def print_rows(found: CostEstimate) -> None:
    from rich.text import Text

    from eval_core.reporting.terminal import console, print_table

    out = console()
    print_table(
        out,
        "Estimate; nothing was sent",
        ("role", "model", "calls", "input tokens", "output tokens", "cost", "with prompt caching"),
        [
            (
                row.role,
                row.model,
                f"{row.calls:,}",
                f"{row.input_tokens:,}",
                f"{row.output_tokens:,}",
                _money(row.cost_usd),
                _money(row.cached_cost_usd),
            )
            for row in (*found.rows, found.total)
        ],
    )
    out.print(Text("Calls: " + (", ".join(f"{calls:,} {purpose}" for purpose, calls in found.purposes) or "none")))
    cost = found.total.cost_usd
    if found.facts_only is not None:
        least = found.facts_only
        price = f"{_money(least.cost_usd)}, with prompt caching {_money(least.cached_cost_usd)}"
        out.print(Text(f"Where facts alone decide, nothing is graded: {least.calls:,} calls, {price}."))
    if found.more is not None:
        price = f"{_money(found.more.cost_usd)}, with prompt caching {_money(found.more.cached_cost_usd)}"
        words = f"up to {counted(found.more.calls, 'further call')} to compress, {price}, within the budget"
        out.print(Text(f"If facts seem to have changed and it is not certain: {words}."))
    for note in found.notes:
        out.print(Text(note))
    if cost is None:
        out.print(Text("A price is unknown: give it under models.prices, in dollars per million tokens."))
    else:
        out.print(Text(found.covered))


# `compression-eval run`.

OFFLINE = "No model configured: summaries, answers and grades are rule-based."


def make_options(given: dict[str, Any]) -> RunOptions:
    """Read the options of `run_options` and `model_options`, and what else a command knows."""
    from eval_core.base.config import config_folder, load_config
    from eval_core.measuring.options import RunOptions
    from eval_core.models.settings import ModelFlags

    flags = ModelFlags(
        model=given.pop("model"),
        compressor=given.pop("compressor_model"),
        judge=given.pop("judge_model"),
    )
    names, config, targets = given.pop("names"), given.pop("config"), given.pop("targets")
    suite = given.pop("suite", None)
    changes = (*given.pop("changes"), *([f"suite={suite}"] if suite else []))
    changes += ("play_tasks=true",) if given.pop("tasks", False) else ()
    if len(targets) > 1:
        raise UserError(f"--target: this takes one target, not {len(targets)}; `run` alone compares several")
    if given.get("compare_to") == "rerun":
        given |= {"compare_to": "auto", "baseline": "rerun"}
    return RunOptions(
        settings=load_config(config, changes=changes),
        root=config_folder(config),
        flags=flags,
        names=_fixture_names(names),
        target=targets[0] if targets else None,
        **given,
    )


def with_a_suite(settings: Config, root: Path, *, quiet: bool = True) -> Config:
    """Use the shipped suite where there is neither a configuration nor a suite, so that a first run needs no clone."""
    from eval_core.base.config import CONFIG_FILE
    from eval_core.base.shipped import shipped

    if (root / CONFIG_FILE).exists() or (root / settings.fixtures).is_dir():
        return settings
    if not quiet:
        click.echo("No fixtures here: using the shipped suite.", err=True)
    folders = {name: str(shipped(name)) for name in ("fixtures", "probes", "tasks", "baselines")}
    return settings.model_copy(update=folders)


def _fixture_names(given: str | None) -> tuple[str, ...] | None:
    """Return the names of `--fixtures`; None for all."""
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(","))
    if "" in names:
        raise UserError(f"--fixtures {given!r}: a name is empty; separate names with commas, or leave it out for all")
    return names


def execute(plan: Plan, label: str | None, *, quiet: bool) -> ReportData:
    """Carry a plan out, with progress on stderr and its reports in the results folder."""
    from eval_core.cli.progress import show_progress
    from eval_core.measuring.measure import Sinks, compare_run, measure
    from eval_core.measuring.provenance import now
    from eval_core.reporting.write import write_reports
    from eval_core.storage.results import free_label, open_results

    _warn(plan, quiet=quiet)
    name, shard = label or free_label(plan.results, now().strftime("%Y-%m-%d_%H-%M-%S")), plan.options.shard
    if shard is not None:
        name = shard.label(name)
    with open_results(plan.results, name, resume=plan.options.resume) as folder:
        with show_progress(plan.size, quiet=quiet) as progress:
            measurement = measure(plan, Sinks(folder, progress.record, progress.watch))
            data = compare_run(plan, measurement, folder)
        if shard is None:  # a part has no verdict of its own to report
            write_reports(data, folder)
    return data


def _warn(plan: Plan, *, quiet: bool) -> None:
    """Say what a reader of the results should know before they are made."""
    from eval_core.domain.case import draft_counts
    from eval_core.sandbox.isolation import NONE_WARNING

    options = plan.options
    unasked = sum(len(case.private.types) - len(case.private.probes) for case in plan.cases if case.private is not None)
    private = options.settings.private_probes
    if not quiet and private is not None and unasked and options.sealing is None:
        click.echo(f"{unasked} private probes are not asked: {private.key_env} is not set.", err=True)
    if not quiet and plan.models is None:
        click.echo(OFFLINE, err=True)
    if options.sandbox == "none":
        click.echo(f"Warning: {NONE_WARNING}", err=True)
    for fixture, count in draft_counts(plan.cases).items():
        click.echo(f"Warning: {fixture}: {counted(count, 'probe')} not reviewed yet (marked as drafts).", err=True)
    if not quiet and plan.rounds.runs:
        click.echo(plan.rounds.price(plan.models), err=True)
    if not quiet and plan.tasks.sides and plan.models is not None:
        click.echo(plan.tasks.price(plan.models), err=True)


def resume_command(label: str) -> str:
    """Return the command that completes this very run."""
    given = [word for word in sys.argv[1:] if word != "--resume"]
    if "--label" not in given and not any(word.startswith("--label=") for word in given):
        given += ["--label", label]
    return shlex.join(["compression-eval", *given, "--resume"])


def _at_next_look(options: RunOptions, results: Path, label: str | None) -> RunOptions:
    """Return the options that add what the next planned look at a result needs."""
    from eval_core.statistics.looks import next_look
    from eval_core.storage.results import SUMMARY, read_measurement

    if label is None:
        raise UserError("--next-look: name the result to look at again with --label")
    if not (results / label / SUMMARY).exists():
        merge = f"; `compression-eval merge {label}` joins the shards of one" if options.shard else ""
        raise UserError(f"--next-look: {results / label} holds no finished run; leave it out for the first look{merge}")
    stored = read_measurement(results / label)
    runs = next_look(stored.planned_runs)
    if runs is None:
        raise UserError(
            f"--next-look: {results / label} has {stored.planned_runs} graded runs of each fixture, and the last "
            "planned look is at 10; its verdict is final. More fixtures or baseline runs show smaller changes"
        )
    compressions = max(runs, stored.planned_compress_runs)
    return replace(options, runs=runs, compress_runs=compressions, seed=stored.provenance.seed, resume=True)


@contextmanager
def _with_git_base(options: RunOptions) -> Iterator[RunOptions]:
    """Add the base that git knows: otherwise a stale baseline would blame this branch for others' changes."""
    from eval_core.domain.target import Builtin
    from eval_core.measuring.base_branch import branch_point, exported

    control = options.settings.baseline.control
    asked = options.baseline == "rerun" or (options.compare_to == "auto" and control != "never")
    target = options.load_target()
    point = None
    if asked and options.base_tree is None and not isinstance(target.spec, Builtin):
        point = branch_point(target.tree, options.settings.watch)
    if point is None:
        yield options
        return
    with exported(target.tree, point.sha) as tree:
        yield replace(options, base_tree=tree, base_point=point)


def _tell_base(plan: Plan, *, quiet: bool) -> None:
    """Say what the run will be compared with, where git chose it; and before anything is paid for, if with nothing."""
    point, options = plan.options.base_point, plan.options
    if point is not None and not quiet:
        if plan.base.own:
            where = f"{point.branch} at {point.sha[:12]}, where this branch left it"
            click.echo(f"Comparing with {where}, not with a stored baseline.", err=True)
        if point.both:
            files = listed([name if name.isprintable() else ascii(name) for name in point.both])
            click.echo(
                f"{point.branch} has changed {files} as well since; the two together are not measured.", err=True
            )
    if quiet or plan.models is None or options.shard is not None or options.compare_to == "none":
        return
    if (why := plan.no_base) is not None:
        click.echo(
            f"No verdict to expect: {why}. This run costs money and only measures; `compression-eval baseline update` "
            "stores a baseline to compare with.",
            err=True,
        )


def _at_last_look(options: RunOptions) -> RunOptions:
    """Return the options that measure in one go what all planned looks would need."""
    from eval_core.measuring.plan import run_counts
    from eval_core.statistics.looks import RUNS_AT_LOOK

    runs, compressions = run_counts(options)
    return replace(options, runs=max(runs, RUNS_AT_LOOK[-1]), compress_runs=max(compressions, RUNS_AT_LOOK[-1]))


def _not_interrupted(found: Measurement) -> Measurement:
    """End a watch whose measurement was ended by a signal: what is left of it tells nothing of the edit."""
    from eval_core.measuring.interrupt import INTERRUPTED

    if (found.stopped or "").startswith(INTERRUPTED):
        raise KeyboardInterrupt
    return found


def _is_open(data: ReportData) -> bool:
    """Tell whether a further planned look could decide."""
    from eval_core.statistics.looks import next_look
    from eval_core.strands.findings import Kind

    undecided = data.verdict is not None and data.verdict.kind is Kind.INCONCLUSIVE
    return undecided and data.candidate.stopped is None and next_look(data.candidate.planned_runs) is not None


def _looked_again(options: RunOptions, data: ReportData, root: Path, *, quiet: bool) -> ReportData:
    """Go on to the next planned look while the verdict is open."""
    from eval_core.measuring.plan import make_plan

    while _is_open(data):
        plan = make_plan(_at_next_look(options, root, data.candidate.label), root)
        if not quiet:
            click.echo(
                f"Inconclusive after {data.candidate.planned_runs} graded runs; going on to {plan.runs}.", err=True
            )
        data = execute(plan, data.candidate.label, quiet=quiet)
    return data


@click.command()
@run_options
@click.option("--runs", type=click.IntRange(1, 50), help="Graded runs of each fixture.  [default: 3]")
@click.option(
    "--compare-to",
    default="auto",
    show_default=True,
    help="auto, none, a baseline file, a results folder, or rerun: measure the base in the same run.",
)
@fail_on_option
@format_option("text", "md", "json")
@click.option(
    "--base-tree",
    type=click.Path(path_type=Path),
    help="The tree of the base.  [default: the commit where the checked-out branch left the default branch]",
)
@click.option("--next-look", is_flag=True, help="With --label: add runs up to the next planned look (3, 6, 10 graded).")
@click.option(
    "--all-looks",
    is_flag=True,
    help="While the verdict is inconclusive, continue with the next look, with the provider's cache still warm.",
)
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing.")
@click.option("--open", "opened", is_flag=True, help="Show the report in the browser.")
@click.option("--watch", "watched", is_flag=True, help="Run again after every edit; print what it lost and regained.")
@click.option("--shard", help="Measure one part of the plan, e.g. 2/5; `compression-eval merge` joins the parts.")
@model_options
def run(
    label: str | None,
    results: Path | None,
    quiet: bool,
    fail_on: Any,
    form: str,
    next_look: bool,
    all_looks: bool,
    dry_run: bool,
    opened: bool,
    watched: bool,
    shard: str | None,
    targets: tuple[str, ...],
    **given: Any,
) -> None:
    """Compress recorded sessions, probe the compressed state, grade the answers, compare with the baseline.

    Without a model everything runs offline: summaries, answers and grades are rule-based.

    \b
    Examples:
      compression-eval run
      compression-eval run --target builtin:opaque --fixtures debug-session-feishu-id-model
      compression-eval run --model anthropic/claude-sonnet-4-5 --budget-usd 2 --dry-run
      compression-eval run --model anthropic/claude-sonnet-4-5 --judge offline
      compression-eval run --compare-to results/before --fail-on regressed
      compression-eval run --target target.yml --tree ../my-agent
      compression-eval run --compare-to rerun --base-tree ../main --target target.yml
      compression-eval run --target builtin:anchored --target builtin:regenerative --target mine.yml --label choice
      compression-eval run --label before --next-look
      compression-eval run --model anthropic/claude-sonnet-4-5 --all-looks
      compression-eval run --label nightly --shard 2/5
      compression-eval run --fixtures my-session --watch
    """
    from eval_core.cli.report import print_data
    from eval_core.cli.several_targets import run_several
    from eval_core.domain.shard import parse_shard
    from eval_core.measuring.plan import make_plan

    part = None if shard is None else parse_shard(shard)
    _check_shard(shard, label, all_looks=all_looks)
    options = replace(make_options({**given, "targets": targets[:1]}), shard=part)
    options = replace(options, settings=with_a_suite(options.settings, options.root, quiet=quiet))
    if len(targets) > 1:
        _check_several(dry_run=dry_run, next_look=next_look, all_looks=all_looks, form=form)
        run_several(options, targets, label, results, quiet=quiet, fail_on=fail_on)
    root = results or options.results
    if next_look:
        options = _at_next_look(options, root, label)
    if watched:
        from eval_core.cli.watch import quick, watch

        watching = quick(options)
        watch(watching, lambda: _not_interrupted(execute(make_plan(watching, root), None, quiet=True).candidate))
    with _with_git_base(options) as options:
        plan = make_plan(options, root)
        _tell_base(plan, quiet=quiet)
        if dry_run:
            print_estimate(make_plan(_at_last_look(options), root) if all_looks else plan, label)
            return
        data = execute(plan, label, quiet=quiet)
        if all_looks:
            data = _looked_again(options, data, root, quiet=quiet)
    if part is not None:
        _end_shard(data, part, root, shlex.join([label or "", *(("--results", str(results)) if results else ())]))
    page = root / data.candidate.label / "report.html"
    print_data(data, form, where=page)
    if opened:
        click.launch(page.resolve().as_uri())
    end_run(data, fail_on, root, f"`{resume_command(data.candidate.label)}` completes it")


def _check_shard(shard: str | None, label: str | None, *, all_looks: bool) -> None:
    if shard is not None and label is None:
        raise UserError(f"--shard {shard}: name the run with --label so its parts can be found again")
    if shard is not None and all_looks:
        raise UserError(
            f"--all-looks: --shard {shard} gives no verdict that could be inconclusive; leave one of them out"
        )


def _check_several(*, dry_run: bool, next_look: bool, all_looks: bool, form: str) -> None:
    given = {
        "--dry-run": dry_run,
        "--next-look": next_look,
        "--all-looks": all_looks,
        f"--format {form}": form != "text",
    }
    if wrong := [name for name, asked in given.items() if asked]:
        raise UserError(f"{wrong[0]} takes one target; with several, `run` prints a table and writes a report for each")


def _end_shard(data: ReportData, part: Shard, root: Path, whole: str) -> NoReturn:
    """Say that a part is measured, or what is missing of it; `whole` are the words that name the run."""
    folder = root / data.candidate.label
    if data.candidate.stopped is None:
        click.echo(f"Shard {part} is measured: {folder}. `compression-eval merge {whole}` joins the shards.")
        sys.exit(0)
    end_incomplete(data.candidate.stopped, folder, f"`{resume_command(data.candidate.label)}` completes it")


def end_run(data: ReportData, fail_on: Any, root: Path, remedy: str) -> NoReturn:
    """End with the exit code that the verdict asks for, and say of an incomplete run what to do."""
    from eval_core.comparing.headline import undecided
    from eval_core.comparing.verdict import exit_code
    from eval_core.reporting.json_report import started_by_runner
    from eval_core.reporting.losses import outage
    from eval_core.strands.findings import Kind

    if started_by_runner(os.environ):
        sys.exit(0)  # the runner takes the result from report.json, and any other code for a crash
    code = exit_code(data.verdict, fail_on) if data.verdict else 0
    reason = data.candidate.stopped or outage(data.candidate)
    if data.first and reason is None:
        sys.exit(0)
    if data.verdict is None and reason is None and fail_on != "never":
        click.echo(f"--fail-on {fail_on} cannot be decided: nothing to compare with ({data.note}).", err=True)
        sys.exit(3)
    if code != 3 and not data.candidate.stopped and (data.verdict or reason is None):
        sys.exit(code)
    if data.verdict and data.verdict.kind in (Kind.NOT_COMPARABLE, Kind.NOT_JUDGED) and not data.candidate.stopped:
        click.echo(undecided(data.verdict, fail_on), err=True)
        sys.exit(3)
    if reason is None and data.verdict:
        reason = "; ".join(item.text for item in data.verdict.reasons[:2])
    end_incomplete(reason, root / data.candidate.label, remedy)


def end_incomplete(reason: str | None, folder: Path, remedy: str) -> NoReturn:
    """End a command whose measurement has gaps that are not the compressor's."""
    click.echo(f"Incomplete: {reason}. Everything paid for is kept in {folder}; {remedy}.", err=True)
    sys.exit(3)
