"""The command `compression-eval`: commands are imported when they are called, so that help is instant."""

from __future__ import annotations

from importlib import import_module

import click

from eval_core.cli.entry import CommandGroup, run_command

_COMMANDS = {
    "run": ("eval_core.cli.run:run", "Compress, probe and grade; compare with the baseline."),
    "compare": ("eval_core.cli.report:compare", "Compare two results or baselines."),
    "report": ("eval_core.cli.report:report", "Render a result again, or several side by side."),
    "accept": ("eval_core.cli.accept:accept", "Accept an intended removal, so that it no longer counts."),
    "trend": ("eval_core.cli.report:trend", "Show the stored baselines over time."),
    "noise": ("eval_core.cli.noise:noise", "Show how noisy a baseline is, by comparing parts of it."),
    "baseline": ("eval_core.cli.baseline:baseline", "Update, show or check stored baselines."),
    "fixture": ("eval_core.cli.fixture:fixture", "Import, scrub, audit or show recorded sessions."),
    "probe": ("eval_core.cli.probe:probe", "Check, propose, list or encrypt probes."),
    "task": ("eval_core.cli.task:task", "Check tasks that an agent finishes, or begin one."),
    "target": ("eval_core.cli.target:target", "Check a compressor that is a command in any language."),
    "releases": ("eval_core.cli.releases:releases", "Compare published releases of an agent."),
    "merge": ("eval_core.cli.merge:merge", "Join the shards of a run into one result."),
    "judge": ("eval_core.cli.judge:judge", "Calibrate the judge, or grade stored answers again."),
    "bot": ("bot.commands:bot", "The steps of the pull-request workflow."),
    "init": ("bot.init:init", "Set up the bot in a repository."),
    "reproduce": ("bot.reproduce:reproduce", "Measure a pull request on this machine as the bot does."),
    "doctor": ("bot.doctor:doctor", "Check the setup by trying everything that a run needs."),
    "demo": ("bot.demo.play:demo", "Run the whole bot on this machine, without an account or a key."),
}


class _LazyGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="compression-eval")
def root() -> None:
    """Find out whether a change to a context compressor made it better or worse.

    \b
    Try it without an account or a key:
      compression-eval demo
      compression-eval run
      compression-eval run --target builtin:opaque
    """


def main() -> None:
    """Run a command."""
    assert isinstance(root, CommandGroup)
    run_command(root)
