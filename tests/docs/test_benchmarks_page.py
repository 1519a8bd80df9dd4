"""A measured part takes its own place in docs/benchmarks.md, and nothing else of the page."""

from __future__ import annotations

from bench.__main__ import HEAD, PAGE, PARTS, written


def section(name: str, text: str) -> str:
    return f"## {PARTS[name][0]} <!-- {name} -->\n\n{text}\n\n"


def test_what_was_written_by_hand_stays_where_it_is() -> None:
    page = written("", {"cost": section("cost", "1"), "chaos": section("chaos", "2")}) + "\n## By hand\n\nkept\n"
    page = page.replace("# Benchmarks\n", "# Benchmarks\n\nAn introduction.\n")
    again = written(page, {"cost": section("cost", "new"), "bill": section("bill", "added")})
    assert again.startswith("# Benchmarks\n\nAn introduction.\n")
    assert again.endswith("\n\n## By hand\n\nkept\n")
    heads = [line for line in again.splitlines() if line.startswith("## ")]
    assert heads == [*(section(name, "").splitlines()[0] for name in ("cost", "bill", "chaos")), "## By hand"]
    assert again == page.replace("\n1\n", "\nnew\n").replace("## Chaos", section("bill", "added") + "## Chaos")


def test_a_part_measured_again_with_the_same_result_leaves_the_page_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (mine,) = (part for part in page.split("\n## ") if "<!-- detection -->" in part)
    assert written(page, {"detection": f"## {mine}"}) == page
    assert "## Edited prompts" in page
    assert written("", {}) == HEAD
