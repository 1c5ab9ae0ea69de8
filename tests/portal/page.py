"""A real browser: Debian's Chromium."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from people import PASSWORD

# Chromium writes these errors to its console although the page works. The first one means
# that the portal refused a request. Chromium reports the second one when the network of
# another cluster comes or goes on this host; the page then sends its requests again.
NO_MATTER = ("status of", "net::ERR_NETWORK_CHANGED")


def program() -> str:
    found = shutil.which("chromium-headless-shell")
    assert found, "install chromium-headless-shell (tests/portal/prerequisites.list)"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program(),
            # The tests run as root. The authority of the tests is not one of the system.
            args=["--no-sandbox", "--ignore-certificate-errors"],
        )
        yield browser
        browser.close()


@dataclass
class Person:
    """A person in front of the portal. What the browser reports is kept."""

    context: BrowserContext
    portal: str
    reports: list[str] = field(default_factory=list)

    def opens(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.on("console", self.heard)
        page.on("pageerror", lambda error: self.reports.append(str(error)))
        page.goto(f"{self.portal}{path}")
        return page

    def heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(
            one in message.text for one in NO_MATTER
        ):
            self.reports.append(message.text)


def signs_in(page: Page, name: str) -> None:
    """From the portal's page to dex and back, by keyboard alone."""
    page.get_by_role("link", name="Sign in").focus()
    page.keyboard.press("Enter")
    # dex gives its field the focus when the page is there.
    page.wait_for_selector("input[name=login]:focus")
    page.keyboard.type(f"{name}@acme.io")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_text(f"Signed in as {name}@acme.io").wait_for()


def signs_in_by_mouse(page: Page, name: str) -> None:
    """From the portal's page to dex and back."""
    page.get_by_role("link", name="Sign in").click()
    page.locator("input[name=login]").click()
    page.keyboard.type(f"{name}@acme.io")
    page.locator("input[name=password]").click()
    page.keyboard.type(PASSWORD)
    page.locator("button[type=submit]").click()
    page.get_by_text(f"Signed in as {name}@acme.io").wait_for()


def create(page: Page, name: str) -> None:
    page.locator("#name").fill(name)
    page.get_by_role("button", name="Create").click()


def tab_to(page: Page, selector: str) -> None:
    """Presses Tab until something has the focus."""
    page.keyboard.press("Tab")
    for _ in range(30):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def is_loaded(page: Page, asked: list[str]) -> None:
    """Waits until the page asks for nothing more for half a second. Its stream stays open, so the browser does not
    tell when the page has everything."""
    before = -1
    while len(asked) > before:
        before = len(asked)
        page.wait_for_timeout(500)


def is_signed_out_elsewhere(person: Person, sign_out: Callable[[], object]) -> None:
    """alice is signed out by `sign_out`. Her page says so at once, and asks for nothing more."""
    asked: list[str] = []
    person.context.on("request", lambda request: asked.append(request.url))
    page = person.opens()
    signs_in(page, "alice")
    is_loaded(page, asked)
    asked.clear()
    sign_out()
    expect(page.get_by_text("You are signed out.")).to_be_visible(timeout=5000)
    expect(page.get_by_role("table")).to_have_count(0)
    # The page would ask again within this time.
    page.wait_for_timeout(3000)
    assert [url for url in asked if "/api/" in url] == []
