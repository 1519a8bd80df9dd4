"""The page in a real browser: it shows what was lost, leads to it, sends nothing and runs nothing it was told."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "scripts"), str(_ROOT / "tests" / "reporting")]

from chromium import PAINTED, READY, Chromium, find_chromium  # noqa: E402
from page_world import HOSTILE, case, recorded, report  # noqa: E402

from eval_core.reporting.html import render_html, render_side_by_side, render_trend  # noqa: E402
from eval_core.reporting.side_by_side import side_by_side  # noqa: E402

pytestmark = pytest.mark.e2e


def _missing(what: str) -> None:
    """Skip on a developer's machine, fail where the check is the point."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI must not pass without it")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    binary = find_chromium()
    if binary is None:
        _missing("no Chromium here (Debian: apt-get install chromium); the page was not tested in a browser")
        return
    with Chromium(binary) as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with everything in it, hostile texts included."""
    hostile = HOSTILE.replace("\ud800", "")
    data = report(text=HOSTILE, base_text=HOSTILE[::-1], offline=True, cases=[case("deploy", hostile), case("migrate")])
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Chromium, address: str) -> Chromium:
    browser.look(1280, 900)
    _open(browser, address)
    return browser


def _open(browser: Chromium, address: str) -> None:
    """Open a page and wait until everything that needs its data has been drawn."""
    browser.open(address)
    browser.run(READY)


def _settle(page: Chromium) -> None:
    page.run(PAINTED)


def _shown(page: Chromium) -> list[str]:
    found: list[str] = page.run("[...document.querySelectorAll('details.probe')].map(p => p.id)")
    return found


def _choose(page: Chromium, name: str, value: str) -> None:
    field = f"document.getElementById('{name}')"
    page.run(f"{field}.value = {json.dumps(value)}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")


def _open_everything(page: Chromium) -> None:
    page.run(
        "new Promise(done => { document.querySelectorAll('details').forEach(item => item.open = true);"
        " requestAnimationFrame(() => setTimeout(done)) })"
    )


def test_the_page_asks_for_nothing_but_itself_and_complains_about_nothing(page: Chromium, address: str) -> None:
    _open_everything(page)
    assert [url.split("?")[0] for url in page.requests] == [address]
    assert page.complaints == []


def test_hostile_text_does_nothing(page: Chromium) -> None:
    assert page.run("window.owned") is None
    assert page.run("getComputedStyle(document.body).display") == "block"
    _open_everything(page)
    page.run("document.querySelector('.fact-place a[href^=\\'#msg\\']').click()")
    assert page.run("window.owned") is None
    assert page.run("document.scripts.length") == 3
    assert page.run("document.images.length") == 0
    assert page.run("document.body.innerText.includes('Regressed')")


def test_the_policy_holds_against_a_script_that_got_in(page: Chromium) -> None:
    page.run(
        "(() => { const s = document.createElement('div');"
        " s.innerHTML = '<img src=x onerror=\"window.owned=9\">'; document.body.append(s);"
        " const t = document.createElement('script'); t.textContent = 'window.owned=8'; document.body.append(t) })()"
    )
    page.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert page.run("window.owned") is None


def test_filters_narrow_and_clear(page: Chromium) -> None:
    everything = _shown(page)
    assert len(everything) == 4
    _choose(page, "f-fixture", "fixture-migrate")
    assert sorted(_shown(page)) == ["probe-migrate-decision-staging", "probe-migrate-recall-port"]
    _choose(page, "f-type", "recall")
    assert _shown(page) == ["probe-migrate-recall-port"]
    assert page.run("document.getElementById('f-count').value") == "1 of 4 probes"
    _choose(page, "f-text", "no such words")
    assert _shown(page) == []
    assert not page.run("document.getElementById('nothing').hidden")
    page.run("document.getElementById('reset-empty').click()")
    assert _shown(page) == everything


def test_escape_in_the_search_clears_the_filter_too(page: Chromium) -> None:
    page.press("/")
    assert page.run("document.activeElement.id") == "f-text"
    _choose(page, "f-text", "staging")
    assert len(_shown(page)) == 2
    page.press("Escape")
    assert page.run("document.getElementById('f-text').value") == ""
    assert len(_shown(page)) == 4
    page.press("Escape")
    assert page.run("document.activeElement.id") != "f-text"


def test_the_worst_change_comes_first_and_the_order_can_be_the_banks(page: Chromium) -> None:
    first = "document.querySelector('details.probe').id"
    assert page.run(first) == "probe-deploy-recall-port"
    _choose(page, "f-sort", "best")
    assert page.run(first).endswith("decision-staging")
    _choose(page, "f-sort", "bank")
    assert [name.removeprefix("probe-deploy-") for name in _shown(page)[:2]] == ["recall-port", "decision-staging"]


def test_the_summaries_are_folded_to_their_differences_and_the_lost_fact_is_marked_on_both_sides(
    page: Chromium,
) -> None:
    assert page.run("document.querySelector('#s-diff mark.lost').textContent") == "8443"
    assert "8443" in page.run("document.querySelector('#s-diff .right .missing').textContent")
    struck = "[...document.querySelectorAll('#s-diff .left del')].map(part => part.textContent).join('')"
    assert page.run(struck).startswith("on port 8443 ")
    assert "8443" in page.run("document.getElementById('s-facts').textContent")


SEVERAL = (
    "(() => { const lines = [...Array(40).keys()].map(n => `line ${n} of the text`);"
    " const other = lines.map((line, n) => n === 5 || n === 30 ? `${line} changed` : line);"
    " other.splice(20, 0, other.splice(35, 1)[0]);"
    " return compareTexts(lines.join('\\n'), other.join('\\n')) })()"
)


def test_a_moved_line_is_said_to_be_moved_and_not_to_be_lost(page: Chromium) -> None:
    rows = page.run(SEVERAL)
    assert [row["left"] for row in rows if row["kind"] == "changed"] == ["line 5 of the text", "line 30 of the text"]
    moved = [at for at, row in enumerate(rows) if "movedTo" in row]
    assert [rows[at]["left"] for at in moved] == ["line 35 of the text"]
    assert rows[rows[moved[0]]["movedTo"]]["right"] == "line 35 of the text"


RANDOM_TEXTS = """(() => {
  let seed = 7;
  const next = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const line = () => ["", "a b", "c d e", "the same long line", "x y z"][next(5)] + (next(3) ? "" : next(4));
  const text = () => [...Array(next(30)).keys()].map(line).join("\\n");
  const wrong = [];
  for (let round = 0; round < 400; round++) {
    const [a, b] = [text(), text()];
    const rows = compareTexts(a, b);
    const side = (name) => rows.map((row) => row[name]).filter((part) => part !== null).join("\\n");
    if (side("left") !== a || side("right") !== b) wrong.push([a, b]);
  }
  return wrong.slice(0, 1);
})()"""


def test_comparing_two_texts_loses_nothing_of_either(page: Chromium) -> None:
    assert page.run(RANDOM_TEXTS) == []


def test_n_and_p_go_from_difference_to_difference(browser: Chromium, tmp_path: Path) -> None:
    lines = [f"line {number} of the summary" for number in range(200)]
    changed = [f"{line} and more" if number in (50, 120, 180) else line for number, line in enumerate(lines)]
    path = tmp_path / "report.html"
    path.write_text(render_html(report(base_text="\n".join(lines), text="\n".join(changed))), encoding="utf-8")
    browser.look(1280, 900)
    _open(browser, path.as_uri())
    place = "document.getElementById('s-place').value"
    assert browser.run(place) == "4 differences"
    for expected in (1, 2, 3, 4, 1):
        browser.press("n")
        assert browser.run(place) == f"difference {expected} of 4"
        top = browser.run("document.querySelector('#s-diff .here').getBoundingClientRect().top")
        assert 0 < top < 900
    browser.press("p")
    assert browser.run(place) == "difference 4 of 4"
    assert browser.run("document.querySelectorAll('#s-diff .row').length") < 40, "equal lines are folded"
    browser.run("document.getElementById('s-unfold').click()")
    assert browser.run("document.querySelectorAll('#s-diff .row').length") > 200


def test_any_two_runs_can_be_compared_and_linked_to(page: Chromium, address: str) -> None:
    assert page.run("document.querySelectorAll('#s-left option').length") == 12
    _choose(page, "s-left", "c0")
    _choose(page, "s-right", "c1")
    assert page.run("document.getElementById('s-diff').textContent").startswith("The two texts are equal.")
    _open(page, f"{address}#summary-migrate/b2/c1")
    chosen = "['s-fixture', 's-left', 's-right'].map(id => document.getElementById(id).selectedOptions[0].textContent)"
    fixture, left, right = page.run(chosen)
    assert fixture == "migrate"
    assert left.startswith("base, run 3 ")
    assert right.startswith("candidate, run 2 ")


def test_a_lost_fact_leads_to_its_message_and_to_its_place_in_the_summaries(page: Chromium) -> None:
    page.run("document.querySelector('.fact-list a[href=\"#msg-deploy-1\"]').click()")
    assert page.run("document.getElementById('message').open")
    assert page.run("document.querySelector('#message-text mark.here').textContent") == "8443"
    page.press("ArrowRight")
    assert page.run("document.getElementById('message-title').textContent").startswith("Message 2 ")
    page.press("Escape")
    assert not page.run("document.getElementById('message').open")
    page.run("document.querySelector('.fact-list a[href=\"#summary-deploy\"]').click()")
    _settle(page)
    assert 0 < page.run("document.querySelector('#s-diff .here mark.lost').getBoundingClientRect().top") < 900


def test_answers_open_at_their_difference(page: Chromium) -> None:
    page.run("document.querySelector('#probe-deploy-recall-port summary').click()")
    _settle(page)
    body = "document.querySelector('#probe-deploy-recall-port .answers"
    assert page.run(f"{body} .row.changed .left del').textContent").startswith("8443")
    assert page.run(f"{body} .row.changed .right ins').textContent").startswith("unknown")


@pytest.mark.parametrize(
    ("anchor", "check"),
    [
        ("probe-migrate-recall-port", "document.querySelectorAll('details.probe[open]').length === 1"),
        ("msg-migrate-3", "document.getElementById('message-title').textContent.startsWith('Message 3 ')"),
        ("fixture-migrate", "document.querySelector('#fixture-migrate table') !== null"),
    ],
)
def test_a_deep_link_opens_what_it_names(browser: Chromium, address: str, anchor: str, check: str) -> None:
    browser.look(1280, 900)
    _open(browser, f"{address}#{anchor}")
    _settle(browser)
    assert browser.run(check)


def test_facts_commands_and_links_can_be_copied(page: Chromium) -> None:
    page.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
    page.run("document.querySelector('.fact-list button.copy').click()")
    assert page.run("window.copied") == "8443: deploy, message 1, gone in 6 of 6 runs, before in 0 of 6"
    page.run("document.getElementById('s-link').click()")
    assert page.run("window.copied").endswith("#summary-deploy/b0/c0")
    assert page.run("document.getElementById('toast').textContent") == "Copied"


def test_an_old_browser_without_streams_is_told_which_one_to_use(browser: Chromium, address: str) -> None:
    old = browser.page.context.new_page()
    old.add_init_script("delete window.DecompressionStream")
    old.goto(address)
    assert "use a browser of 2023 or later" in old.locator("#summaries .warn").inner_text()
    old.close()


def test_the_keyboard_moves_opens_and_helps(page: Chromium) -> None:
    focused = "document.activeElement.closest('details')?.id"
    page.press("j")
    assert page.run(focused) == _shown(page)[0]
    page.press("j")
    assert page.run(focused) == _shown(page)[1]
    page.press("k")
    page.press("Enter")
    assert page.run("document.querySelector('details.probe').open")
    page.press("?")
    assert page.run("document.getElementById('help').open")
    page.press("Escape")
    assert not page.run("document.getElementById('help').open")


def test_the_theme_can_be_switched_and_is_remembered(page: Chromium, address: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.run(background)
    page.press("t")
    after = page.run(background)
    assert after != before
    _open(page, address)
    assert page.run(background) == after
    page.press("t")
    assert page.run(background) == before


@pytest.mark.parametrize("width", [1440, 900, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_runs_over_the_edge(browser: Chromium, address: str, width: int, dark: bool) -> None:
    browser.look(width, 900, dark=dark)
    _open(browser, address)
    _open_everything(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width


# A picture in cells of 24 pixels: fonts differ between machines, an empty or broken screen differs more.
CELLS = (
    "(async (data) => { const image = new Image(); image.src = data; await image.decode();"
    " const canvas = document.createElement('canvas'); canvas.width = Math.ceil(image.width / 24);"
    " canvas.height = Math.ceil(image.height / 24); const pen = canvas.getContext('2d');"
    " pen.imageSmoothingQuality = 'high'; pen.drawImage(image, 0, 0, canvas.width, canvas.height);"
    " const all = pen.getImageData(0, 0, canvas.width, canvas.height).data; const grey = [];"
    " for (let at = 0; at < all.length; at += 4) grey.push(Math.round((all[at] + all[at + 1] + all[at + 2]) / 3));"
    " return grey })"
)
PICTURES = Path(__file__).parent / "pictures"


@pytest.mark.parametrize("width", [1440, 900, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_first_screen_looks_as_reviewed(browser: Chromium, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_html(recorded(offline=True)), encoding="utf-8")
    browser.look(width, 900, dark=dark)
    _open(browser, path.as_uri())
    browser.run("localStorage.clear()")
    _open(browser, path.as_uri())
    shot = tmp_path / "now.png"
    browser.picture(shot)
    kept = PICTURES / f"first-{width}-{'dark' if dark else 'light'}.png"
    if os.environ.get("UPDATE_GOLDEN"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(shot.read_bytes())
    browser.open("about:blank")

    def cells(of: Path) -> list[int]:
        found: list[int] = browser.run(f"{CELLS}('data:image/png;base64,{base64.b64encode(of.read_bytes()).decode()}')")
        return found

    before, now = cells(kept), cells(shot)
    assert len(before) == len(now)
    apart = sum(abs(a - b) for a, b in zip(before, now, strict=True)) / len(now)
    assert apart < 12, f"the first screen differs from {kept.name} by {apart:.1f} of 255 on average; look at {shot}"


def test_fifty_fixtures_open_and_filter_at_once(browser: Chromium, tmp_path: Path) -> None:
    """The figures are printed; what is asserted is what makes them small: the page draws only what is looked at."""
    large = tmp_path / "fifty.html"
    pick = random.Random(0)
    prose = [" ".join(f"word-{pick.randrange(9_000)}" for _ in range(6_000)) for _ in range(50)]
    cases = [case(f"session-{number}", extra=text) for number, text in enumerate(prose)]
    large.write_text(render_html(report(cases=cases, text="a different answer " * 30)), encoding="utf-8")
    small = tmp_path / "plain.html"
    small.write_text("<!doctype html><title>plain</title><p>plain</p>", encoding="utf-8")
    browser.look(1440, 900)

    def first_screen() -> float:
        return float(browser.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))

    browser.open(small.as_uri())
    plain = first_screen()
    _open(browser, large.as_uri())
    painted = first_screen()
    ready = float(browser.run("performance.now()"))
    took = browser.run(
        "(() => { const field = document.getElementById('f-text'); field.value = 'gateway 8443';"
        " field.dispatchEvent(new Event('input', { bubbles: true }));"
        " const began = performance.now(); field.value = 'staging';"
        " field.dispatchEvent(new Event('input', { bubbles: true })); return performance.now() - began })()"
    )
    print(
        f"\n50 fixtures: {large.stat().st_size / 1e6:.1f} MB; first screen after {painted:.0f} ms "
        f"({painted / max(plain, 1):.1f} times a plain page), drawn by {ready:.0f} ms, filter {took:.0f} ms"
    )
    assert large.stat().st_size < 4_000_000
    assert browser.run("document.querySelectorAll('details.probe').length") <= 40
    assert browser.run("document.querySelectorAll('*').length") < 12_000


def test_paper_shows_no_controls(page: Chromium) -> None:
    page.page.emulate_media(media="print")
    try:
        for control in (".top", "#filters", "#summaries"):
            box = page.run(f"document.querySelector('{control}').getClientRects().length")
            assert box == 0
        assert len(page.page.pdf(print_background=True)) > 10_000
    finally:
        page.page.emulate_media(media="null")


def _axe() -> str:
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        _missing("axe is not installed (pip install axe-core-python); accessibility was not checked")
        return ""
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


SERIOUS = (
    "axe.run().then(found => found.violations.filter(item => ['serious', 'critical'].includes(item.impact))"
    ".map(item => [item.id, item.help, ...item.nodes.slice(0, 3).map(node => node.html.slice(0, 200)"
    " + ' ' + node.failureSummary)]))"
)


# Every pair of two of the three: what a page shows, its colours, and its width.
@pytest.mark.parametrize(
    ("compared", "dark", "width"),
    [(True, False, 1280), (True, True, 400), (False, True, 1280), (False, False, 400)],
    ids=["compared-light-wide", "compared-dark-narrow", "alone-dark-wide", "alone-light-narrow"],
)
def test_no_serious_barrier(browser: Chromium, tmp_path: Path, compared: bool, dark: bool, width: int) -> None:
    script = _axe()
    data = recorded(offline=True)
    path = tmp_path / "report.html"
    path.write_text(render_html(data if compared else replace(data, base=None, verdict=None)), encoding="utf-8")
    browser.look(width, 900, dark=dark)
    _open(browser, path.as_uri())
    browser.run("localStorage.clear()")  # a theme chosen by hand would stay
    _open(browser, path.as_uri())
    assert browser.run("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    _open_everything(browser)
    browser.run(f"{script}; undefined")
    assert browser.run(SERIOUS) == []


@pytest.mark.parametrize("kind", ["several", "trend"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_pages_of_several_results_and_of_the_trend_hold_as_well(
    browser: Chromium, tmp_path: Path, kind: str, dark: bool
) -> None:
    script = _axe()
    data = recorded(text=HOSTILE)
    assert data.base is not None
    several = render_side_by_side(side_by_side([data.base, data.candidate]))
    path = tmp_path / "page.html"
    path.write_text(several if kind == "several" else render_trend(HOSTILE, data.history), encoding="utf-8")
    browser.look(390, 900, dark=dark)
    browser.open(path.as_uri())
    assert browser.run("window.owned") is None
    assert browser.complaints == []
    assert browser.run("document.documentElement.scrollWidth") <= 390
    browser.run(f"{script}; undefined")
    assert browser.run(SERIOUS) == []


def test_a_session_of_half_a_million_tokens_opens_at_its_differences(browser: Chromium, tmp_path: Path) -> None:
    """The figures are printed; asserted is that neither the session nor equal lines are drawn unasked."""
    pick = random.Random(1)

    def words(count: int) -> str:
        return " ".join(f"word-{pick.randrange(30_000)}" for _ in range(count))

    lines = [words(9) for _ in range(2_500)]
    changed = [words(9) if number % 500 == 250 else line for number, line in enumerate(lines)]
    path = tmp_path / "long.html"
    data = report(cases=[case("long", extra=words(200_000))], base_text="\n".join(lines), text="\n".join(changed))
    path.write_text(render_html(data), encoding="utf-8")
    small = tmp_path / "plain.html"
    small.write_text("<!doctype html><title>plain</title><p>plain</p>", encoding="utf-8")
    browser.look(1440, 900)
    browser.open(small.as_uri())
    plain = float(browser.run("performance.now()"))
    _open(browser, path.as_uri())
    ready = float(browser.run("performance.now()"))
    print(
        f"\na session of 500k tokens: {path.stat().st_size / 1e6:.1f} MB; drawn by {ready:.0f} ms "
        f"({ready / max(plain, 1):.1f} times a plain page)"
    )
    assert path.stat().st_size < 2_000_000
    assert browser.run("document.querySelectorAll('*').length") < 6_000
    # The summaries are there to their ends: the last difference is that of line 2,250.
    browser.press("p")
    assert "word-" in browser.run("document.querySelector('#s-diff .here').textContent")
    browser.run("document.getElementById('s-unfold').click()")
    assert browser.run("document.querySelectorAll('#s-diff .row:not(.head)').length") >= len(lines)
