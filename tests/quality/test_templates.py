"""Templates keep to the content security policy, and their forms to the CSRF check."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(
    path
    for folder in ("templates", "approvals", "flowsite", "runs")
    for path in (ROOT / folder).rglob("*.html")
)
TEMPLATE_TAG = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
all_templates = pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: str(p.relative_to(ROOT)))


class Elements(HTMLParser):
    """Collects the start tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(path: Path) -> list[tuple[str, dict[str, str | None]]]:
    return Elements(TEMPLATE_TAG.sub(" ", path.read_text())).found


@all_templates
def test_a_template_has_no_inline_script_or_style(path: Path) -> None:
    found = elements(path)
    assert [tag for tag, attributes in found if tag == "script" and "src" not in attributes] == []
    assert [tag for tag, attributes in found if tag == "style" or "style" in attributes] == []


@all_templates
def test_a_template_has_no_code_in_attributes(path: Path) -> None:
    names = [name for _, attributes in elements(path) for name in attributes]
    assert [name for name in names if re.match(r"on|hx-on|data-hx-on", name)] == []
    values = [str(value) for _, attributes in elements(path) for value in attributes.values()]
    assert [value for value in values if re.match(r"\s*(js|javascript):", value)] == []


@all_templates
def test_a_form_that_posts_carries_the_csrf_token(path: Path) -> None:
    forms = re.findall(r"<form\b.*?</form>", path.read_text(), re.DOTALL | re.IGNORECASE)
    posting = [form for form in forms if re.search(r"""method=["']?post""", form, re.IGNORECASE)]
    assert [form for form in posting if "{% csrf_token %}" not in form] == []
