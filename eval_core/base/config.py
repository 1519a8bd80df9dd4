"""The configuration file `.compression-eval.yml`: read once into one typed object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from eval_core.base.errors import UserError
from eval_core.base.files import parse, read_text

__all__ = ["CONFIG_FILE", "BaselineConfig", "BotConfig", "Config", "ModelConfig", "Price", "load_config"]

CONFIG_FILE = ".compression-eval.yml"


class ConfigSection(BaseModel):
    """A part of the configuration; a misspelt field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(ConfigSection):
    """Dollars per million tokens of a model that the price list does not know."""

    input: Annotated[float, Field(ge=0, description="Of a million input tokens.")]
    output: Annotated[float, Field(ge=0, description="Of a million output tokens.")]
    cached_input: Annotated[float | None, Field(ge=0, description="Default: the input price.")] = None


class ModelParams(ConfigSection):
    """What is sent along with every call to a model, where its provider takes it."""

    reasoning_effort: Annotated[str | None, Field(description="How long a reasoning model thinks, e.g. low.")] = None
    verbosity: Annotated[str | None, Field(description="How much it writes, e.g. low.")] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, description="Nucleus sampling.")] = None
    seed: Annotated[int | None, Field(description="Makes sampling repeatable, as far as the provider can.")] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2, description="Against repeated words.")] = None
    presence_penalty: Annotated[float | None, Field(ge=-2, le=2, description="Against words used before.")] = None
    logit_bias: Annotated[dict[str, float] | None, Field(description="Token numbers, made likelier or less.")] = None


class ModelConfig(ConfigSection):
    """Which models compress, answer and judge; without them everything runs offline."""

    compressor: Annotated[str | None, Field(description="litellm name of the model that the compressor calls.")] = None
    answer: Annotated[str | None, Field(description="Model that answers probes; default: the compressor's.")] = None
    judge: Annotated[str | None, Field(description="Model that grades; default: the answering model.")] = None
    api_base: Annotated[str | None, Field(description="Base URL of an OpenAI-compatible provider.")] = None
    temperature: Annotated[float | None, Field(ge=0, le=2, description="Sampling temperature of answers.")] = None
    answer_max_tokens: Annotated[int, Field(gt=0, description="The longest answer.")] = 700
    judge_max_tokens: Annotated[int, Field(gt=0, description="The longest grade, with its reasons.")] = 900
    compressor_max_tokens: Annotated[int, Field(gt=0, description="The longest summary.")] = 8_000
    prices: Annotated[dict[str, Price], Field(description="Prices of models that litellm does not know.")] = {}
    params: Annotated[dict[str, ModelParams], Field(description="Request parameters, by model.")] = {}


class BotConfig(ConfigSection):
    """How the pull-request bot behaves."""

    label: Annotated[
        str, Field(description="Starts an evaluation and is removed at once; name it in the workflow too.")
    ] = "eval-compression"
    looks_per_sha: Annotated[int, Field(ge=1, description="Evaluations allowed for one commit.")] = 3
    runs_per_day: Annotated[int, Field(ge=1, description="Evaluations allowed in 24 hours, all PRs together.")] = 20
    conclusion: Annotated[
        Literal["neutral", "verdict"],
        Field(description="neutral: the check never fails a PR; verdict: a regression is a failure."),
    ] = "neutral"


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


class Config(ConfigSection):
    """Everything that a repository can set; every field has a default."""

    fixtures: Annotated[str, Field(description="Folder of the recorded sessions.")] = "fixtures"
    probes: Annotated[str, Field(description="Folder of the probe banks.")] = "probes"
    baselines: Annotated[str, Field(description="Folder of the stored baselines.")] = "baselines"
    results: Annotated[str, Field(description="Folder that results are written to; keep it out of git.")] = "results"
    target: Annotated[
        dict[str, Any] | str, Field(description="The compressor under test: builtin:NAME, a file, or a target table.")
    ] = "builtin:anchored"
    watch: Annotated[
        list[str], Field(description="Paths (globs) whose change makes an evaluation worth its cost.")
    ] = []
    setup: Annotated[
        list[str], Field(description="Shell commands that prepare the target's environment; no secrets.")
    ] = []
    models: ModelConfig = ModelConfig()
    runs: Annotated[int, Field(ge=1, le=50, description="Graded runs of each fixture.")] = 3
    compress_runs: Annotated[int, Field(ge=1, le=200, description="Compressions of each fixture, graded or not.")] = 10
    baseline_runs: Annotated[int, Field(ge=1, le=50, description="Graded runs stored in a baseline.")] = 10
    baseline: BaselineConfig = BaselineConfig()
    budget_usd: Annotated[float, Field(gt=0, description="No run spends more than this.")] = 5.0
    concurrency: Annotated[int, Field(ge=1, le=256, description="Most model calls at once.")] = 16
    focus_topic: Annotated[str | None, Field(description="Passed on to the compressor.")] = None
    bot: BotConfig = BotConfig()


def load_config(path: Path | None, root: Path | None = None) -> Config:
    """Read the configuration; without a path, the usual file if it is there, else the defaults."""
    where = path or (root or Path()) / CONFIG_FILE
    if path is None and not where.exists():
        return Config()
    try:
        value = yaml.safe_load(read_text(where))
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{where}: {place}broken YAML: {getattr(exc, 'problem', exc)}") from None
    return parse(Config, value or {}, str(where))
