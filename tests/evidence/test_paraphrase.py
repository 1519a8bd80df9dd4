"""A fact that may be said in other words is told apart from a lost one, and never counted as kept."""

from __future__ import annotations

import pytest

from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Fact, Probe
from eval_core.evidence.fact_text import Haystack
from eval_core.evidence.facts import holds
from eval_core.evidence.paraphrase import possibly_paraphrased
from eval_core.evidence.retention import FixtureFacts, StateFacts

# Fact, text, whether the text may say it in other words.
CASES = (
    ("keep the old queue until March", "They retained the old queue through March.", True),
    ("we chose Postgres over SQLite", "Postgres was picked instead of SQLite.", True),
    ("never touch the ledger schema", "Do not modify the ledger schema under any circumstances.", True),
    ("never touch the ledger schema", "Feel free to modify the ledger schema.", False),
    ("wait for finance approval", "Blocked: finance has to approve first, so the work is on hold.", True),
    ("drop the retry loop", "The retry loop was removed.", True),
    ("drop the retry loop", "The retry loop was not removed.", False),
    ("raise the timeout to 30 seconds", "The timeout was increased to 30 seconds.", True),
    ("raise the timeout to 30 seconds", "The timeout was increased to 60 seconds.", False),
    ("rename the worker pool", "The worker dashboards were slow and a pool of money was found elsewhere.", False),
    ("fix the double delivery", "The double deliveries are resolved.", True),
    ("customer asked for a refund", "A client requested a refund.", True),
    ("relay/config.py", "the configuration of relay", False),
    ("401", "four hundred and one", False),
    ("use feature flags for the rollout", "The weather was fine and nobody said anything.", False),
)


@pytest.mark.parametrize(("value", "text", "close"), CASES)
def test_a_passage_with_the_words_of_a_fact_is_a_candidate(value: str, text: str, close: bool) -> None:
    fact, haystack = Fact(fact=value), Haystack.of(text)
    assert not holds(fact, haystack)
    assert possibly_paraphrased(fact, haystack) is close


def test_a_paraphrase_is_shown_and_not_counted_as_kept() -> None:
    said = "we decided to drop the retry loop"
    messages = [{"role": role, "content": text} for role, text in (("user", said), ("assistant", "yes"))] * 2
    fixture = Fixture(name="one", messages=messages)
    state = Haystack.of("The retry loop was removed.")
    probe = Probe(
        id="loop", type="decision", question="What became of it?", expected_facts=[Fact(fact="drop the retry loop")]
    )
    record = StateFacts(state, Haystack.of(""), FixtureFacts(fixture)).probe(probe, None)[0]
    assert (record.kept, record.paraphrased, record.status) == (False, True, "paraphrased")
