"""One browser for all tests here."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


def chromium() -> str:
    """The browser: ANISOFLIGHT_CHROMIUM, else one on the PATH."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("ANISOFLIGHT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert found, "no browser: install Debian's package chromium, or name one in ANISOFLIGHT_CHROMIUM"
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
