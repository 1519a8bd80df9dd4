from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import small

from eval_core.base.config import EndpointConfig, ModelConfig, ModelParams, Price
from eval_core.base.errors import UserError
from eval_core.models.credentials import require_handed_over, require_keys
from eval_core.models.settings import ModelFlags, Models, resolve

NOTHING = ModelConfig()


def chosen(models: Models | None) -> tuple[str, str, str] | None:
    return models and (models.compressor, models.answer, models.judge)


@pytest.mark.parametrize(
    ("flags", "environ", "config", "expected"),
    [
        ({}, {}, {}, None),
        ({}, {"COMPRESSION_EVAL_MODEL": "  "}, {}, None),
        ({}, {"COMPRESSION_EVAL_API_BASE": "http://localhost/v1"}, {}, None),
        ({}, {"COMPRESSION_EVAL_MODEL": "m"}, {}, ("m", "m", "m")),
        ({}, {"COMPRESSION_EVAL_MODEL": "m", "COMPRESSION_EVAL_JUDGE_MODEL": "j"}, {}, ("m", "m", "j")),
        ({}, {"COMPRESSION_EVAL_ANSWER_MODEL": "a"}, {}, ("a", "a", "a")),
        ({}, {"COMPRESSION_EVAL_JUDGE_MODEL": "j"}, {}, ("j", "j", "j")),
        ({}, {"COMPRESSION_EVAL_COMPRESSOR_MODEL": "c", "COMPRESSION_EVAL_JUDGE_MODEL": "j"}, {}, ("c", "c", "j")),
        ({}, {}, {"compressor": "c", "answer": "a"}, ("c", "a", "a")),
        ({"judge": "fj"}, {"COMPRESSION_EVAL_JUDGE_MODEL": "ej"}, {"judge": "cj", "compressor": "c"}, ("c", "c", "fj")),
        ({}, {"COMPRESSION_EVAL_MODEL": "e"}, {"judge": "cj"}, ("e", "e", "e")),
        ({"model": "f"}, {"COMPRESSION_EVAL_JUDGE_MODEL": "ej"}, {}, ("f", "f", "f")),
    ],
)
def test_flags_go_before_environment_before_file(
    flags: dict[str, str], environ: dict[str, str], config: dict[str, str], expected: tuple[str, str, str] | None
) -> None:
    assert chosen(resolve(ModelFlags(**flags), environ, ModelConfig(**config))) == expected  # type: ignore[arg-type]


def test_the_base_url_of_the_environment_goes_before_the_files() -> None:
    config = ModelConfig(
        judge="j", api_base="http://file/v1", prices={"j": Price(input=1, output=1), "k": Price(input=2, output=2)}
    )
    models = resolve(ModelFlags(), {"COMPRESSION_EVAL_API_BASE": "http://env/v1/"}, config)
    assert models is not None
    assert models.api_base == "http://env/v1"
    assert models.prices["k"].input == 2


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http:///v1",
        "http://me:pw@host/v1",
        "http://[::1/v1",
        "http://host:99999/v1",
        "http://host:eighty/v1",
        "http://my host/v1",
        "http://host/v1?api-version=1",
        "http://host/v1#here",
    ],
)
def test_a_base_url_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(UserError, match="COMPRESSION_EVAL_API_BASE"):
        resolve(ModelFlags(), {"COMPRESSION_EVAL_MODEL": "m", "COMPRESSION_EVAL_API_BASE": url}, NOTHING)


def with_key(key: str, **settings: str) -> Models:
    environ = {"COMPRESSION_EVAL_MODEL": "m", "COMPRESSION_EVAL_API_KEY": key, **settings}
    models = resolve(ModelFlags(), environ, NOTHING)
    assert models is not None
    return models


