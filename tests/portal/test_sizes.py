"""The app comes soon on a slow line."""

import pytest
from playwright.sync_api import Browser, Response

from page import Person

# A browser is 100 MB to download.
pytestmark = pytest.mark.thorough
# The most script that the first page loads, in bytes as they are sent.
MOST = 120 * 1024


def test_the_first_page_loads_little_script_and_all_of_it_compressed(
    chromium: Browser, portal: str
) -> None:
    scripts: list[Response] = []

    def heard(response: Response) -> None:
        if response.url.endswith(".js"):
            scripts.append(response)

    with chromium.new_context(ignore_https_errors=True) as context:
        context.on("response", heard)
        page = Person(context, portal).opens()
        page.get_by_role("link", name="Sign in").wait_for()
        assert {one.header_value("content-encoding") for one in scripts} == {"gzip"}
        sizes = [one.request.sizes()["responseBodySize"] for one in scripts]
        assert 0 < sum(sizes) <= MOST, sizes
