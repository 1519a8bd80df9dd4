"""The configuration file `.compression-eval.yml`: read once into one typed object."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eval_core.base.errors import UserError
from eval_core.base.files import parse
from eval_core.base.removed import removed_keys
from eval_core.base.strict_yaml import parse_yaml, read_yaml

CONFIG_FILE = ".compression-eval.yml"
SuiteName = Literal["quick", "rounds", "long", "full", "adversarial"]
"""The fixtures alone, or with generated sessions that are compressed again and again."""
MOST_SHARDS = 100
"""Into which one run may be split."""


class ConfigSection(BaseModel):
    """A part of the configuration; a misspelt field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Price(ConfigSection):
    """Dollars per million tokens of a model that the price list does not know."""

    input: Annotated[float, Field(ge=0, description="Dollars per million input tokens.")]
    output: Annotated[float, Field(ge=0, description="Dollars per million output tokens.")]
    cached_input: Annotated[float | None, Field(ge=0, description="Default: the input price.")] = None
    cache_write: Annotated[
        float | None,
        Field(ge=0, description="Dollars per million tokens written to the cache; default: the input price."),
    ] = None


class ModelParams(ConfigSection):
    """What is sent along with every call to a model, where its provider takes it."""

    reasoning_effort: Annotated[str | None, Field(description="How long a reasoning model thinks, e.g. low.")] = None
    verbosity: Annotated[str | None, Field(description="How much it writes, e.g. low.")] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, description="Nucleus sampling.")] = None
    seed: Annotated[int | None, Field(description="Makes sampling repeatable, as far as the provider can.")] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2, description="Against repeated words.")] = None
    presence_penalty: Annotated[
        float | None, Field(ge=-2, le=2, description="Penalty for words that were used before.")
    ] = None
    logit_bias: Annotated[dict[str, float] | None, Field(description="Bias for single tokens, by token id.")] = None


PresetName = Literal["github-models", "ollama", "vllm", "openrouter", "azure", "bedrock", "vertex"]


class EndpointConfig(ConfigSection):
    """Where and how one model is reached; what is not set comes from the preset, then from litellm."""

    preset: Annotated[PresetName | None, Field(description="A provider whose settings are known.")] = None
    url: Annotated[
        str | None, Field(description="Base URL, up to and including /v1. Every call to the model goes there.")
    ] = None
    protocol: Annotated[
        Literal["openai", "litellm"] | None,
        Field(description="openai: sent as is to the URL. litellm: routed by the name. Default: openai with a URL."),
    ] = None
    key_env: Annotated[str | None, Field(description="Environment variable that holds the key.")] = None
    price: Annotated[Price | None, Field(description="What the model costs.")] = None
    base_model: Annotated[
        str | None, Field(description="litellm name of the model whose price and window apply, e.g. of a deployment.")
    ] = None
    window: Annotated[int | None, Field(gt=0, description="Context window in tokens.")] = None
    max_output: Annotated[int | None, Field(gt=0, description="Most tokens of one reply.")] = None
    time_limit_s: Annotated[float | None, Field(gt=0, description="Seconds for one reply.")] = None


class ModelConfig(ConfigSection):
    """Which models compress, answer and judge; without them everything runs offline."""

    compressor: Annotated[str | None, Field(description="litellm name of the model that the compressor calls.")] = None
    answer: Annotated[
        str | Annotated[list[str], Field(min_length=1)] | None,
        Field(
            description="Model that answers probes; default: the compressor's. Of a list, the first answers what is "
            "graded, and each is asked for choices and actions."
        ),
    ] = None
    judge: Annotated[
        str | None,
        Field(
            description="Model that grades, or offline: rule-based answers and grades; default: the answering model."
        ),
    ] = None
    api_base: Annotated[
        str | None,
        Field(description="Base URL of an OpenAI-compatible server, or a preset's name: every call goes there."),
    ] = None
    temperature: Annotated[float | None, Field(ge=0, le=2, description="Sampling temperature of answers.")] = None
    answer_max_tokens: Annotated[int, Field(gt=0, description="The longest answer.")] = 700
    trust_judge: Annotated[bool, Field(description="Use the judge even if it misranks obvious cases.")] = False
    judge_max_tokens: Annotated[int, Field(gt=0, description="The longest grade, with its reasons.")] = 900
    compressor_max_tokens: Annotated[int, Field(gt=0, description="The longest summary.")] = 8_000
    time_limit_s: Annotated[float, Field(gt=0, description="Seconds from a request to the end of its reply.")] = 180.0
    endpoints: Annotated[dict[str, EndpointConfig], Field(description="How models are reached, by model.")] = {}
    prices: Annotated[dict[str, Price], Field(description="Prices of models that litellm does not know.")] = {}
    params: Annotated[dict[str, ModelParams], Field(description="Request parameters, by model.")] = {}