@pytest.mark.parametrize("key", ["sk-first-line\nsk-second", "sk-with\x00nul", "sk-шестнадцать", "sk two words"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_quoted(key: str) -> None:
    with pytest.raises(UserError, match="COMPRESSION_EVAL_API_KEY") as refused:
        with_key(key)
    assert "sk" not in str(refused.value)
    config = ModelConfig(judge="m", endpoints={"m": EndpointConfig(url="http://127.0.0.1:1/v1", key_env="OUR_KEY")})
    with pytest.raises(UserError, match="OUR_KEY"):
        resolve(ModelFlags(), {"OUR_KEY": key}, config)


def test_the_key_goes_to_the_base_url_and_to_nobody_else() -> None:
    key = "k" * 20
    models = with_key(key, COMPRESSION_EVAL_API_BASE="http://127.0.0.1:1/v1")
    local = models.endpoint("openai/local")
    assert local.key is not None
    assert (local.key.reveal(), local.api_base) == (key, "http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    "name",
    [
        "local",
        "openai/gpt-4o",
        "meta/llama",
        "deepseek/chat",
        "xai/grok",
        "anthropic/claude-sonnet-4-5",
        "github/gpt-4o",
    ],
)
def test_with_a_base_url_every_call_goes_there_under_the_name_as_it_was_given(name: str) -> None:
    models = with_key("k" * 20, COMPRESSION_EVAL_API_BASE="http://127.0.0.1:1/v1")
    found = models.endpoint(name)
    assert (found.model, found.api_base, found.direct) == (name, "http://127.0.0.1:1/v1", True)


def test_every_model_may_have_an_endpoint_of_its_own() -> None:
    config = ModelConfig(
        answer="a/model",
        judge="openai/gpt-4.1",
        api_base="http://127.0.0.1:1/v1",
        endpoints={
            "a/model": EndpointConfig(
                url="http://127.0.0.1:2/v1/",
                key_env="A_KEY",
                price=Price(input=3, output=4),
                time_limit_s=9,
                max_output=77,
            ),
            "openai/gpt-4.1": EndpointConfig(preset="github-models"),
        },
    )
    environ = {"A_KEY": "a" * 20, "GITHUB_TOKEN": "g" * 20, "COMPRESSION_EVAL_API_KEY": "c" * 20}
    models = resolve(ModelFlags(), environ, config)
    assert models is not None
    own, judge = models.endpoint("a/model"), models.endpoint("openai/gpt-4.1")
    assert own.key is not None
    assert judge.key is not None
    assert (own.api_base, own.key.reveal(), own.seconds, own.max_output) == ("http://127.0.0.1:2/v1", "a" * 20, 9, 77)
    assert (judge.api_base, judge.key.reveal()) == ("https://models.github.ai/inference", "g" * 20)
    price, free = models.tariff("a/model"), models.tariff("openai/gpt-4.1")
    assert price is not None
    assert free is not None
    assert (price.input, price.output) == (3e-6, 4e-6)
    assert free.worst(10**6, 10**6) == 0
    said = resolve(
        ModelFlags(), {**environ, "COMPRESSION_EVAL_API_BASE": "http://127.0.0.1:3/v1"}, config
    )  # the environment goes before
    assert said is not None
    assert {said.endpoint(model).api_base for model in said.distinct} == {"http://127.0.0.1:3/v1"}


def test_what_the_file_says_of_one_server_is_not_carried_to_the_one_of_the_environment() -> None:
    """A key would leave for a stranger, and a free server's price would leave the budget without meaning."""
    config = ModelConfig(
        compressor="ours",
        judge="openai/gpt-4.1",
        endpoints={
            "ours": EndpointConfig(
                url="http://127.0.0.1:2/v1", key_env="A_KEY", price=Price(input=3, output=4), max_output=77
            ),
            "openai/gpt-4.1": EndpointConfig(preset="github-models"),
        },
    )
    environ = {"A_KEY": "a" * 20, "GITHUB_TOKEN": "g" * 20}
    for base, url in (("http://127.0.0.1:3/v1", "http://127.0.0.1:3/v1"), ("vllm", "http://localhost:8000/v1")):
        models = resolve(ModelFlags(), {**environ, "COMPRESSION_EVAL_API_BASE": base}, config)
        assert models is not None
        for model in ("ours", "openai/gpt-4.1"):
            assert (models.endpoint(model).api_base, models.endpoint(model).key) == (url, None)
        assert models.endpoint("ours").max_output == 77, "that is the model's own"
    elsewhere = resolve(ModelFlags(), {**environ, "COMPRESSION_EVAL_API_BASE": "http://127.0.0.1:3/v1"}, config)
    assert elsewhere is not None
    assert elsewhere.tariff("ours") is None
    listed = elsewhere.tariff("openai/gpt-4.1")
    assert listed is not None
    assert listed.input > 0
    same = resolve(ModelFlags(), {**environ, "COMPRESSION_EVAL_API_BASE": "http://127.0.0.1:2/v1/"}, config)
    assert same is not None
    own = same.endpoint("ours")
    assert own.key is not None
    assert (own.key.reveal(), own.max_output) == ("a" * 20, 77)
    assert same.tariff("ours") is not None


@pytest.mark.parametrize(
    ("preset", "url"),
    [("ollama", "http://localhost:11434/v1"), ("vllm", "http://localhost:8000/v1")],
)
def test_a_preset_may_take_the_place_of_the_url(preset: str, url: str) -> None:
    models = resolve(ModelFlags(model="llama3.2"), {"COMPRESSION_EVAL_API_BASE": preset}, NOTHING)
    assert models is not None
    assert models.endpoint("llama3.2").api_base == url
    assert not models.through_litellm
    require_keys(models)
    price = models.tariff("llama3.2")
    assert price is not None
    assert price.worst(10**6, 10**6) == 0


def test_a_preset_that_needs_a_key_says_which() -> None:
    models = resolve(ModelFlags(model="openai/gpt-4o-mini"), {"COMPRESSION_EVAL_API_BASE": "openrouter"}, NOTHING)
    assert models is not None
    with pytest.raises(UserError, match="OPENROUTER_API_KEY"):
        require_keys(models)
    assert models.tariff("openai/gpt-4o-mini") is not None


@pytest.mark.parametrize("preset", ["azure", "bedrock", "vertex"])
def test_a_preset_without_a_url_is_no_base_url(preset: str) -> None:
    with pytest.raises(UserError, match="reached by the model's name"):
        resolve(ModelFlags(model="m"), {"COMPRESSION_EVAL_API_BASE": preset}, NOTHING)


@pytest.mark.parametrize("name", ["github_copilot/gpt-4o", "chatgpt/gpt-5"])
def test_a_provider_that_logs_in_through_a_web_page_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="web page"):
        resolve(ModelFlags(model=name), {}, NOTHING)


@pytest.mark.parametrize(
    ("name", "endpoint"),
    [
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", EndpointConfig()),
        ("bedrock/eu.anthropic.claude-3-5-sonnet-20240620-v1:0", EndpointConfig()),
        ("bedrock/converse/anthropic.claude-3-5-sonnet-20240620-v1:0", EndpointConfig()),
        ("vertex_ai/claude-sonnet-4-5", EndpointConfig()),
        ("azure/our-deployment", EndpointConfig(preset="azure", base_model="azure/gpt-4o")),
        ("ollama/llama3.2", EndpointConfig()),
        ("anthropic/claude-sonnet-4.5", EndpointConfig(preset="openrouter")),
    ],
)
def test_prices_are_found_as_far_as_the_list_goes(name: str, endpoint: EndpointConfig) -> None:
    config = ModelConfig(judge=name, endpoints={name: endpoint})
    models = resolve(ModelFlags(), {}, config)
    assert models is not None
    assert models.tariff(name) is not None


def test_without_a_base_url_names_are_left_to_litellm() -> None:
    models = with_key("k" * 20)
    assert models.endpoint("anthropic/claude-sonnet-4-5").provider == "anthropic"
    assert models.endpoint("gpt-4o-mini").provider == "openai"
    assert models.endpoint("gpt-4o-mini").api_base is None


def test_a_local_server_needs_no_key() -> None:
    models = resolve(ModelFlags(model="m"), {"COMPRESSION_EVAL_API_BASE": "http://127.0.0.1:1/v1"}, NOTHING)
    assert models is not None
    assert models.endpoint("m").key is None
    require_keys(models)


def test_a_missing_key_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    models = resolve(ModelFlags(compressor="gpt-4o-mini", judge="anthropic/claude-sonnet-4-5"), {}, NOTHING)
    assert models is not None
    with pytest.raises(UserError) as caught:
        require_keys(models)
    assert "gpt-4o-mini needs OPENAI_API_KEY" in str(caught.value)
    assert "claude-sonnet-4-5 needs ANTHROPIC_API_KEY" in str(caught.value)
    assert "COMPRESSION_EVAL_API_KEY" in str(caught.value)


def test_a_models_parameters_are_part_of_what_makes_results_comparable() -> None:
    config = ModelConfig(answer="a", judge="j", params={"j": ModelParams(seed=3, reasoning_effort="low")})
    models = resolve(ModelFlags(), {}, config)
    assert models is not None
    assert models.params == {"j": {"seed": 3, "reasoning_effort": "low"}}
    assert models.identity("a") == {}
    assert models.identity("j") == {"params": '{"reasoning_effort":"low","seed":3}'}


def test_what_the_program_decides_itself_is_no_parameter() -> None:
    for name in ("max_tokens", "n", "api_base", "stream"):
        with pytest.raises(ValueError, match=name):
            ModelParams.model_validate({name: 1})


def test_a_missing_key_is_told_before_litellm_is_imported(tmp_path: Path) -> None:
    """Its import takes seconds, and the message needs none of it."""
    script = (
        "import sys\nfrom bot.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    assert 'litellm' not in sys.modules, 'imported'\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(small.REPOSITORY)}
    ran = subprocess.run(
        [sys.executable, "-c", script, "run", "--model", "anthropic/claude-sonnet-4-5", "--quiet"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    assert "anthropic/claude-sonnet-4-5 needs ANTHROPIC_API_KEY" in ran.stderr
    assert "imported" not in ran.stderr


CLAUDE, GPT = "anthropic/claude-sonnet-4-5", "openai/gpt-4.1"
GENERAL = {"COMPRESSION_EVAL_API_KEY": "g" * 20}


def keys_of(environ: dict[str, str], **config: object) -> list[str | None]:
    models = resolve(ModelFlags(), environ, ModelConfig.model_validate(config))
    assert models is not None
    return [key and key.reveal() for key in (models.endpoint(model).key for model in models.distinct)]


def test_one_key_is_never_sent_to_two_providers() -> None:
    two = {"compressor": CLAUDE, "judge": GPT}
    assert keys_of(GENERAL, **two) == [None, None]
    assert keys_of(GENERAL | {"OPENAI_API_KEY": "o" * 20}, **two) == ["g" * 20, None], "litellm reads the other itself"
    assert keys_of(GENERAL | {"OPENAI_API_KEY": "o" * 20, "ANTHROPIC_API_KEY": "a" * 20}, **two) == [None, None]
    assert keys_of(GENERAL, compressor=GPT, judge="gpt-4.1-mini") == ["g" * 20, "g" * 20], "one provider, two names"
    servers = {"a": {"url": "https://one.example.com/v1"}, "b": {"url": "https://two.example.com/v1"}}
    assert keys_of(GENERAL, compressor="a", judge="b", endpoints=servers) == [None, None]
    servers["b"] = {"url": "http://127.0.0.1:1/v1"}
    assert keys_of(GENERAL, compressor="a", judge="b", endpoints=servers) == ["g" * 20, None], "a server of one's own"


@pytest.mark.parametrize(
    ("environ", "refused"),
    [
        (GENERAL, True),
        (GENERAL | {"OPENAI_API_KEY": "o" * 20}, False),
        ({"OPENAI_API_KEY": "o" * 20, "ANTHROPIC_API_KEY": "a" * 20}, False),
    ],
)
def test_what_to_set_in_place_of_the_shared_key_is_said(
    environ: dict[str, str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, environ.get(name, ""))
    models = resolve(ModelFlags(compressor=CLAUDE, judge=GPT), environ, NOTHING)
    assert models is not None
    if not refused:
        require_keys(models)
        return
    with pytest.raises(UserError) as caught:
        require_keys(models)
    assert f"ANTHROPIC_API_KEY for {CLAUDE}, OPENAI_API_KEY for {GPT}" in str(caught.value)


@pytest.mark.parametrize(
    ("handed", "config", "missing"),
    [
        (["COMPRESSION_EVAL_API_KEY"], {"compressor": CLAUDE, "judge": GPT}, "ANTHROPIC_API_KEY"),
        (["COMPRESSION_EVAL_API_KEY", "OPENAI_API_KEY"], {"compressor": CLAUDE, "judge": GPT}, None),
        (["COMPRESSION_EVAL_API_KEY"], {"compressor": GPT}, None),
        (
            ["COMPRESSION_EVAL_API_KEY"],
            {"judge": "ours", "endpoints": {"ours": {"url": "https://m.example.com/v1", "key_env": "OUR_KEY"}}},
            "OUR_KEY",
        ),
        ([], {}, None),
    ],
)
def test_a_workflow_that_cannot_hand_over_the_keys_is_told_before_it_starts(
    handed: list[str], config: dict[str, object], missing: str | None
) -> None:
    if missing is None:
        require_handed_over(ModelConfig.model_validate(config), handed)
        return
    with pytest.raises(UserError, match=missing):
        require_handed_over(ModelConfig.model_validate(config), handed)
