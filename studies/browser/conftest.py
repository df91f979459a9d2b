"""The browser of the product's own tests."""

from __future__ import annotations

from browser.conftest import browser

__all__ = ["browser"]
