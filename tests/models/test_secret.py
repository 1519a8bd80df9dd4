from __future__ import annotations

import asyncio
import pickle
import secrets
from pathlib import Path

import pytest

from eval_core.domain.call import Failed
from eval_core.models.settings import Endpoint, Models, Secret, environment_secrets, redact
from tests.model_provider import LoopbackProvider

from .provider import bench, call


def test_a_key_shows_in_no_form_of_printing() -> None:
    value = secrets.token_hex(16)
    key = Secret(value)
    models = Models("m", "m", "m", key=key)
    for shown in (repr(key), str(key), f"{key}", repr(models), repr(Endpoint("m", "p", None, key)), repr([{"k": key}])):
        assert value not in shown
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_known_keys_and_whatever_looks_like_one_are_blotted_out() -> None:
    known, form = secrets.token_hex(12), "sk" + "-proj-" + secrets.token_hex(12)
    text = redact(f"bad key {known}; also {form} and Bearer {form}x", [known])
    assert known not in text
    assert form not in text
    assert redact("the risk-free path tasks/sk.py") == "the risk-free path tasks/sk.py"


def test_the_environment_is_searched_for_keys_by_name() -> None:
    value = secrets.token_hex(12)
    assert environment_secrets({"SOME_API_KEY": value, "HOME": "/home/somebody", "TOKEN": "short"}) == (value,)


def test_a_key_that_the_provider_quotes_back_reaches_neither_message_nor_journal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = "key" + secrets.token_hex(16)

    async def scene() -> str:
        provider = LoopbackProvider(behave=lambda asked: "401")
        from tests import model_provider as loopback

        original = loopback._ERRORS["401"]
        loopback._ERRORS["401"] = lambda: loopback._error(401, f"Incorrect API key provided: {value}.")
        try:
            async with bench(tmp_path, provider=provider, settings={"key": Secret(value)}) as at:
                failed = await at.client.complete(call())
                assert isinstance(failed, Failed)
                assert failed.kind == "auth"
                return failed.message + repr(at.client.out) + repr(vars(at.client.models))
        finally:
            loopback._ERRORS["401"] = original

    shown = asyncio.run(scene())
    assert "Incorrect API key provided" in shown
    output = capfd.readouterr()
    for text in (shown, (tmp_path / "journal.jsonl").read_text(), output.out, output.err):
        assert value not in text
