"""Every way in which a provider can fail, against a provider that really does."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Completion, Draw, Failed, Usage
from eval_core.domain.grade import Answer, Grade, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.grading import ModelJudge
from eval_core.models import transport
from eval_core.models.faults import Fault, fault_of, fault_of_status
from eval_core.models.health import ModelHealth
from tests.model_provider import MISBEHAVIOURS, Asked, LoopbackProvider

from .provider import MODEL, bench, call, only_first

STATE: list[Message] = [
    {"role": "user", "content": "Where does the retry limit live?"},
    {"role": "assistant", "content": "The retry limit lives in uploader/backoff.py and is 7."},
]
PROBE = Probe.model_validate(
    {"id": "p", "type": "recall", "question": "Where is the retry limit?", "expected_facts": ["uploader/backoff.py"]}
)
# What a call comes to when the provider always fails in this way, and how many requests that takes.
EXPECTED = {
    "429": ("rate_limit", 10), "429-retry-after": ("rate_limit", 12), "429-quota": ("payment", 3),
    "500": ("server", 6), "502": ("server", 6), "503": ("server", 6), "529": ("server", 6),
    "400": ("bad_request", 1), "401": ("auth", 3), "402": ("payment", 3), "403": ("auth", 3), "404": ("not_found", 3),
    "429-quota-day": ("rate_limit", 3),
    "context-length": ("context_length", 2), "html": ("malformed", 3), "broken-body": ("malformed", 3),
    "wrong-shape": ("malformed", 3), "error-with-200": ("server", 6), "empty": ("empty", 3), "null": ("empty", 3),
    "reasoning-only": ("empty", 3), "refusal": ("refusal", 3), "content-filter": ("refusal", 3),
    "tool-call": ("malformed", 3), "truncated": ("truncated", 3), "reset": ("connection", 6),
    "drip": ("timeout", 3), "hang": ("timeout", 3), "not-http": ("connection", 6),
}  # fmt: skip
UNREADABLE_GRADES = ("invalid-json", "wrong-schema", "out-of-range", "not-a-number")
HARMLESS = ("wrong-model", "no-usage", "absurd-usage", "truncated-late")


def test_every_misbehaviour_has_an_expectation() -> None:
    assert set(MISBEHAVIOURS) == {*EXPECTED, *UNREADABLE_GRADES, *HARMLESS}


def patience(fault: str) -> float:
    return 0.6 if fault in ("drip", "hang") else 20.0


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_provider_fault_is_named_and_tried_as_often_as_sensible(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, behave=lambda _: fault, usd=5.0, attempt_seconds=patience(fault)) as at:
            failed = await at.client.complete(call())
            assert isinstance(failed, Failed)
            assert (failed.kind, len(at.provider.asked)) == EXPECTED[fault]
            assert failed.message.startswith(f"{MODEL}: ")
            assert len(failed.message) < 500
            assert "Traceback" not in failed.message
            lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
            reasons = [line for line in lines if line["at"] != "sent"]
            assert len(reasons) == EXPECTED[fault][1]
            assert all(line["kind"] == failed.kind and line["reason"] for line in reasons)
            paid = at.provider.input_tokens + at.provider.output_tokens
            assert failed.usage.tokens == paid
            assert at.journal is not None
            assert at.journal.spent.tokens == paid
            assert at.client.budget is not None
            assert at.client.budget.spent_usd == pytest.approx(at.journal.spent.usd)
            assert at.client.budget.unsure_usd == pytest.approx(at.journal.spent.unsure_usd)
            assert at.client.budget.held_usd == 0

    asyncio.run(scene())


async def ask_and_grade(
    folder: Path, behave: Callable[[Asked], str | None], seconds: float
) -> tuple[object, list[Asked]]:
    async with bench(folder, behave=behave, usd=5.0, attempt_seconds=seconds) as at:
        answer = await ModelAnswerer(at.client).answer(STATE, PROBE, fixture="f", draw=Draw())
        if isinstance(answer, Unscored):
            return answer, at.provider.asked
        grade = await ModelJudge(at.client).grade(PROBE, answer.text, fixture="f", draw=Draw())
        return grade, at.provider.asked


def is_judge(asked: Asked) -> bool:
    return "artifact_trail" in str(asked.messages[0]["content"])


@pytest.mark.parametrize("fault", [*EXPECTED, *UNREADABLE_GRADES])
def test_a_fault_while_grading_leaves_the_probe_unscored_and_resume_completes_it(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        result, asked = await ask_and_grade(tmp_path, lambda a: fault if is_judge(a) else None, patience(fault))
        assert isinstance(result, Unscored)
        assert result.reason.startswith("no grade (")
        if fault in UNREADABLE_GRADES:
            assert Counter(map(is_judge, asked)) == {False: 1, True: 3}
            assert "could not be used" in asked[-1].last

        result, asked = await ask_and_grade(tmp_path, lambda a: None, 20.0)
        assert isinstance(result, Grade)
        assert result.overall > 4.5
        assert [is_judge(a) for a in asked] == [True]  # the answer was paid and is not asked for again

        result, asked = await ask_and_grade(tmp_path, lambda a: "500", 20.0)
        assert isinstance(result, Grade)
        assert not asked

    asyncio.run(scene())


@pytest.mark.parametrize("fault", [fault for fault in EXPECTED if fault != "truncated"])
def test_a_fault_while_answering_leaves_the_probe_unscored_and_resume_completes_it(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        result, _ = await ask_and_grade(tmp_path, lambda a: fault, patience(fault))
        assert isinstance(result, Unscored)
        assert result.reason.startswith(f"no answer ({EXPECTED[fault][0]})")
        result, asked = await ask_and_grade(tmp_path, lambda a: None, 20.0)
        assert isinstance(result, Grade)
        assert len(asked) == 2

    asyncio.run(scene())


@pytest.mark.parametrize("fault", [f for f, (_, tries) in EXPECTED.items() if tries > 1])
def test_a_passing_fault_is_survived_and_its_cost_is_not_forgotten(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, behave=only_first(fault), attempt_seconds=max(2.0, patience(fault))) as at:
            done = await at.client.complete(call())
            assert isinstance(done, Completion)
            assert len(at.provider.asked) == 2
            assert done.usage.tokens == at.provider.input_tokens + at.provider.output_tokens
            assert at.journal is not None
        async with bench(tmp_path, behave=lambda _: "500") as at:
            again = await at.client.complete(call())
            assert isinstance(again, Completion)
            assert again.cached
            assert (again.text, again.usage) == (done.text, done.usage)
            assert not at.provider.asked

    asyncio.run(scene())


def test_an_unreadable_grade_is_asked_for_again_with_the_reason_and_then_counts_once(tmp_path: Path) -> None:
    async def scene() -> None:
        seen: list[Asked] = []

        def behave(asked: Asked) -> str | None:
            if is_judge(asked):
                seen.append(asked)
            return "wrong-schema" if len(seen) == 1 and is_judge(asked) else None

        grade, _ = await ask_and_grade(tmp_path, behave, 20.0)
        assert isinstance(grade, Grade)
        assert "the JSON lacks accuracy" in seen[1].last
        grade_again, asked = await ask_and_grade(tmp_path, lambda _: "500", 20.0)
        assert grade_again == grade
        assert not asked

    asyncio.run(scene())


def test_an_answer_that_was_cut_off_is_asked_for_with_more_room_and_then_used_as_it_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, behave=lambda _: "truncated") as at:
            answer = await ModelAnswerer(at.client).answer(STATE, PROBE, fixture="f", draw=Draw())
            assert isinstance(answer, Answer)
            assert answer.text == '{"reason": "the answer'
            assert [asked.max_tokens for asked in at.provider.asked] == [700, 1400, 2800]
            assert answer.output_tokens == at.provider.output_tokens

    asyncio.run(scene())


def test_a_grade_that_is_whole_is_used_though_the_reply_was_cut_off_behind_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, behave=lambda _: "truncated-late") as at:
            grade = await ModelJudge(at.client).grade(PROBE, "uploader/backoff.py", fixture="f", draw=Draw())
            assert isinstance(grade, Grade)
            assert len(at.provider.asked) == 1

    asyncio.run(scene())


def test_a_refused_connection_costs_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
            async with bench(tmp_path, usd=5.0, settings={}) as at:
                object.__setattr__(at.client.models, "api_base", url)
                failed = await at.client.complete(call())
                assert isinstance(failed, Failed)
                assert (failed.kind, failed.retryable) == ("connection", True)
                assert not at.provider.asked
                assert at.client.budget is not None
                assert (at.client.budget.spent_usd, at.client.budget.unsure_usd) == (0, 0)

    asyncio.run(scene())


@pytest.mark.parametrize("server", ["unknown host", "another certificate", "no TLS at all"])
def test_a_connection_that_is_never_made_costs_nothing(server: str, tmp_path: Path) -> None:
    async def scene() -> None:
        context, host = None, "127.0.0.1"
        if server == "another certificate":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self_signed(tmp_path))
        elif server == "unknown host":
            host = "nobody.invalid"
        listening = await asyncio.start_server(_hang_up, "127.0.0.1", 0, ssl=context)
        url = f"https://{host}:{listening.sockets[0].getsockname()[1]}/v1"
        async with bench(tmp_path, usd=5.0) as at, listening:
            object.__setattr__(at.client.models, "api_base", url)
            failed = await at.client.complete(call())
            assert isinstance(failed, Failed)
            assert (failed.kind, failed.retryable) == ("connection", True)
            assert "check models.api_base and the network" in failed.message
            assert at.client.budget is not None
            assert (at.client.budget.spent_usd, at.client.budget.unsure_usd) == (0, 0)

    asyncio.run(scene())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_reply_without_end_is_dropped_before_it_fills_the_memory(packed: bool) -> None:
    async def scene() -> None:
        sent = 0
        part = b" " * 2**20
        if packed:
            part = zlib.compress(part * 40, wbits=31)  # one part unpacks to five times the limit

        async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Encoding: gzip\r\n\r\n" if packed else b"\r\n")
            with suppress(ConnectionError):
                for _ in range(200):
                    writer.write(part)
                    await writer.drain()
                    sent += len(part)
            writer.close()

        listening = await asyncio.start_server(endless, "127.0.0.1", 0)
        async with listening, bench() as at:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
            object.__setattr__(at.client.models, "api_base", url)
            failed = await at.client.complete(call())
            assert isinstance(failed, Failed)
            assert (failed.kind, failed.retryable) == ("malformed", True)
            assert "the reply is larger than 8,388,608 bytes" in failed.message
            assert sent < 3 * 30 * 2**20

    asyncio.run(scene())


def self_signed(folder: Path) -> Path:
    """Write a key and a certificate for it that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    pem = serialization.Encoding.PEM
    path = folder / "self-signed.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + built.sign(key, hashes.SHA256()).public_bytes(pem)
    )
    return path


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def test_a_reply_from_another_model_is_used_and_named() -> None:
    async def scene() -> None:
        async with bench(behave=lambda _: "wrong-model") as at:
            done = await at.client.complete(call())
            assert isinstance(done, Completion)
            assert done.model == "another-model"
            assert at.client.served[MODEL] == {"another-model": 1}

    asyncio.run(scene())


