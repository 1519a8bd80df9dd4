"""Pages that hold together: links lead somewhere, samples are valid, the site lists every page."""

from __future__ import annotations

import json
import re

import pytest
import small
import yaml
from doc_page import PAGES, anchors, blocks, links

from eval_core.base.config import Config
from eval_core.domain.target import target_from
from eval_core.tasks.task import TaskFile


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: str) -> None:
    folder = (small.REPOSITORY / page).parent
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (folder / path).resolve() if path else small.REPOSITORY / page
        assert target.exists(), f"{page}: {link} leads nowhere"
        if page.startswith("docs/"):
            assert target.is_relative_to(small.REPOSITORY / "docs"), f"{page}: {link} leads out of the site"
        if anchor:
            assert anchor in anchors(target.relative_to(small.REPOSITORY).as_posix()), f"{page}: no heading for {link}"


@pytest.mark.parametrize("page", PAGES)
def test_samples_of_configuration_and_data_are_valid(page: str) -> None:
    for block in blocks(page):
        if block.language == "yaml":
            body = yaml.safe_load(block.text)
            if "instruction" in body:
                TaskFile.model_validate(body)
                continue
            body.pop("package", None)  # of a target file, which also has keys of the configuration
            config = Config.model_validate(body)
            target_from(config.target, f"{page}:{block.line}")
        elif block.language == "json":
            json.loads(block.text)


def test_the_site_lists_every_page() -> None:
    site = yaml.safe_load((small.REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"[\w/-]+\.md", json.dumps(site["nav"])))
    assert listed == {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}


def test_no_page_names_a_folder_of_one_machine() -> None:
    for page in PAGES:
        text = (small.REPOSITORY / page).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.~])/(?:root|work|tmp)/", text), page


def test_every_price_of_readme_and_worth_it_is_one_of_the_measured_ones() -> None:
    measured = set(re.findall(r"\$(\d+\.\d\d)", (small.REPOSITORY / "docs/models.md").read_text(encoding="utf-8")))
    readme = re.findall(r"about \$(\d+\.\d\d)", (small.REPOSITORY / "README.md").read_text(encoding="utf-8"))
    page = re.findall(r"\| (\d+\.\d\d) \|", (small.REPOSITORY / "docs/worth-it.md").read_text(encoding="utf-8"))
    assert len(readme) == 1
    assert len(page) >= 5
    assert {*readme, *page} - measured == set()
