from __future__ import annotations

import pytest

from eval_core.base.config import ModelConfig, ModelParams, Price
from eval_core.base.errors import UserError
from eval_core.models.settings import ModelFlags, Models, require_keys, resolve

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


def test_the_base_url_and_prices_follow_the_same_order() -> None:
    config = ModelConfig(
        judge="j", api_base="http://file/v1", prices={"j": Price(input=1, output=1), "k": Price(input=2, output=2)}
    )
    models = resolve(
        ModelFlags(prices={"j": Price(input=9, output=9)}), {"COMPRESSION_EVAL_API_BASE": "http://env/v1/"}, config
    )
    assert models is not None
    assert models.api_base == "http://env/v1"
    assert models.prices["j"].input == 9
    assert models.prices["k"].input == 2


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http:///v1", "http://me:pw@host/v1"])
def test_a_base_url_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(UserError, match="COMPRESSION_EVAL_API_BASE"):
        resolve(ModelFlags(), {"COMPRESSION_EVAL_MODEL": "m", "COMPRESSION_EVAL_API_BASE": url}, NOTHING)


def with_key(key: str, **settings: str) -> Models:
    environ = {"COMPRESSION_EVAL_MODEL": "m", "COMPRESSION_EVAL_API_KEY": key, **settings}
    models = resolve(ModelFlags(), environ, NOTHING)
    assert models is not None
    return models


def test_the_key_goes_to_the_base_url_and_to_nobody_else() -> None:
    key = "k" * 20
    models = with_key(key, COMPRESSION_EVAL_API_BASE="http://127.0.0.1:1/v1")
    local = models.endpoint("openai/local")
    assert local.key is not None
    assert (local.key.reveal(), local.api_base, local.model) == (key, "http://127.0.0.1:1/v1", "hosted_vllm/local")
    bare = models.endpoint("local")
    assert bare.model == "hosted_vllm/local"
    nested = models.endpoint("meta-llama/local-8b")  # a model's own name with a slash, not a provider
    assert (nested.model, nested.api_base) == ("hosted_vllm/meta-llama/local-8b", "http://127.0.0.1:1/v1")
    other = models.endpoint("anthropic/claude-sonnet-4-5")
    assert (other.key, other.api_base) == (None, None)


def test_without_a_base_url_names_are_left_to_litellm() -> None:
    models = with_key("k" * 20)
    assert models.endpoint("anthropic/claude-sonnet-4-5").provider == "anthropic"
    assert models.endpoint("gpt-4o-mini").provider == "openai"
    assert models.endpoint("gpt-4o-mini").api_base is None


def test_a_local_server_needs_no_key() -> None:
    models = resolve(ModelFlags(model="m", api_base="http://127.0.0.1:1/v1"), {}, NOTHING)
    assert models is not None
    assert models.endpoint("m").key is not None
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
