"""Every text of a result, replaced by hostile ones: refused by name, or inert in comment, page and terminal."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import adopted
import pytest
import small
from bot_rendering import LIVE, outside_code, references, render
from bot_tickets import ticket_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import LoopbackGitHub

from bot.pull_request.result_body import CommentContext, result_body
from bot.steps.artifact import read_result
from bot.steps.comment import MARKER, RESULT_BUDGET
from eval_core.base.config import load_config
from eval_core.base.errors import UserError
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html import render_html
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.terminal import console, print_report
from eval_core.reporting.view import make_view
from eval_core.storage.baselines import load_side

Json = dict[str, Any]
PAYLOADS = {
    "tags": "</code></td></table></details></script><h1>evil</h1><img src=x onerror=evil()><script>evil()</script>",
    "markdown": "`|` **evil** [evil](https://evil.invalid) ![evil](https://evil.invalid/p.png) | |\n# evil\n> evil",
    "mention": "@maintainer https://evil.invalid www.evil.invalid evil@evil.invalid",
    "reference": "#1 acme/agent#2 GH-3 deadbeef5 acme/agent@deadbeef6 &num;1 &#64;maintainer",
    "marker": f"{MARKER}\n<!-- evil --> ```\nevil\n```",
    "attribute": '" onmouseover="evil()" x=\'evil\' style="evil',
    "terminal": "\x1b]0;evil\x07\x1b[2J\x1b[31mevil\x9b31m\r\x08\x00\u202eevil\u2066",
    "template": "{{ 7*7 }}{% evil %}${evil}[[evil]] [bold red]evil[/] :rocket: %(evil)s {evil}",
    "address": "javascript:evil() data:text/html,evil //evil.invalid",
}

# Passes for a name: nothing in it is a sign that the bot refuses, and GitHub makes links and mentions of it.
NAME = "_www.evil.invalid evil@evil.invalid mailto:evil@evil.invalid xmpp:evil@evil.invalid \u00e9@maintainer"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LoopbackGitHub, Path, Json]]:
    """A base branch, and what an honest evaluation of a compressor with a lot to say would leave."""
    root = adopted.on_disk(adopted.base_tree(), tmp_path_factory.mktemp("base"))
    body: Json = json.loads(adopted.measured("opaque").model_dump_json())
    for runs in body["fixtures"].values():
        for run in runs:
            run["messages"] = []
            run["notes"] = ["a note"]
            run["output"], run["refused"] = "loading", "I will not do that."
            run["invented"] = [{"kind": "url", "value": "https://example.com/x"}]
            run["shown"] = {"calls": 1, "tokens": 5, "digest": "00", "headings": ["Goal", "State"], "facts": ""}
            run["form"] = {"sections": [{"label": "Goal", "tokens": 4}, {"label": "State", "tokens": 0}], "tokens": 9}
    last = body["fixtures"]["small-debug"][-1]
    last.update(outcome="target_error", detail="it broke", probes={})
    body["stopped"] = "the budget is used up"
    body["extra"]["served"] = {"m": {"other": 3}}
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github, root, body


def shapes(value: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the place of every text and every key, with `*` for what is repeated."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from shapes(item, (*where, key))
    elif isinstance(value, list):
        for item in value:
            yield from shapes(item, (*where, "*"))
    elif isinstance(value, str):
        yield where


def replaced(value: Any, pattern: tuple[str, ...], payload: str) -> Any:
    """Return a copy with every text at a place replaced."""
    if not pattern:
        return payload
    head, *rest = pattern
    if isinstance(value, list):
        return [replaced(item, tuple(rest), payload) for item in value]
    if isinstance(value, dict):
        wanted = [head] if head != "*" else list(value)
        return {k: replaced(v, tuple(rest), payload) if k in wanted else v for k, v in value.items()}
    return value


def general(place: tuple[str, ...]) -> tuple[str, ...]:
    """Put a star for names of fixtures and probes."""
    names = {"small-debug", "small-plan"} | {probe.id for case in small.cases() for probe in case.bank.probes}
    return tuple("*" if part in names else part for part in place)


def shown(world: tuple[LoopbackGitHub, Path, Json], body: Json, folder: Path) -> list[ReportData]:
    """Return what reports are made from: as the bot reads it, where it does not refuse it, and as a user opens it."""
    github, root, _ = world
    config = load_config(None, root)
    found = []
    (folder / "summary.json").write_text(json.dumps(body), encoding="utf-8")
    with contextlib.suppress(UserError):  # refused by name, in a sentence: test_publication looks at that
        found.append(read_result(ticket_for(github), config, root, folder))
    try:
        measurement = Measurement.model_validate(body)
    except ValueError:
        return found
    cases = {case.fixture.name: case for case in adopted.cases()}
    base = load_side(root / "baselines/offline.json")
    verdict, part = compare_measurements(base, measurement)
    return [*found, ReportData(measurement, base=part, verdict=verdict, base_path="b", cases=cases)]


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or ("evil.invalid" in (value or "") and name in ("href", "src", "style")):
                self.acting.append(f"{tag} {name}={value}")
            if name == "href" and (value or "").lower().startswith(("javascript:", "data:")):
                self.acting.append(f"{tag} {name}={value}")


def assert_inert(data: ReportData, world: tuple[LoopbackGitHub, Path, Json], *, names_are_plain: bool = True) -> None:
    """Look at every view; names that the bot would refuse never come to be markdown."""
    view = make_view(data)
    around = CommentContext(label="eval-compression", warnings=[])
    ticket = ticket_for(world[0])
    markdown = [result_body(view, ticket, around, budget=RESULT_BUDGET), render_markdown(view)]
    for text in markdown if names_are_plain else ():
        assert MARKER not in text
        html = outside_code(render(text))
        html = re.sub(r"</?(?:details|summary|strong|em|ul|ol|li|a|h[2-4]|blockquote|br|del|hr)\b[^>]*>", "", html)
        assert not LIVE.search(html.replace('<pre lang="sh">', "")), html
        assert references(render(text)) == []
        links = re.findall(r'(?:href|src)="([^"]*)"', outside_code(render(text)))
        assert all("evil" not in link for link in links), links
    assert "\n" not in view.headline or not names_are_plain
    page = Page()
    page.feed(render_html(data))
    assert page.acting == []
    assert "img" not in page.tags
    assert page.tags.count("h1") == 1
    assert page.tags.count("script") == 3  # the theme, the data and the page's own
    stream = io.StringIO()
    print_report(view, console(stream))
    printed = stream.getvalue()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printed), ascii(printed)


def test_every_text_of_a_result_is_refused_or_inert(world: tuple[LoopbackGitHub, Path, Json], tmp_path: Path) -> None:
    body = world[2]
    places = sorted({general(place) for place in shapes(body)})
    assert len(places) > 40
    for place in places:
        # One payload after the other would take minutes: all of them at once, each family still breaks out alone.
        for payload in ("\n".join(PAYLOADS.values()), PAYLOADS["terminal"]):
            poisoned = replaced(copy.deepcopy(body), place, payload)
            views = shown(world, poisoned, tmp_path)
            for data in views:
                try:
                    assert_inert(data, world, names_are_plain=len(views) == 2)
                except AssertionError as exc:
                    raise AssertionError(f"{'.'.join(place)}: {payload[:60]!a}") from exc


def test_names_that_pass_for_plain_are_inert_wherever_they_are_shown(
    world: tuple[LoopbackGitHub, Path, Json], tmp_path: Path
) -> None:
    accepted = set()
    for place in sorted({general(place) for place in shapes(world[2])}):
        views = shown(world, replaced(copy.deepcopy(world[2]), place, NAME), tmp_path)
        if len(views) == 2:
            accepted.add(place)
            assert_inert(views[0], world)
    # Those in the headline of a result that cannot be compared, and in the report's first lines.
    assert {("fingerprint", "tokenizer"), ("fingerprint", "instrument"), ("models", "judge")} <= accepted


@pytest.mark.parametrize("name", PAYLOADS)
def test_each_family_in_every_free_text_at_once(
    world: tuple[LoopbackGitHub, Path, Json], tmp_path: Path, name: str
) -> None:
    body = copy.deepcopy(world[2])
    for place in FREE:
        body = replaced(body, place, PAYLOADS[name])
    (bot, own) = shown(world, body, tmp_path)
    assert_inert(bot, world)
    assert_inert(own, world)


_RUN = ("fixtures", "*", "*")
_PROBE = (*_RUN, "probes", "*")
FREE = [
    (*_RUN, "detail"),
    (*_RUN, "notes", "*"),
    (*_RUN, "summary"),
    (*_RUN, "output"),
    (*_RUN, "refused"),
    (*_RUN, "shown", "headings", "*"),
    (*_RUN, "form", "sections", "*", "label"),
    (*_RUN, "invented", "*", "value"),
    (*_PROBE, "answer", "text"),
    (*_PROBE, "result", "reason"),
    ("stopped",),
]


@pytest.mark.parametrize("place", FREE, ids=lambda place: place[-1] if place[-1] != "*" else place[-2])
def test_what_a_compressor_may_write_is_not_refused(
    world: tuple[LoopbackGitHub, Path, Json], tmp_path: Path, place: tuple[str, ...]
) -> None:
    honest = 'Traceback: File "agent/memory.py", line 3\nKeyError: <role> at https://example.com/#1'
    assert len(shown(world, replaced(copy.deepcopy(world[2]), place, honest), tmp_path)) == 2


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.text(min_size=1, max_size=60), at=st.integers(0, len(FREE) - 1))
def test_any_text_in_a_free_field_is_inert(
    world: tuple[LoopbackGitHub, Path, Json], tmp_path: Path, payload: str, at: int
) -> None:
    for data in shown(world, replaced(copy.deepcopy(world[2]), FREE[at], payload), tmp_path):
        assert_inert(data, world)
