"""A fact that may be said in other words is told apart from a lost one, and never counted as kept."""

from __future__ import annotations

import pytest

from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Fact, Probe
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.paraphrase import possibly_paraphrased
from eval_core.facts.retention import FixtureFacts, StateFacts

# Fact, text, whether the text may say it in other words.
CASES = (
    ("keep the old queue until March", "They retained the old queue through March.", True),
    ("we chose Postgres over SQLite", "Postgres was chosen instead of SQLite.", True),
    ("never touch the ledger schema", "The schema of the ledger must not be touched.", True),
    ("never touch the ledger schema", "Feel free to modify the ledger schema.", False),
    ("wait for finance approval", "Finance has to give approval; until then we wait.", True),
    ("drop the retry loop", "The retry loop was dropped.", True),
    ("drop the retry loop", "The retry loop was not dropped.", False),
    ("raise the timeout to 30 seconds", "The timeout was increased to 30 seconds.", True),
    ("raise the timeout to 30 seconds", "The timeout was increased to 60 seconds.", False),
    ("rename the worker pool", "The worker dashboards were slow and a pool of money was found elsewhere.", False),
    ("fix the double delivery", "The double deliveries are fixed.", True),
    ("customer asked for a refund", "A refund is what the customer asked for.", True),
    ("relay/config.py", "the configuration of relay", False),
    ("401", "four hundred and one", False),
    ("use feature flags for the rollout", "The weather was fine and nobody said anything.", False),
)


@pytest.mark.parametrize(("value", "text", "close"), CASES)
def test_a_passage_with_the_words_of_a_fact_is_a_candidate(value: str, text: str, close: bool) -> None:
    fact, haystack = Fact(fact=value), Haystack.of(text)
    assert not holds(fact, haystack)
    assert possibly_paraphrased(fact, haystack) is close