@pytest.mark.parametrize("fault", ["no-usage", "absurd-usage"])
def test_usage_that_a_provider_does_not_tell_or_cannot_mean_is_counted_not_taken_for_zero(fault: str) -> None:
    async def scene() -> None:
        async with bench(behave=lambda _: fault) as at:
            done = await at.client.complete(call())
            assert isinstance(done, Completion)
            assert done.usage.input_tokens == at.provider.input_tokens
            assert done.usage.output_tokens == at.provider.output_tokens
            assert done.usage.cost_usd

    asyncio.run(scene())


@pytest.mark.parametrize("value", [-5_000, 10**30, True, 1.5, float("nan"), "12", None])
def test_through_litellm_a_usage_that_nobody_can_mean_is_counted_anew(value: object) -> None:
    response = SimpleNamespace(usage=SimpleNamespace(prompt_tokens=value, completion_tokens=value))
    counted = transport._usage(response, call(), "four short words here")
    assert counted == Usage(count_messages(call().messages), 0, count_text("four short words here"), None)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("502", "HTTP 502: an HTML page"),
        ("reset", "the connection broke off in the middle of the reply"),
        ("not-http", "what answers there does not speak HTTP"),
        ("402", "HTTP 402: out of credit; the account is out of credit or quota"),
        ("400", "check models.params and the model's name"),
    ],
)
def test_a_model_that_never_answered_is_named_with_what_to_do(fault: str, words: str) -> None:
    async def scene() -> None:
        async with bench(behave=lambda _: fault) as at:
            failed = await at.client.complete(call())
            assert isinstance(failed, Failed)
            assert words in failed.message

    asyncio.run(scene())


