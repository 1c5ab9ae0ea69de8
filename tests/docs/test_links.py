"""The target of each link between the pages exists."""

import pytest

from documents import markdown
from documents.markdown import ROOT, Link

LINKS = [link for file in markdown.files() for link in markdown.links(file)]
WITHIN = [link for link in LINKS if "://" not in link.target]


@pytest.mark.parametrize("link", WITHIN, ids=str)
def test_a_link_leads_to_a_file_and_a_heading_of_it(link: Link) -> None:
    path, _, anchor = link.target.partition("#")
    target = (link.file.parent / path).resolve() if path else link.file
    assert target.exists(), f"{link}: there is no {path}"
    assert target.is_relative_to(ROOT), f"{link}: outside of the repository"
    if anchor:
        known = markdown.anchors(target)
        assert anchor in known, f"{link}: {target.name} has only {sorted(known)}"


def test_every_page_is_reached_from_the_readme() -> None:
    seen, next_ = set(), [ROOT / "README.md"]
    while next_:
        page = next_.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        for link in markdown.links(page):
            path = link.target.partition("#")[0]
            if path and "://" not in path:
                next_.append((page.parent / path).resolve())
    assert [str(one) for one in markdown.files() if one not in seen] == []
