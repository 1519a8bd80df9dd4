"""What an honest summary says is never taken for invented, and prose is never taken for a fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_core.domain.case import Case
from eval_core.facts.census import Source, extract
from eval_core.facts.fact_text import Haystack
from eval_core.strands.invented import read_invented

# Twenty summaries of the shipped fixtures as models write them (shortened, joined, abbreviated), then twenty notes with
# paths and addresses put together in other ways. One of the summaries and two of the notes had a value taken for
# invented at the first measurement.
HONEST = [
    tuple(part.rstrip("\n").split("\n", 1))
    for part in (Path(__file__).parent / "honest_summaries.txt").read_text(encoding="utf-8").split("=== ")[1:]
]


def test_an_honest_summary_invents_nothing(shipped: list[Case]) -> None:
    sessions = {case.fixture.name: Haystack.of_messages(case.fixture.messages) for case in shipped}
    found = {(name, text): [item.value for item in read_invented([text], sessions[name])] for name, text in HONEST}
    assert len(HONEST) == 40
    assert {key: values for key, values in found.items() if values} == {}


def test_a_value_that_is_only_like_one_of_the_session_is_invented() -> None:
    session = Haystack.of("intake is 127.0.0.1, port 8413; STORE = Path.home() / '.scheduler' / 'jobs.json'; see #617.")
    honest = "http://127.0.0.1:8413/ reads ~/.scheduler/jobs.json (#617)"
    false = (
        "http://127.0.0.1:8414 reads ~/.scheduler/tasks.json and .planner/jobs.json (#618) for http://127.0.0.1:8413/x"
    )
    assert read_invented([honest], session) == []
    assert {item.value for item in read_invented([false], session)} == {
        "http://127.0.0.1:8414", "http://127.0.0.1:8413/x", ".scheduler/tasks.json", ".planner/jobs.json", "#618",
    }  # fmt: skip


def test_a_flood_of_invented_values_is_cut_short() -> None:
    flood = " ".join(f"src/m{number}.py" for number in range(100_000))
    assert len(read_invented([flood], Haystack.of("nothing of the kind " * 2_000))) == 40


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("assistant", "We pull 300 rows at a time, saw the issue 3 times, and PR 2 of 3 follows."),
        ("assistant", "It runs on Node.js behind Next.js."),
        ("assistant", "Answer yes/no/maybe; the order is settle/renew/reap/claim; it is CI/CD/CD."),
        ("assistant", "I removed console.log and read process.env, import.meta.env and Math.log."),
        ("assistant", "Phase-2 of the top-10, in UTF-8 with SHA-256 on x86-64, from 12.05.2024"),
        ("user", 'never "ever" do this'),
    ],
)
def test_nobody_would_call_it_a_fact(source: Source, text: str) -> None:
    assert list(extract(text, source)) == []


@pytest.mark.parametrize(
    "text", ["See PR #638.", "see #638, then", "issues/638", "PR 638 is open", "closes issue 638."]
)
def test_the_number_of_a_pull_request_is_read_wherever_a_sentence_ends(text: str) -> None:
    assert ("pr", "#638") in extract(text, "assistant")


@pytest.mark.parametrize(
    ("summary", "invented"),
    [
        ("It is in /srv/app/src/store/queue.py.", ["/srv/app/src/store/queue.py"]),
        ("It is in /work/relay/src/store/queue.py.", []),
        ("It is in /work/relay/docs/plan.md.", ["/work/relay/docs/plan.md"]),
        ("Logs: /var/log/relay/out.log", []),
        ("Logs: /var/log/relay/err.log", ["/var/log/relay/err.log"]),
        (
            "See https://relay.example/src/store/queue.py and src/store/queue.py",
            ["https://relay.example/src/store/queue.py"],
        ),
    ],
)
def test_an_absolute_path_is_known_only_with_its_folder(summary: str, invented: list[str]) -> None:
    session = Haystack.of("cd /work/relay\nsrc/store/queue.py writes /var/log/relay/out.log for https://relay.example")
    assert (
        sorted({item.value for item in read_invented([summary], session)} - {"relay/err.log", "docs/plan.md"})
        == invented
    )