def test_a_page_of_a_proxy_is_told_by_its_title() -> None:
    page = "<!DOCTYPE html><html><head><title> Bad gateway\n</title></head><body>" + "x" * 5_000
    assert fault_of_status(502, page).message == "HTTP 502: an HTML page, 'Bad gateway'"


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (307, {"Location": "https://other.example/v1/"}, "HTTP 307: a redirect to https://other.example/v1/, which is"),
        (204, {}, "HTTP 204 without a word"),
    ],
)
def test_an_answer_without_words_is_told_all_the_same(status: int, headers: dict[str, str], said: str) -> None:
    assert fault_of_status(status, "", headers).message.startswith(said)


@pytest.mark.parametrize("body", ["<html>" + "<title>" * 100_000, "Error" * 200_000, '{"error":' * 100_000])
def test_an_error_of_any_length_is_read_in_no_time(body: str) -> None:
    began = time.process_time()
    assert len(fault_of_status(502, body).message) < 320
    assert time.process_time() - began < 1.0


def test_an_endless_wait_is_told_in_words_that_can_be_read() -> None:
    health = ModelHealth("m", lambda: 0.0)
    for _ in range(3):
        health.failed(Fault("rate_limit", "slow", "no", 1e20))
    assert health.out is not None
    assert "asks to wait more than a year" in health.out.message