class BotConfig(ConfigSection):
    """How the pull-request bot behaves."""

    label: Annotated[
        str, Field(description="Starts an evaluation and is removed immediately. Use the same name in the workflow.")
    ] = "eval-compression"
    long_label: Annotated[
        str, Field(description="Starts an evaluation that plays the sessions of `long` beside the suite.")
    ] = "eval-compression-long"
    suite: Annotated[
        SuiteName | None,
        Field(description="What the label runs. Default: rounds where it costs nothing, offline; quick with models."),
    ] = None
    tasks: Annotated[bool, Field(description="Let an agent finish the tasks in every evaluation.")] = False
    tasks_label: Annotated[str, Field(description="Starts an evaluation in which an agent finishes the tasks.")] = (
        "eval-compression-tasks"
    )
    apps: Annotated[
        list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+\[bot\]$")]],
        Field(description="Apps that may start an evaluation with the label or by hand, for example `renovate[bot]`."),
    ] = []
    looks_per_sha: Annotated[int, Field(ge=1, description="Evaluations allowed for one commit.")] = 3
    shards: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_SHARDS,
            description="Jobs that share an evaluation. Each of them has the key, and its part of the budget.",
        ),
    ] = 1
    runs_per_day: Annotated[int, Field(ge=1, description="Evaluations allowed in 24 hours, all PRs together.")] = 20
    conclusion: Annotated[
        Literal["neutral", "verdict"],
        Field(
            description="neutral: the check never fails a PR; verdict: a regression is a failure, and no answer "
            "(incomplete, not comparable) requires action."
        ),
    ] = "neutral"
    comment: Annotated[
        Literal["always", "changes"],
        Field(
            description="changes: the first comment is written once a result is not “no detectable change”; the check "
            "says the rest."
        ),
    ] = "always"
    mention: Annotated[
        bool, Field(description="Mention the person who requested the evaluation when it ends, which notifies them.")
    ] = True


class AcceptConfig(ConfigSection):
    """Intended removals, which the verdict no longer counts; `compression-eval accept` writes them."""

    sections: Annotated[list[str], Field(description="Sections of the summary that may go, by their label.")] = []
    facts: Annotated[
        dict[str, list[str]], Field(description="Facts that need not be kept any more: for each fixture, their values.")
    ] = {}
    unseen: Annotated[
        dict[str, list[str]],
        Field(description="Facts that need not reach the compressor's model any more: for each fixture, their values."),
    ] = {}


class PrivateProbesConfig(ConfigSection):
    """Probes that authors of pull requests cannot read: committed encrypted, decrypted only by the evaluation."""

    file: Annotated[str, Field(description="The file that `compression-eval probe seal` wrote.")]
    key_env: Annotated[str, Field(pattern="^[A-Z_][A-Z0-9_]*$", description="Environment variable with its key.")] = (
        "COMPRESSION_EVAL_PROBES_KEY"
    )
    share: Annotated[float, Field(gt=0, le=1, description="Share of each bank that an evaluation asks.")] = 1.0
    rotate_days: Annotated[int, Field(ge=0, description="Days until another share is drawn; 0: never.")] = 7
    seed: Annotated[int, Field(description="Change it to draw another share immediately.")] = 0


class BaselineConfig(ConfigSection):
    """What of the base branch is measured beside a pull request."""

    control: Annotated[
        Literal["auto", "always", "never"],
        Field(
            description="auto: all of the base where the baseline is stale, a few runs otherwise; always: all of it; "
            "never: the stored baseline is taken as it is."
        ),
    ] = "auto"
    control_runs: Annotated[
        int, Field(ge=1, le=10, description="Graded base runs of each fixture beside a baseline that is not stale.")
    ] = 1


class TaskConfig(ConfigSection):
    """How tokens per task are computed; prices are multiples of the price of an input token."""

    turns: Annotated[
        int | None,
        Field(ge=1, description="Turns that follow a compression; default: those of the session's second half."),
    ] = None
    cached_price: Annotated[float, Field(ge=0, le=1, description="Of a token read from the prompt cache.")] = 0.1
    output_price: Annotated[float, Field(ge=0, description="Of a token that a model writes.")] = 5.0


