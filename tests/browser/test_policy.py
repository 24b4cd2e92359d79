"""Nothing leaves the site: no other origin, a policy without holes that binds the worker too, and text that stays text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.calculator import READY, Calculator, answer, python_worker
from browser.conftest import Serve, Visitor
from browser.visited import PAGES, Host

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"

ASK_ABROAD = """async (address) => {
  const refused = [];
  self.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
  const outcome = await fetch(address, { mode: "no-cors" }).then(() => "answered", () => "refused");
  const script = await import(address + "x.js").then(() => "answered", () => "refused");
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { outcome, script, refused };
}"""


def policies(site: Path) -> dict[str, dict[str, list[str]]]:
    """The directives of every built page."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(site.rglob("*.html")):
        (text,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', path.read_text("utf-8"))
        parts = [directive.split() for directive in text.split(";")]
        found[path.relative_to(site).as_posix()] = {name: values for name, *values in parts}
    return found


def test_every_page_has_a_policy_without_holes(site: Path) -> None:
    found = policies(site)
    assert len(found) == len(PAGES)
    for page, directives in found.items():
        every = {value for values in directives.values() for value in values}
        assert not every & {"'unsafe-eval'", "'unsafe-inline'", "'unsafe-hashes'", "*", "https:", "http:"}, page
        assert directives["default-src"] == ["'none'"]
        assert directives["connect-src"] == ["'self'"]
        rest = [value for value in directives["script-src"] if not value.startswith("'sha256-")]
        assert rest == ["'self'", "'wasm-unsafe-eval'"]


def test_the_policy_comes_before_everything_it_governs(site: Path) -> None:
    for path in site.rglob("*.html"):
        head = path.read_text("utf-8").split('http-equiv="Content-Security-Policy"')[0]
        assert not re.search(r"<(script|link|style|body)\b", head), path.name


def test_no_page_sends_a_referrer(site: Path, page: Page, host: Host) -> None:
    for path in site.rglob("*.html"):
        assert '<meta name="referrer" content="no-referrer">' in path.read_text("utf-8")
    page.goto(f"{host.address}method/?v=1&prompt=77")
    page.locator("main a", has_text="Inputs").or_(page.locator(".md-tabs a").first).first.click()
    assert page.evaluate("() => document.referrer") == ""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_no_other_origin_and_reports_no_error(page: Page, host: Host, path: str) -> None:
    """What the `page` fixture checks at its end, after the page has come to rest."""
    page.goto(host.address + path)
    page.wait_for_load_state("networkidle")
    if path == "":
        Calculator(page, host.address).ready()
    page.locator("input.md-search__input").first.focus()
    page.wait_for_load_state("networkidle")


def test_scripts_in_line_and_from_texts_are_refused(host: Host, visitor: Visitor) -> None:
    page, watch = visitor(host)
    watch.allow("Content Security Policy", "unsafe-eval", "EvalError", "ERR_INVALID_URL")
    Calculator(page, host.address).open()
    page.evaluate("""() => {
      window.refused = [];
      document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.blockedURI));
      const script = document.createElement("script");
      script.textContent = "document.title = 'taken'";
      document.body.append(script);
      const image = document.createElement("img");
      image.setAttribute("onerror", "document.title = 'taken'");
      image.src = "data:nothing";
      document.body.append(image);
      setTimeout("document.title = 'taken'");
    }""")
    page.wait_for_timeout(300)
    assert {"inline", "eval"} <= set(page.evaluate("() => window.refused"))
    assert page.title() != "taken"


def test_the_page_refuses_another_origin(serve: Serve, host: Host, visitor: Visitor) -> None:
    abroad = serve()
    page, watch = visitor(host)
    watch.refused.add(abroad.origin)
    watch.allow("Content Security Policy", "violates", "Failed to fetch", "Refused")
    Calculator(page, host.address).open()
    found = page.evaluate(ASK_ABROAD.replace("self.add", "document.add"), abroad.address)
    assert found["outcome"] == found["script"] == "refused"
    assert "connect-src" in found["refused"]
    assert abroad.asked == []


def test_the_policy_binds_the_worker(serve: Serve, host: Host, visitor: Visitor) -> None:
    """Asked inside the worker that runs Python: another origin is refused by the policy, and hears nothing."""
    abroad = serve()
    page, watch = visitor(host)
    watch.refused.add(abroad.origin)
    watch.allow("Content Security Policy", "violates", "Failed to fetch", "Refused")
    Calculator(page, host.address).open().ready()
    worker = python_worker(page)
    found = worker.evaluate(ASK_ABROAD, abroad.address)
    assert found["outcome"] == found["script"] == "refused"
    assert "connect-src" in found["refused"]
    assert worker.evaluate("(address) => fetch(address).then((response) => response.ok)", host.address)
    worker.evaluate("""() => {
      try { setTimeout("self.taken = true"); } catch { /* refused at once */ }
      return new Promise((resolve) => setTimeout(resolve, 100));
    }""")
    assert worker.evaluate("() => 'taken' in self") is False
    assert abroad.asked == []


@pytest.mark.parametrize("key", ["gpu", "prompt", HOSTILE])
def test_hostile_text_in_a_link_stays_text(calculator: Calculator, key: str) -> None:
    page = calculator.page
    page.goto(calculator.address)
    page.evaluate(
        "([key, text]) => { location.search = '?v=1&' + encodeURIComponent(key) + '=' + encodeURIComponent(text); }",
        [key, HOSTILE],
    )
    problem = page.locator("#em-problem")
    expect(problem).to_be_visible(timeout=READY)
    expect(problem).to_contain_text("onerror")
    expect(problem.locator("img, script")).to_have_count(0)
    assert page.title() != "taken"


def test_hostile_text_in_a_field_stays_text(calculator: Calculator) -> None:
    calculator.open().ready()
    calculator.set("prompt", HOSTILE)
    message = calculator.row("prompt").locator(".em-error")
    expect(message).to_have_text(answer(prompt=HOSTILE)["errors"][0]["message"])
    expect(message.locator("*")).to_have_count(0)
    assert calculator.page.title() != "taken"
    assert calculator.link() == ""