@pytest.mark.parametrize("fault", ["401", "402", "404", "429-quota"])
def test_a_fault_that_every_call_would_meet_is_met_three_times(fault: str) -> None:
    async def scene() -> None:
        async with bench(behave=lambda _: fault, concurrency=1) as at:
            failures = await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(20)))
            assert len(at.provider.asked) == 3
            assert [f.kind for f in failures if isinstance(f, Failed)] == [at.client.out[MODEL].kind] * 20

    asyncio.run(scene())


def test_the_providers_wish_to_wait_is_kept() -> None:
    async def scene() -> None:
        async with bench(behave=only_first("429-retry-after")) as at:
            assert isinstance(await at.client.complete(call()), Completion)
            assert max(at.time.slept) >= 7.0

    asyncio.run(scene())


def test_an_answer_of_nothing_is_not_an_empty_answer() -> None:
    async def scene() -> None:
        async with bench(provider=LoopbackProvider(reply=lambda _: "  \n ")) as at:
            result = await ModelAnswerer(at.client).answer(STATE, PROBE, fixture="f", draw=Draw())
            assert isinstance(result, Unscored)
        async with bench() as at:
            result = await ModelAnswerer(at.client).answer(STATE, PROBE, fixture="f", draw=Draw())
            assert isinstance(result, Answer)
            assert "uploader/backoff.py" in result.text

    asyncio.run(scene())


def test_an_unlisted_model_is_asked_for_a_schema_and_in_words_where_that_is_refused(tmp_path: Path) -> None:
    async def scene(behave: Callable[[Asked], str | None], folder: Path) -> list[bool]:
        result, asked = await ask_and_grade(folder, behave, 20.0)
        assert isinstance(result, Grade)
        return ["response_format" in one.body for one in asked if is_judge(one)]

    def refuse(asked: Asked) -> str | None:
        return "400" if "response_format" in asked.body else None

    assert asyncio.run(scene(lambda _: None, tmp_path / "follows")) == [True]
    assert asyncio.run(scene(refuse, tmp_path / "refuses")) == [True, False]


def test_a_reply_that_the_library_cannot_read_is_no_lost_connection_and_brings_no_traceback() -> None:
    class APIConnectionError(Exception):
        status_code = 500

    try:
        try:
            json.loads("<html>")
        except ValueError as exc:
            text = f"litellm.APIConnectionError: Expecting value\nTraceback (most recent call last):\n  File x\n{exc}"
            raise APIConnectionError(text) from exc
    except APIConnectionError as exc:
        fault = fault_of(exc)
    assert fault.kind == "malformed"
    assert fault.message == "Expecting value"