# A decision, the same in other words, and something else with some of its words.
FIRST = (
    (
        "do not deploy on Fridays",
        "No Friday releases: deployments are Monday to Thursday only.",
        "The Friday lunch was moved; deploy keys were rotated on Tuesday without trouble.",
    ),
    (
        "use Postgres instead of SQLite",
        "The team settled on Postgres; SQLite is out.",
        "The SQLite file is read by the importer and the tests use fixtures.",
    ),
    (
        "keep the public API unchanged",
        "The public API has to stay as it is.",
        "The public holiday list is fetched from an API and kept in memory for a day.",
    ),
    (
        "the pull request stays open until Thursday",
        "Leave the pull request open till Thursday.",
        "On Thursday the office stays closed; requests are answered on Friday.",
    ),
    (
        "finance must sign off before the cut-over",
        "The cut-over needs finance's approval first.",
        "Finance asked for a new dashboard. The cut in the cable was fixed.",
    ),
    (
        "rename the column to gross_minor",
        "The column is now called gross_minor.",
        "The column order of the report was changed by the vendor.",
    ),
    (
        "never edit schema/ledger.sql",
        "schema/ledger.sql is off limits and must not be changed.",
        "The editor crashed twice while the schema tests ran.",
    ),
    (
        "retry failed jobs three times",
        "Failed jobs are retried up to 3 times.",
        "Jobs are started by hand. Three engineers share the on-call duty.",
    ),
    (
        "drop support for Python 3.9",
        "Python 3.9 is no longer supported.",
        "Support answered that the Python 3.11 image is ready.",
    ),
    (
        "write tests before the refactoring",
        "Tests come first; the refactoring follows once they are written.",
        "The tests are slow and the linter complains about long lines.",
    ),
    (
        "the cache is cleared every night",
        "Every night the cache gets emptied.",
        "Every test passed and the cache hit rate was 80 %.",
    ),
    (
        "log warnings to stderr only",
        "Warnings go to stderr and nowhere else in the log.",
        "The log is rotated weekly. There was one warning about disk space.",
    ),
    (
        "the customer wants weekly reports",
        "Reports are to be sent weekly, as the client asked.",
        "The weekly meeting was cancelled and nobody wrote a report about the customer.",
    ),
    (
        "do not restart the scheduler during imports",
        "While an import runs, the scheduler must never be restarted.",
        "The scheduler imports its jobs from a file and may be restarted at will.",
    ),
    (
        "move the backups to cold storage",
        "Backups get migrated into cold storage.",
        "Storage costs rose. Backups ran at 02:00 and took an hour.",
    ),
    (
        "the first match wins",
        "Only the earliest match counts and wins.",
        "The first run failed; the second matched the expected output.",
    ),
    (
        "increase the batch size to 500",
        "Batch size was raised to 500.",
        "The batch job failed 500 times because of the size of its log.",
    ),
    (
        "no network access at boot",
        "At boot the process must come up without touching the network.",
        "Access to the network share is slow after boot because of DNS.",
    ),
    (
        "revert the commit that broke login",
        "Login broke, so that commit was rolled back.",
        "The login page was restyled in the last commit and looks fine.",
    ),
    (
        "store amounts as integers",
        "Amounts are kept as whole integers, not floats.",
        "The store opens at nine and integers are parsed by the reader.",
    ),
)
SECOND = (
    (
        "publish the draft on Monday",
        "The draft will go out Monday once published by the editor.",
        "On Monday the build was red; a draft of the agenda exists.",
    ),
    (
        "do not log customer names",
        "Customer names must be left out of the logs; never log them.",
        "The customer called about a log entry with a wrong amount.",
    ),
    (
        "cap the queue at 1000 entries",
        "The queue holds at most 1000 entries.",
        "The queue was empty and 1000 requests were served.",
    ),
    (
        "the nightly job owns the lock",
        "Ownership of the lock lies with the nightly job.",
        "The nightly build failed, someone lost the key to the lock.",
    ),
    (
        "disable autoscaling during the migration",
        "Autoscaling is turned off while the migration runs.",
        "The migration took two hours. Later the autoscaling bill was paid.",
    ),
    (
        "ask Noor before touching billing",
        "Check with Noor first if billing needs to be changed.",
        "Noor wrote the billing report and asked for leave.",
    ),
    (
        "use feature flags for the rollout",
        "The rollout is guarded by feature flags.",
        "A flag was burnt. The feature is done.",
    ),
    (
        "the old endpoint returns 410",
        "Requests to the old endpoint get a 410 back.",
        "The endpoint list is in the old wiki.",
    ),
    ("never force-push to main", "Force-push on main is forbidden.", "Push notifications reach the main menu."),
    (
        "compress images before upload",
        "Images get compressed prior to being uploaded.",
        "The upload form shows images of cats.",
    ),
    ("reviewers need two approvals", "Two reviewers have to approve.", "Reviewers were busy; two builds failed."),
    (
        "prefer readability over speed",
        "Readability matters more than speed here; it is preferred.",
        "The speed of the disk is 500 MB/s.",
    ),
    (
        "split the module into reader and writer",
        "The module was divided: a reader and a writer.",
        "The writer of the module documentation left.",
    ),
    (
        "archive invoices after seven years",
        "Invoices older than 7 years are archived.",
        "Seven invoices were paid this year.",
    ),
    (
        "the fallback language is German",
        "German is what we fall back to as language.",
        "The German office closes early, the language course continues.",
    ),
    (
        "no new dependencies without approval",
        "New dependencies must be approved first; none without it.",
        "There are new colleagues and the dependency graph was drawn.",
    ),
    (
        "run the linter on every commit",
        "Each commit triggers the linter.",
        "The last commit was signed and the linter has a logo.",
    ),
    (
        "delete temporary files on exit",
        "On exit, temporary files are removed.",
        "The exit of the building is blocked by files.",
    ),
    (
        "the mobile team tests the beta",
        "Testing of the beta is done by the mobile team.",
        "The team met at the mobile home exhibition.",
    ),
    (
        "pin the compiler to 13.2",
        "The compiler stays pinned at 13.2.",
        "The compiler course has 13 chapters and 2 authors.",
    ),
)


def test_half_of_the_paraphrased_decisions_are_candidates_and_hardly_anything_else_is() -> None:
    cases = FIRST + SECOND
    said = [fact for fact, same, _ in cases if possibly_paraphrased(Fact(fact=fact), Haystack.of(same))]
    false = [fact for fact, _, other in cases if possibly_paraphrased(Fact(fact=fact), Haystack.of(other))]
    kept = [fact for fact, *texts in cases for text in texts if holds(Fact(fact=fact), Haystack.of(text))]
    assert (len(cases), len(said), len(false), kept) == (40, 25, 4, [])


def test_a_paraphrase_is_shown_and_not_counted_as_kept() -> None:
    said = "we decided to drop the retry loop"
    messages = [{"role": role, "content": text} for role, text in (("user", said), ("assistant", "yes"))] * 2
    fixture = Fixture(name="one", messages=messages)
    state = Haystack.of("The retry loop was dropped.")
    probe = Probe(
        id="loop", type="decision", question="What became of it?", expected_facts=[Fact(fact="drop the retry loop")]
    )
    record = StateFacts(state, Haystack.of(""), FixtureFacts(fixture)).probe(probe, None)[0]
    assert (record.kept, record.paraphrased, record.status) == (False, True, "paraphrased")
