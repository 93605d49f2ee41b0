"""The kernel writes for every page what the package wikiextractor 3.1.0 writes for it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata._native import kernels
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import page
from tests.support.package_pair import PackagePair
from tests.support.wiki_extraction import split_head

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")

PAGES = settings.default.max_examples // 10
"""Pages of a dump: 100,000 of all examples in the thorough profile."""
TEMPLATES = {
    "A": "[{{{1|}}}|{{{a|d}}}]",
    "B": '<b>x</b>{{{1}}}<ref>y</ref> < > " & &lt;<nowiki>{{A}}</nowiki>',
    "C": "{{A|{{{1|}}}|a={{{{{1|x}}}}}}}{{B|{{{",
}
TOKENS = {
    "calls": "{ {{ {{{ {{{{ } }} }}} }}}} | [[ ]] = a 1 A B C : ' {{A| {{{1}}} {{{a| #if: lc: \n {{B}}",
    "links": "[ [[ [[[ ] ]] ]]] | a b : w: http:// // File: ' '' {| |} \t é http://a.b/c.png __TOC__ _ __ \n",
    "quotes": "' '' ''' ''''' \" \"\" a b \n",
    "tags": "< > / <br> <br/> <br br <ref <ref> </ref> <p> </p> <p <b> <b </b> <!-- --> \" ' \n a = é "
    "<nowiki> </nowiki> <section <div> </div> <h2> <nobr> <nobr <small> </small> <table> </table> "
    "<references/> <ul> <li> </li> </ul> <noinclude> </noinclude> <REF> </REF> /> "
    "<gallery> </gallery> \u3000",
    "formulas": "<math> </math> <math <MATH> a b > /> <code> </code> <code \n <math>a</math>",
    "marks": "<< >> \t . ... .... , : ) ] » [ ( « \n \n\n a é - _ ! ¡ ½ \u0301 &amp; &lt; < &nbsp; &#x41; &",
    "lines": "= == === \n \n \n a b + ++ : * # ; { } | ( ) . - ! ? é \u3000 & < >",
}


@given(st.integers(0, 2**32))
def test_every_page_of_a_random_dump_is_the_packages(seed: int) -> None:
    head, pages = split_head(random_dump(seed, PAGES), "3.1.0")
    with tempfile.TemporaryDirectory() as directory:
        PackagePair(head, pages, directory).check_pages(pages)


@pytest.mark.parametrize("kind", TOKENS)
@given(st.data())
def test_marks_in_any_order_are_the_packages(pair: PackagePair, kind: str, data: st.DataObject) -> None:
    tokens = st.sampled_from([" ", *TOKENS[kind].split(" ")])
    text = "".join(data.draw(st.lists(tokens, max_size=30)))
    pair.check_pages(page("X", text, number=1).encode())


@pytest.mark.parametrize(
    "text",
    [
        *("a < div> b < /div> c", "< /div>", "</di<ref/>v>", "</div<a>>", "a <\ndiv x='>'> b </DIV > c"),
        *("a<</center >br />b", "a<</p>hr/>b", "a<</ h2>br>b"),
        *("a </noinclude<noinclude>> b", "a <</noinclude>noinclude> b", "a </noinclude</noinclude>> b"),
        *("{{#expr:1\n#x}}", "{{#expr:1\n \n\t#x\n #y}}", "{{#expr:1+\n#x}}", "{{#expr:1\n2#x}}"),
        *("{{#expr:1\n#<nowiki>x</nowiki>}}", "{{#expr:1 #<nowiki>x</nowiki>}}"),
        *("{{uc:[[東а{{в[[[[[{{|ūķ}}}}}}", "{{lc:ÉÉ[[[[é{{[[É}}}}|É}}É"),
    ],
)
def test_markup_that_once_differed_is_the_packages(pair: PackagePair, text: str) -> None:
    pair.check_pages(page("X", f"x {text} y", number=1).encode())


@pytest.mark.parametrize("text", ["a</<includeonly>includeonly>b", "a<noinclude<noinclude/>\n/>b"])
def test_definitions_that_once_differed_are_the_packages(tmp_path: Path, text: str) -> None:
    head, _ = split_head(random_dump(0, 1), "3.1.0")
    head["template_namespace"] = "Template"
    PackagePair(head, page("Template:T", text, number=1, namespace=10).encode(), str(tmp_path))


@given(st.integers(0, 2**32))
def test_a_block_of_any_pages_is_the_packages(seed: int) -> None:
    head, pages = split_head(random_dump(seed, 10), "3.1.0")
    with tempfile.TemporaryDirectory() as directory:
        PackagePair(head, pages, directory).check_block(pages)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> PackagePair:
    """Extractors that know TEMPLATES."""
    pages = [
        page(f"Template:{name}", text, number=n, namespace=10)
        for n, (name, text) in enumerate(TEMPLATES.items(), 1)
    ]
    head, _ = split_head(random_dump(0, 1), "3.1.0")
    head["template_namespace"] = "Template"
    return PackagePair(head, "".join(pages).encode(), str(tmp_path_factory.mktemp("pair")))
