"""The staged pages: every template renders, every figure comes out of the core, every asset that a page names is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from enginemem.comparison import compare
from enginemem.scenario import Scenario

pytest.importorskip("jinja2")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.site.pages import OWN_SCRIPTS, PAGES, render_pages  # noqa: E402


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    render_pages(ROOT, folder)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_template_left_in_it_and_no_id_twice(staged: Path, page: str) -> None:
    text = (staged / f"{page}.md").read_text(encoding="utf-8")
    assert "{{" not in text
    assert "{%" not in text
    assert " style=" not in text
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_calculator_holds_the_default_result_without_scripts(staged: Path) -> None:
    text = (staged / "index.md").read_text(encoding="utf-8")
    for column, plan in compare(Scenario()).engines.items():
        assert f'data-fig="{column}.running">{plan.running}<' in text
        assert plan.log_line is not None
        assert plan.log_line in text
    assert "<script" not in text


def test_every_published_figure_is_equal(staged: Path) -> None:
    text = (staged / "worked.md").read_text(encoding="utf-8")
    equal, checked = re.search(r"here (\d+) of (\d+) are equal", text).groups()  # type: ignore[union-attr]
    assert equal == checked
    assert int(checked) > 100


def test_pages_bring_their_own_assets(staged: Path) -> None:
    for name in OWN_SCRIPTS:
        assert (staged / "assets/site" / f"{name}.js").is_file()
    for name in ("base.css", "parts.css", "calculator.css", "mark.svg"):
        assert (staged / "assets/site" / name).is_file()