class Config(ConfigSection):
    """Everything that a repository can set; every field has a default."""

    fixtures: Annotated[str, Field(description="Folder of the recorded sessions.")] = "fixtures"
    probes: Annotated[str, Field(description="Folder of the probe banks.")] = "probes"
    private_probes: Annotated[
        PrivateProbesConfig | None, Field(description="Probes that authors of pull requests cannot read.")
    ] = None
    tasks: Annotated[str, Field(description="Folder of the tasks that `run --tasks` lets an agent finish.")] = "tasks"
    play_tasks: Annotated[
        bool, Field(description="Let an agent finish the tasks, from the states of both sides; it costs model calls.")
    ] = False
    baselines: Annotated[str, Field(description="Folder of the stored baselines.")] = "baselines"
    results: Annotated[str, Field(description="Folder that results are written to; keep it out of git.")] = "results"
    target: Annotated[
        dict[str, Any] | str, Field(description="The compressor under test: builtin:NAME, a file, or a target table.")
    ] = "builtin:anchored"
    watch: Annotated[
        list[str], Field(description="Paths (globs): a pull request that changes none of them is not evaluated.")
    ] = []
    setup: Annotated[
        list[str], Field(description="Shell commands that prepare the target's environment; no secrets.")
    ] = []
    models: ModelConfig = ModelConfig()
    suite: Annotated[
        SuiteName,
        Field(
            description="quick: the fixtures; rounds: also 4 generated sessions of 90k tokens, each compressed 8 "
            "times; long: also 4 of 300k; full: all of these and one of a million. adversarial: instead of "
            "the fixtures two shipped sessions in which a tool's output gives orders to the summariser."
        ),
    ] = "quick"
    runs: Annotated[int, Field(ge=1, le=50, description="Graded runs of each fixture.")] = 3
    compress_runs: Annotated[
        int | None,
        Field(
            ge=1,
            le=200,
            description="Compressions of each fixture, graded or not. Default: 10 where they are free; where a model "
            "writes them as many as are graded, and up to 10 if facts seem to have changed and it is not certain.",
        ),
    ] = None
    baseline_runs: Annotated[int, Field(ge=1, le=50, description="Graded runs stored in a baseline.")] = 10
    baseline: BaselineConfig = BaselineConfig()
    budget_usd: Annotated[float, Field(gt=0, description="No run spends more than this.")] = 8.0
    max_tokens_total: Annotated[
        int | None, Field(gt=0, description="No run uses more tokens than this, e.g. where a price is unknown.")
    ] = None
    stop: Annotated[
        Literal["full", "early"] | None,
        Field(
            description="early: skip grading where facts alone decide; full: grade everything. Default: early with "
            "models, full offline."
        ),
    ] = None
    deadline_minutes: Annotated[
        float | None, Field(gt=0, description="No model call starts later than this; the result is then incomplete.")
    ] = None
    concurrency: Annotated[int, Field(ge=1, le=256, description="Maximum number of concurrent model calls.")] = 16
    focus_topic: Annotated[str | None, Field(description="Passed on to the compressor.")] = None
    accept: AcceptConfig = AcceptConfig()
    task: TaskConfig = TaskConfig()
    bot: BotConfig = BotConfig()


def config_folder(path: Path | None) -> Path:
    """Return the folder that every path in a configuration is relative to.

    Without a path it is the nearest folder with the usual file, from here up to the top of the git repository, as with
    other tools: below it, another compressor than the repository's own would be measured without a word.
    """
    if path is not None:
        return path.parent
    folders = [(here := Path().resolve()), *here.parents]
    top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    found = next((folder for folder in folders[: top + 1] if (folder / CONFIG_FILE).is_file()), here)
    return Path() if found == here else found


def load_config(path: Path | None, root: Path | None = None, changes: Iterable[str] = ()) -> Config:
    """Read the configuration; without a path, the usual file if it is there, else the defaults.

    Each of the `changes` is a KEY=VALUE that goes before the file.
    """
    where = path or (config_folder(None) if root is None else root) / CONFIG_FILE
    there = path is not None or where.exists()
    content = read_yaml(where) or {} if there else {}
    config = _checked(content, str(where)) if there else Config()
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip(". "):
            raise UserError(f"--set {change}: expected KEY=VALUE, e.g. --set models.time_limit_s=60")
        content = _changed(content, key.strip().split("."), parse_yaml(value, f"--set {key}"))
        config = _checked(content, f"--set {key}")
    return config


def _checked(content: Any, where: str) -> Config:
    if gone := removed_keys(content):
        raise UserError(f"{where}: {' '.join(gone)}")
    return parse(Config, content, where)


def _changed(content: Any, path: list[str], value: Any) -> Any:
    """Return a value with another one at a path; a mapping is added to the one that is there."""
    if path:
        value, content = {path[0]: value}, content if isinstance(content, dict) else {}
        return {**content, path[0]: _changed(content.get(path[0]), path[1:], value[path[0]])}
    return {**content, **value} if isinstance(content, dict) and isinstance(value, dict) else value
