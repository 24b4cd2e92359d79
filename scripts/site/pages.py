"""The site's pages: templates filled with the core's own results, staged for MkDocs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from scripts.site.log_facts import all_log_cases
from scripts.site.method_facts import method_facts
from scripts.site.model_costs import model_costs
from scripts.site.worked_facts import all_cases

from enginemem import dataset
from enginemem.release import PINNED, load_release
from enginemem.render.catalogue import gpu_example, gpu_records, gpu_table, model_table
from enginemem.render.form import form, gpu_options
from enginemem.scenario import PLAN_INPUTS
from enginemem.web import handle

DEFAULT_GPU = PLAN_INPUTS["gpu"].default
PAGES = ("index", "worked", "logs", "method", "hardware", "models")


def answer(part: str, **inputs: str) -> Mapping[str, Any]:
    """The web answer for some inputs, as the page would get it. Raises ValueError when it is not ok."""
    found: dict[str, Any] = json.loads(handle(json.dumps({"id": 0, "kind": "plan", "part": part, "inputs": inputs})))
    if not found["ok"]:
        raise ValueError(f"{part} of {inputs}: {found}")
    return found


def context() -> dict[str, Any]:
    """Everything that the templates may print."""
    shown = answer("figures")
    texts = shown["texts"]
    return {
        "regions": {**shown["regions"], **answer("details")["regions"], **answer("charts")["regions"]},
        "texts": texts,
        "form": form(texts),
        "hardware": dataset.read("hardware.json"),
        "gpu_table": gpu_table(),
        "gpu_records": gpu_records(),
        "gpu_options": gpu_options(DEFAULT_GPU),
        "gpu_example": json.dumps(gpu_example(DEFAULT_GPU), indent=1).replace("<", "\\u003c"),
        "model_table": model_table(),
        "costs": model_costs(),
        "cases": all_cases(),
        "log_cases": all_log_cases(),
        "method": method_facts(),
        "releases": {column: load_release(column) for column in PINNED},
    }


def render_pages(root: Path, staging: Path) -> None:
    """Write every page and the pages' own assets into `staging`, the folder that MkDocs reads."""
    templates = Environment(
        loader=FileSystemLoader(root / "site_templates"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    facts = context()
    staging.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        text = templates.get_template(f"{page}.md.j2").render(facts)
        (staging / f"{page}.md").write_text(text, encoding="utf-8")
    for source in sorted((root / "docs").glob("**/*")):
        if source.is_file():
            _copy(source, staging / source.relative_to(root / "docs"))
    own = staging / "assets" / "site"
    for source in sorted((root / "site_assets").glob("css/*.css")) + sorted((root / "site_assets").glob("*.svg")):
        _copy(source, own / source.name)
    for name in OWN_SCRIPTS:
        _copy(root / "site_assets" / "js" / f"{name}.js", own / f"{name}.js")


OWN_SCRIPTS = ("scripted", "early", "app", "form", "model-config", "regions", "copy", "tables", "page", "hardware")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
