"""Deep nesting: the kernel leaves to the package what may be too deep for it, by the page's own nesting."""

from pathlib import Path

import pytest

from bertdata._native import kernels
from bertdata.wiki.extractor import BlockState
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import page
from tests.support.package_pair import PackagePair
from tests.support.wiki_extraction import START, split_head

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")


def open_pair(templates: dict[str, str], directory: Path) -> PackagePair:
    head, _ = split_head(random_dump(0, 1), "3.1.0")
    head["template_namespace"] = "Template"
    pages = [
        page(f"Template:{name}", text, number=n, namespace=10)
        for n, (name, text) in enumerate(templates.items(), 10)
    ]
    return PackagePair(head, "".join(pages).encode(), str(directory))


def defaults(depth: int, opening: str = "{{{1|") -> str:
    """An argument whose default is an argument, and so on; a call with a value needs none of them."""
    return opening * depth + "x" + "}}}" * depth


def calls(opening: str, depth: int, inner: str) -> str:
    return opening * depth + inner + "}}" * depth


TEMPLATES = {
    "T": "{{{1}}}",
    "Few": defaults(30),
    "Many": "".join(f"{{{{{{a{n}|}}}}}}" for n in range(500)),
    "Deep": defaults(150),
    "Deeper": defaults(250),
    "Names": defaults(250, "{{{"),
}
LONG_SUM = "{{#expr:" + "-" * 70 + "1" + "+1" * 150 + "}}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> PackagePair:
    return open_pair(TEMPLATES, tmp_path_factory.mktemp("pair"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{Few|a}}", ""),
        ("{{Many|a}}", ""),
        ("{{Deep|a}}", ""),
        (calls("{{T|", 240, "{{Few|a}}{{Many}}"), ""),
        (calls("{{lc:", 180, LONG_SUM), ""),
        ("{{Deeper|a}}", "unknown"),
        ("{{Names|a}}", "unknown"),
        (calls("{{lc:", 100, "{{Deep|a}}"), "unknown"),
        (calls("{{T|", 235, LONG_SUM), "unknown"),
        (calls("{{T|", 260, "a"), "unknown"),
    ],
)
def test_a_page_is_left_to_the_package_by_its_own_nesting(pair: PackagePair, text: str, reason: str) -> None:
    data = page("X", f"x{text}y", number=1).encode()
    for _ in range(2):  # the second time the kernel and the package have met the templates
        assert [outcome[0] for outcome in pair.kernel.extract(data, START)[1]] == [reason]
        pair.check_block(data)


def test_a_page_too_deep_for_the_package_fails_whatever_came_before_it(tmp_path: Path) -> None:
    inner = defaults(140)  # twice as deep is too deep: Python 3.11 fails from 197 on, later ones from 250
    pair = open_pair({"Inner": inner, "Outer": "{{{1|" * 140 + inner + "}}}" * 140}, tmp_path)
    deep = page("Deep", "x{{Outer|a}}y", number=2).encode()
    reasons = []
    for before in (b"", page("Before", "{{Inner|a}}", number=1).encode()):
        if before:
            pair.package.extract(before, BlockState(*START))
        reasons += [outcome.reason for outcome in pair.package.extract(deep, BlockState(*START)).outcomes]
    assert reasons == ["extraction failed", "extraction failed"]
