"""One visit of a view in Chromium: what is measured, and what counts as a problem."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Page

    from tests.ui.views import Pods, View

Problems = list[str]

SIZE: Final = {"width": 1440, "height": 900}
LOADED_MS: Final = 180_000

POD: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: trial
  namespace: web
spec:
  schedulerName: berth
  containers:
  - name: main
    image: app
    resources:
      requests:
        cpu: "12"
        memory: 24Gi
"""

_TIMES: Final = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const load = performance.getEntriesByType("navigation")[0];
  const mark = performance.getEntriesByName("berth-loaded")[0];
  return {paint: paint?.startTime, loaded: load.domContentLoadedEventEnd,
          explained: mark?.startTime, bytes: load.decodedBodySize};
}"""

_OTHER_ROW: Final = "text => document.querySelector('tbody tr').innerText !== text"

_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Visitor:
    """Opens views one after another.

    Parameters
    ----------
    axe
        The text of axe-core.
    images
        Where screenshots go.
    problems
        Where problems are added.
    """

    def __init__(
        self, browser: Browser, address: str, axe: str, images: Path, problems: Problems
    ) -> None:
        self._browser = browser
        self._address = address
        self._axe = axe
        self._images = images
        self._problems = problems

    def visit(self, view: View, path: str, scheme: Any) -> str:
        """Open a view, check it and return a line with its times."""
        context = self._browser.new_context(viewport=SIZE, color_scheme=scheme)
        page = context.new_page()
        name = f"{view.name} ({scheme})"
        expected = 404 if view.name == "error" else 200
        page.on("console", lambda message: self._heard(name, message, expected))
        page.on("pageerror", lambda error: self._problems.append(f"{name}: {error}"))
        response = page.goto(f"{self._address}{path}")
        if response is None or response.status != expected:
            self._problems.append(f"{name}: {response and response.status}")
        page.locator('[aria-busy="true"]').wait_for(state="detached", timeout=LOADED_MS)
        times = self._times(page)
        if view.asks:
            page.fill("#objects", POD)
            began = time.monotonic()
            page.click("button.main")
            page.get_by_role("heading", name="New pods").wait_for(timeout=LOADED_MS)
            times["explained"] = 1000 * (time.monotonic() - began)
        if view.grows:
            first = page.locator("tbody tr").first.inner_text()
            page.wait_for_function(_OTHER_ROW, arg=first, timeout=LOADED_MS)
        if view.words not in page.inner_text("body"):
            self._problems.append(f"{name}: does not say {view.words!r}")
        if scheme in view.in_docs:
            self._images.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=self._images / f"ui-{view.name}-{scheme}.png")
        self._check_rules(name, page)
        context.close()
        explained = f"{times['explained']:9.0f} ms" if view.explains or view.asks else ""
        return (
            f"{view.name:14}{scheme:>8}{times['paint']:11.0f} ms{times['loaded']:7.0f} ms"
            f"{explained:>12}{times['bytes'] / 1000:8.0f}"
        )

    def _times(self, page: Page) -> Any:
        """Return the times of a page; the first paint is reported a little after it was."""
        times = page.evaluate(_TIMES)
        while times["paint"] is None:
            page.wait_for_timeout(20)
            times = page.evaluate(_TIMES)
        return times

    def _heard(self, name: str, message: ConsoleMessage, expected: int) -> None:
        # Chromium reports on its console every page that is not found, this one on purpose.
        if expected == 200 or "status of 404" not in message.text:
            self._problems.append(f"{name}: console {message.type}: {message.text}")

    def _check_rules(self, name: str, page: Page) -> None:
        page.evaluate(self._axe)
        found = page.evaluate(
            "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", _RULES
        )
        if len(found["passes"]) < 5:
            self._problems.append(f"{name}: axe-core has checked {len(found['passes'])} rules")
        for violation in found["violations"]:
            for node in violation["nodes"][:3]:
                self._problems.append(f"{name}: {violation['id']}: {node['html'][:200]}")

    def use_the_keyboard(self) -> None:
        """Go from the start of the page to its content, to the search field, and to a pod."""
        page = self._browser.new_page(viewport=SIZE)
        page.goto(self._address)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        self._expect(page, "main", "the first Tab and Enter lead to the content")
        page.keyboard.press("/")
        self._expect(page, "find", "/ leads to the search field")
        page.keyboard.type("pod-that-does-not-exist")
        page.keyboard.press("Enter")
        page.wait_for_url("**/pending?q=*")
        if "nothing" not in page.inner_text("main"):
            self._problems.append("keyboard: a search without a result says so")
        page.close()

    def _expect(self, page: Page, focused: str, what: str) -> None:
        if page.evaluate("document.activeElement.id") != focused:
            self._problems.append(f"keyboard: {what}")

    def visit_without_scripts(self, views: Iterable[View], pods: Pods) -> None:
        """Open every view with scripts switched off: each has a heading and no empty place."""
        context = self._browser.new_context(viewport=SIZE, java_script_enabled=False)
        page = context.new_page()
        for view in views:
            page.goto(f"{self._address}{view.path(pods)}")
            if page.locator("h1").count() != 1:
                self._problems.append(f"{view.name} without scripts: no heading")
        context.close()
