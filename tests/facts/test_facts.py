"""Facts are found where a careful reader would find them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.probe import FACT_KINDS, Fact, FactKind
from eval_core.facts.fact_text import Haystack, infer_kind, normalise
from eval_core.facts.haystack import holds, states_superseded, value_in

FULL = "3f9c2d81e07a4b56c1d2e3f405162738495a6b7c"

# (value, kind or None to let it be inferred, text, found)
CASES: list[tuple[str, FactKind | None, str, bool]] = [
    # numbers
    ("401", None, "the call returned 401.", True),
    ("401", None, "request 4012 failed", False),
    ("401", None, "took 1401 ms", False),
    ("401", None, "codes 401,403", True),
    ("403", "error", "codes 401,403", True),
    ("401", None, "saved 1,401 rows", False),
    ("412", None, "wrote 412,000 rows", False),
    ("1.5", None, "raised to 1.5.", True),
    ("1.5", None, "on 1.50.2", False),
    ("1.5", None, "took 11.5 s", False),
    ("1.5", None, "now 1.5.1", False),
    ("5", "number", "it is .5 now", False),
    ("12000", None, "about 12,000 rows", True),
    ("12,000", None, "about 12000 rows", True),
    ("1234567", None, "total 1,234,567 bytes", True),
    ("1_000", None, "limit 1000", True),
    ("12000", None, "about 12\u202f000 rows", True),
    ("500", None, "a 500ms timeout", True),
    ("500", None, "about 500k users", False),
    ("500ms", None, "a timeout of 500 ms", True),
    ("500ms", None, "a timeout of 5000 ms", False),
    ("15%", None, "down 15 percent", True),
    ("15%", None, "down 115%", False),
    ("-5", None, "an offset of -5", True),
    ("-5", None, "an offset of 5", False),
    ("42", None, "共有42个文件", True),
    ("42", None, "value=42;", True),
    ("42", None, "x42 and 42x7", False),
    # errors
    ("HTTP 401", None, "got a 401 Unauthorized", True),
    ("HTTP 401", None, "got a 4012", False),
    ("exit code 2", None, "the job exited with code 2", True),
    ("exit code 2", None, "there were 2 files", False),
    ("exit code 2", None, "exit code 23", False),
    ("ECONNREFUSED", None, "connect ECONNREFUSED 127.0.0.1:5432", True),
    ("TS2345", None, "error TS23451", False),
    ("KeyError: 'union_id'", None, "raised KeyError: ‘union_id’", True),
    # pull requests and issues
    ("#412", None, "opened #412 today", True),
    ("#412", None, "see PR 412", True),
    ("#412", None, "pull request #412", True),
    ("PR #412", None, "https://git.example.com/a/b/pull/412", True),
    ("#412", None, "issue 412 stays open", True),
    ("#412", None, "acme/widgets#412", True),
    ("#412", None, "opened #4120", False),
    ("#412", None, "PR 4120", False),
    ("#412", None, "it costs $412", False),
    ("#412", None, "412 files", False),
    ("#412", None, "colour #412abc", False),
    ("#412", None, "&#412;", False),
    ("#412", None, "PRs 410, 411 and 412", True),
    ("#412", None, "gh pr view 412 --json title", True),
    ("#412", None, "PR changes 412 files", False),
    ("#412", None, "number: 412", True),
    ("#412", None, "**\\#412** is merged", True),
    # versions
    ("v1.2.3", None, "release 1.2.3", True),
    ("1.2.3", None, "tag v1.2.3", True),
    ("v1.2", None, "tag v1.2.3", False),
    ("1.2.3", None, "tag 1.2.30", False),
    ("1.2.3", None, "tag 1.2.3-rc1", False),
    ("1.2.3-rc1", None, "tag v1.2.3-rc1", True),
    ("1.2.3", None, "tag 11.2.3", False),
    ("1.2", "version", "1.2.x only", False),
    ("3.11.4", None, "python3.11.4 was used", True),
    ("v2", None, "2 files", False),
    ("v2", None, "the v2 API", True),
    # hashes
    ("3f9c2d8", None, f"commit {FULL}", True),
    (FULL, None, "commit 3f9c2d8 fixed it", True),
    (FULL, None, "commit 3F9C2D81E fixed it", True),
    (FULL, None, "commit 3f9c2d", False),
    ("3f9c2d8", None, "commit 3f9c2d9", False),
    ("3f9c2d8", None, "commit a3f9c2d8", False),
    ("3f9c2d8", None, "v1.4-3-g3f9c2d8", True),
    ("3f9c2d81", None, "3f9c2d8…", True),
    # paths
    ("run.py", None, "gateway/run.py", True),
    ("gateway/run.py", None, "/home/u/p/gateway/run.py", True),
    ("gateway/run.py", None, "gateway/run.py:41", True),
    ("gateway/run.py", None, "mygateway/run.py", False),
    ("gateway/run.py", None, "run.py", False),
    ("run.py", None, "rerun.py", False),
    ("run.py", None, "run.pyc", False),
    ("run.py", None, "run.py.bak", False),
    ("run.py", None, "Look at run.py.", True),
    ("run.py", None, "my-run.py", False),
    ("gateway/run.py", None, "gateway\\run.py", True),
    ("gateway\\run.py", None, "C:\\src\\gateway\\run.py", True),
    ("src/new.ts", None, "src\\new.ts", True),
    ("src/gateway", None, "src/gateway/run.py", False),
    ("src/gateway/", None, "src/gateway/run.py", True),
    ("/etc/hosts", None, "edit /etc/hosts first", True),
    ("/etc/hosts", None, "backup/etc/hosts", False),
    ("/api/v1/users", None, "GET http://localhost:8080/api/v1/users?page=2", True),
    ("/api/v1/users", None, "GET https://api.example.com/api/v1/users", True),
    ("/api/v1/users", None, "GET /api/v1/users2", False),
    ("~/.config/app.toml", None, "/home/u/.config/app.toml", True),
    (".env", None, "wrote .env.local", False),
    (".env", None, "wrote app/.env", True),
    (".env", None, "process.env", False),
    ("my_mod.py", None, "see my\\_mod.py", True),
    ("feature/login", None, "pushed origin/feature/login", True),
    ("feature/login", None, "pushed feature/login-2", False),
    # hosts and addresses
    ("api.example.com", None, "https://api.example.com/v1/x", True),
    ("api.example.com", None, "api.example.com:8443", True),
    ("example.com", None, "api.example.com", False),
    ("api.example.com", None, "api.example.com.evil.test", False),
    ("api.example.com", None, "at api.example.com.", True),
    ("10.0.0.5", None, "10.0.0.51", False),
    ("10.0.0.5", None, "ping 10.0.0.5:22", True),
    ("localhost:8080", None, "http://localhost:80801", False),
    ("https://api.example.com/v1", None, "POST https://api.example.com/v1/users", True),
    ("https://api.example.com/v1", None, "http://api.example.com/v1", False),
    ("https://api.example.com/v1", None, "base is api.example.com/v1", True),
    ("https://api.example.com/v1", None, "https://api.example.com/v10", False),
    ("https://api.example.com/", None, "https://api.example.com", True),
    # identifiers
    ("user_id", None, "the `user_id` column", True),
    ("user_id", None, "user\\_id", True),
    ("user_id", None, "user_ids", False),
    ("user_id", None, "last_user_id", False),
    ("user_id", None, "row.user_id.strip()", True),
    ("user_id", None, "user id", False),
    ("parseConfig", None, "parseConfigFile", False),
    ("parseConfig()", None, "call parseConfig(path)", True),
    ("web-1", None, "web-10 and web-1-old", False),
    ("max-retries", None, "pass --max-retries 5", True),
    ("max-retries", None, "pass --db-max-retries 5", False),
    ("orders.created", None, "topic orders.created.v2", False),
    ("orders.created", None, "topic orders.created, then", True),
    # cron
    ("0 9 * * 1-5", None, "schedule: `0  9 * * 1-5`", True),
    ("0 9 * * 1-5", None, "moved to 0 9 * * 1-5, which nobody minds", True),
    ("0 9 * * 1-5", None, "0 9 * * 1-5,0", False),
    ("0 9 * * 1", None, "0 9 * * 1-5", False),
    ("0 9 * * 1", None, "30 0 9 * * 1", False),
    ("0 9 * * *", None, "10 9 * * *", False),
    ("*/5 * * * *", None, "runs ***/5 * * * ***", True),
    ("*/5 * * * *", None, "runs \\*/5 \\* \\* \\* \\* now", True),
    ("0 9 * * *", None, "0 9 * * * /usr/bin/backup", True),
    # text, unicode, markdown, CJK
    ("Postgres", None, "we chose **Postgres**.", True),
    ("Postgres", None, "PostgresQL", False),
    ("210", None, "2**10 bytes", False),
    ("chose Postgres", None, "we chose **Postgres** today", True),
    ("src/**/*.py", None, "lint src/**/*.py now", True),
    ("at-least-once", "text", "at least once delivery", True),
    ("read only", None, "the read-only replica", True),
    ("deploy to staging", None, "deploy\n   to staging", True),
    ("don't restart", None, "Don’t restart the worker", True),
    ("blue–green", None, "blue-green rollout", True),
    ("retry", None, "re\u200btry later", True),
    ("caf", "text", "café", False),
    ("Ｒｅｄｉｓ", None, "use redis", True),
    ("ﬁle lock", None, "a file lock", True),
    ("缓存", None, "使用Redis缓存层", True),
    ("Redis", None, "使用Redis缓存层", True),
    ("部署到生产", None, "明天部署到生产环境", True),
    ("Übergabe", None, "die übergabe läuft", True),
    ("python 3.1", "text", "python 3.11", False),
    ("python 3.1", "text", "python 3.1.4", False),
    ("port 8080", None, "on port 80801", False),
    ("2026-03-12", None, 'at = "2026-03-12T04:30:00Z"', True),
    ("2026-03-12", None, "2026-03-123", False),
    ("04:30", None, "2026-03-12T04:30Z", True),
    ("04:30", None, "at 14:30", False),
    ('says "no"', None, "it says “no” twice", True),
]


@pytest.mark.parametrize(("value", "kind", "text", "found"), CASES)
def test_a_value_is_found_where_it_stands_and_only_there(
    value: str, kind: FactKind | None, text: str, found: bool
) -> None:
    assert holds(Fact(fact=value, kind=kind), Haystack.of(text)) is found


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("run.py", "path"),
        ("gateway/run.py", "path"),
        ("C:\\src\\a.cfg", "path"),
        ("deploy.sh", "path"),
        ("Dockerfile", "path"),
        ("https://a.example/x", "url"),
        ("github.com/acme/app", "url"),
        ("api.example.com", "host"),
        ("10.0.0.5:22", "host"),
        ("localhost:8080", "host"),
        ("logger.info", "identifier"),
        ("user_id", "identifier"),
        ("parseConfig", "identifier"),
        ("web-1", "identifier"),
        ("3f9c2d8", "hash"),
        ("1234567", "number"),
        ("v1.2", "version"),
        ("1.2.3", "version"),
        ("1.5", "number"),
        ("500ms", "number"),
        ("#412", "pr"),
        ("issue 412", "pr"),
        ("pull/412", "pr"),
        ("ECONNREFUSED", "error"),
        ("HTTP 401", "error"),
        ("exit code 2", "error"),
        ("ValueError: bad literal", "error"),
        ("0 9 * * 1-5", "cron"),
        ("@daily", "cron"),
        ("two phase commit", "text"),
        ("24/7", "text"),
        ("缓存", "text"),
    ],
)
def test_the_kind_is_read_off_the_form(value: str, kind: str) -> None:
    assert infer_kind(value) == kind


def test_one_alternative_suffices_for_any_and_every_value_for_all() -> None:
    haystack = Haystack.of("the key is user_id")
    assert holds(Fact(any=["union_id", "user_id"]), haystack)
    assert not holds(Fact(all=["union_id", "user_id"]), haystack)
    assert holds(Fact(all=["key", "user_id"]), haystack)


def test_a_regex_ignores_case_and_sees_the_text_with_and_without_markdown() -> None:
    haystack = Haystack.of("Timeout is **30** seconds\nsecond line")
    assert holds(Fact(regex=r"timeout is 30 sec"), haystack)
    assert holds(Fact(regex=r"\*\*30\*\*"), haystack)
    assert not holds(Fact(regex=r"timeout is 300"), haystack)


def test_no_value_is_found_across_two_texts_prepared_together() -> None:
    haystack = Haystack.of_all(["deploy to", "staging now"])
    assert not holds(Fact(fact="deploy to staging"), haystack)
    assert holds(Fact(fact="staging now"), haystack)


def test_escapes_of_broken_json_hide_nothing() -> None:
    haystack = Haystack.of('{"output": "wrote a/run.py\\nok", "trunc')
    assert holds(Fact(fact="a/run.py"), haystack)


SUPERSEDED: list[tuple[str, str, bool]] = [
    ("SQLite", "We use SQLite.", True),
    ("SQLite", "The database is SQLite, not Postgres.", True),
    ("SQLite", "Moved from SQLite to Postgres.", False),
    ("SQLite", "It was migrated from SQLite and flat files to Postgres.", False),
    ("SQLite", "The service no longer uses SQLite.", False),
    ("SQLite", "Postgres, not SQLite.", False),
    ("SQLite", "We don't use SQLite any more.", False),
    ("SQLite", "Use Postgres instead of SQLite.", False),
    ("SQLite", "Postgres rather than SQLite", False),
    ("SQLite", "We replaced SQLite with Postgres.", False),
    ("SQLite", "SQLite was replaced by Postgres.", False),
    ("SQLite", "We replaced Postgres with SQLite.", True),
    ("SQLite", "Postgres was replaced by SQLite.", True),
    ("SQLite", "Moved from Postgres to SQLite.", True),
    ("SQLite", "SQLite -> Postgres", False),
    ("SQLite", "Postgres → SQLite", True),
    ("SQLite", "Data is loaded from SQLite at start.", True),
    ("SQLite", "Not Postgres but SQLite.", True),
    ("SQLite", "Originally SQLite, now Postgres.", False),
    ("SQLite", "Previously Postgres, now SQLite.", True),
    ("SQLite", "It used to be SQLite.", False),
    ("SQLite", "We chose Postgres over SQLite.", False),
    ("SQLite", "We chose SQLite over Postgres.", True),
    ("SQLite", "SQLite is no longer used; Postgres is.", False),
    ("SQLite", "~~SQLite~~ Postgres", False),
    ("SQLite", "SQLite (superseded), Postgres since Tuesday", False),
    ("SQLite", "We dropped Postgres in favour of SQLite.", True),
    ("SQLite", "Not only Postgres: SQLite is in use too.", True),
    ("SQLite", "Moved from SQLite to Postgres.\nThe database is SQLite.", True),
    ("SQLite", "Nothing about it.", False),
    ("SQLite", "SQLite has since been replaced.", False),
    ("SQLite", "We considered SQLite but went with Postgres.", False),
    ("SQLite", "We stayed on SQLite.", True),
    ("SQLite", "Switched to SQLite from Postgres.", True),
    ("SQLite", "The initial plan was SQLite. Now it is Postgres.", False),
    ("SQLite", "Nicht mehr SQLite, sondern Postgres.", False),
    ("triggers", "Dual write by triggers was reverted.", False),
    ("AGENTS.md", "`.lantern.md` comes first, ahead of AGENTS.md.", True),
    ("8471", "Port 8493, replacing the old 8471.", False),
    ("8471", "Port 8471 is taken by the sidecar.", True),
    ("12 June", "The author can object until 12 June.", True),
    ("12 June", "Moved from 12 June to 19 June.", False),
    ("48", "The limit was lowered to 12 (it had been 48).", False),
    ("SQLite", "数据库从MySQL开始,我们不再使用SQLite", False),
    ("SQLite", "数据库是SQLite", True),
    ("500", "The limit was 500, now 200.", False),
    ("500", "The limit was 500. It is now 200.", False),
    ("500", "The limit was 500.", True),
    ("500", "The limit is 500.", True),
    ("500", "Lowered from 500 to 200.", False),
    ("500", "Raised from 200 to 500.", True),
    ("500", "The limit is 5000.", False),
    ("500", "200 (previously 500)", False),
    ("blue-green", "The user rejected the blue-green rollout.", False),
]


@pytest.mark.parametrize(("value", "answer", "stated"), SUPERSEDED)
def test_telling_that_a_value_was_replaced_is_not_stating_it(value: str, answer: str, stated: bool) -> None:
    assert states_superseded(Fact.model_validate({"not": value}), Haystack.of(answer)) is stated


def test_a_superseded_value_is_held_by_any_text_that_mentions_it() -> None:
    fact = Fact.model_validate({"not": "SQLite"})
    assert holds(fact, Haystack.of("moved from SQLite to Postgres"))
    assert not states_superseded(Fact(fact="SQLite"), Haystack.of("We use SQLite."))


@given(st.text(max_size=300))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(alphabet="ab01_*`\\/,.'\u200b\u0301 İß½…→\n\"nrt", max_size=60))
def test_normalising_marks_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


LAYOUT = (
    "[a](b/c)", "[![a](b.c)](d/e)", "__Redis__", "__NOT__", "*a, b*", "_a b_", "\n> a", "\n", "5M", "10⁶", "a—b",
    "codes 401,403", "401,403  rows", '"a"',
)  # fmt: skip


@given(st.lists(st.sampled_from(LAYOUT), max_size=8).map(" ".join))
def test_normalising_layout_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(max_size=80), st.text(max_size=200), st.sampled_from(FACT_KINDS))
def test_no_value_and_no_text_breaks_a_lookup(value: str, text: str, kind: FactKind) -> None:
    infer_kind(value)
    value_in(value, kind, Haystack.of(text))
    if value.strip():
        states_superseded(Fact.model_validate({"not": value, "kind": kind}), Haystack.of(text))


WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True)
VALUES = st.one_of(
    WORDS,
    st.builds("/".join, st.lists(WORDS, min_size=2, max_size=4)),
    st.builds(lambda stem: f"{stem}.py", WORDS),
    st.integers(0, 10**9).map(str),
    st.builds("{}.{}.{}".format, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)),
    st.integers(1, 99999).map(lambda number: f"#{number}"),
    st.from_regex(r"[0-9a-f]{7,40}", fullmatch=True),
    st.builds("https://{}.example.com/{}".format, st.from_regex(r"[a-z]{1,8}", fullmatch=True), WORDS),
    st.builds("{} {} * * {}".format, st.integers(0, 59), st.integers(0, 23), st.integers(0, 6)),
    st.text(alphabet="日本語中文缓存部署", min_size=1, max_size=8),
)


@given(VALUES)
def test_a_value_is_always_found_in_itself_and_between_spaces(value: str) -> None:
    kind = infer_kind(value)
    assert value_in(value, kind, Haystack.of(value))
    assert value_in(value, kind, Haystack.of(f"see {value} here"))
    assert value_in(value, kind, Haystack.of(f"see **{value}**, `{value}`"))


@given(st.integers(0, 10**7), st.integers(0, 9))
def test_a_digit_appended_makes_another_number(number: int, digit: int) -> None:
    assert value_in(str(number), "number", Haystack.of(f"it was {number} then"))
    assert not value_in(str(number), "number", Haystack.of(f"it was {number}{digit} then"))


@given(st.from_regex(r"[a-z][a-z_]{2,10}", fullmatch=True), st.from_regex(r"[a-z0-9_]{1,5}", fullmatch=True))
def test_a_longer_identifier_is_another_one(name: str, more: str) -> None:
    assert not value_in(name, "identifier", Haystack.of(f"call {name}{more} now"))


def test_many_near_misses_in_a_long_text_are_looked_through_quickly() -> None:
    # Quadratic matching would not return from this within the life of a test run.
    haystack = Haystack.of("4012 " * 200_000 + "exit code 23 " * 20_000)
    assert not value_in("401", "number", haystack)
    assert not value_in("exit code 2", "error", haystack)
    assert not value_in("#401", "pr", haystack)
    assert value_in("b", "text", Haystack.of("a" + "*" * 200_001 + " b"))
    current = Fact.model_validate({"not": "SQLite"})
    assert states_superseded(current, Haystack.of("We use SQLite and " * 2_000))
    assert not states_superseded(current, Haystack.of("not SQLite " * 5_000))
