"""The kernel of MLPerf's extractor equals its readable twin."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata._native import kernels
from bertdata.wiki.mlperf import MlperfExtractor
from bertdata.wiki.mlperf.compute import compute
from bertdata.wiki.pages import LIMIT
from tests.soak.wiki_grammar import Markup
from tests.soak.wiki_markup import random_dump
from tests.soak.wiki_words import (
    BROKEN,
    ENTITIES,
    LINK_TARGETS,
    MAGIC_WORDS,
    TAGS,
    TYPOGRAPHY,
    URLS,
    WORDS,
)
from tests.support.dumps import HEAD, TAIL, page
from tests.support.strategies import tries
from tests.support.wiki_extraction import LIMITS, Extraction, split_head

pytestmark = pytest.mark.skipif(not hasattr(kernels, "MlperfExtractor"), reason="the kernel is not built")

PAGES = 100 if settings().max_examples >= 1000 else 20
"""Pages of a generated dump: in the thorough profile 100,000 go through both engines."""

TEMPLATES = {
    "T": "{{{1|d}}}{{{n|}}}",
    "Rows": "{|\n| {{{1}}}\n|}",
    "Loop": "e{{Loop}}",
    "Nest": "{{T|{{{1}}}|n={{T}}}}",
}
CALLS = (
    "{{T|",
    "{{T}}",
    "{{Loop}}",
    "{{Nest|",
    "{{Rows|",
    "|n=",
    "{{{1|",
    "{{#if:",
    "{{#switch:a|a=",
    "{{lc:",
    "{{#ifeq:a|",
)
PIECES = st.sampled_from(
    (
        *(*WORDS, *ENTITIES, *TYPOGRAPHY),
        *(*BROKEN, *BROKEN, *BROKEN, *CALLS, *CALLS, *CALLS),
        *(f"<{tag}>" for tag in TAGS),
        *(f"</{tag}>" for tag in TAGS),
        *(f"{{{{{word}}}}}" for word in MAGIC_WORDS),
        *(f"[[{target}" for target in LINK_TARGETS),
        *(f"[{url}" for url in URLS),
    )
)
LINES = st.sampled_from(
    [
        *(
            "<page>",
            "</page>",
            "<page",
            "<ns>0</ns>",
            "<ns></ns>",
            "<ns>10</ns>",
            "<id>1</id>",
            "<id>2</id>",
            "<id/>",
            "<id></id>",
        ),
        *(
            "<title>A</title>",
            "<title>a<b",
            "<title/>",
            '<redirect title="x" />',
            "<text>one</text>",
            "<text>one",
            "<text/>",
            "x < y",
        ),
        *(
            '<text bytes="0" />',
            "two</text>",
            "</text>",
            "three",
            "",
            "<b>four</b>",
            "<!-- five -->",
            "é<ñ>",
            "</",
            "<text>a<b>c",
            "><",
        ),
        *(
            "<text>six</page>",
            "<page><title>B</title>",
            "<é>",
            "<text />seven",
            "<text/>eight</text>",
            "  <page>  ",
            "<text>n<o",
            "<1>",
        ),
    ]
)


def native(**arguments: Any) -> Any:
    return kernels.MlperfExtractor(compute=compute, **arguments)


def assert_equal(dump: bytes, *, templates: bool, **settings: Any) -> None:
    """Both engines make the same of the dump; the first page that differs is shown."""
    twin = Extraction(MlperfExtractor, dump, templates=templates, **settings)
    kernel = Extraction(native, dump, templates=templates, **settings)
    assert kernel.definitions == twin.definitions
    assert kernel.template_pages == twin.template_pages
    _, pages = split_head(dump)
    place = 0
    for found, expected in zip(kernel.outcomes, twin.outcomes, strict=False):
        source = pages[expected[3] : expected[4]].decode(errors="replace")
        assert _without_limit(tuple(found)) == _without_limit(expected), source
        end = place + expected[2]
        assert kernel.articles[place:end].decode() == twin.articles[place:end].decode(), source
        place = end
    assert len(kernel.outcomes) == len(twin.outcomes)
    assert kernel.articles == twin.articles
    assert kernel.first_ids == twin.first_ids
    assert [tuple(state) for state in kernel.states] == [tuple(state) for state in twin.states]


def _without_limit(outcome: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outcome; which of several limits a page met first is not said: the engines count differently."""
    return (outcome[0], *outcome[2:]) if outcome[0] == LIMIT else outcome


@pytest.mark.parametrize("templates", [False, True])
@given(seed=st.integers(0, 2**32))
def test_the_kernel_is_the_twin_on_generated_dumps(seed, templates):
    assert_equal(random_dump(seed, PAGES), templates=templates, block=1 << 30)


@settings(tries(4))
@given(pieces=st.lists(PIECES, max_size=25))
def test_the_kernel_is_the_twin_on_pieces_of_markup(pieces):
    definitions = [
        page(f"Template:{name}", text, number=n, namespace=10)
        for n, (name, text) in enumerate(TEMPLATES.items())
    ]
    dump = HEAD + "".join(definitions) + page("A: b/c", "".join(pieces), number=9) + TAIL
    assert_equal(dump.encode(), templates=True, block=1 << 30)
    assert_equal(dump.encode(), templates=False, block=1 << 30)


@settings(tries(4))
@given(lines=st.lists(LINES, max_size=40))
def test_the_kernel_reads_lines_as_the_twin_does(lines):
    assert_equal((HEAD + "".join(f"{line}\n" for line in lines)).encode(), templates=True, block=1 << 30)


@given(
    lines=st.lists(LINES, max_size=20),
    namespace=st.sampled_from(["0", "10", ""]),
    redirect=st.booleans(),
    inside=st.booleans(),
)
def test_the_kernel_enters_a_block_as_the_twin_does(lines, namespace, redirect, inside):
    site, _ = split_head(HEAD.encode())
    data = "".join(f"{line}\n" for line in lines).encode()
    state = (namespace, redirect, inside, "1")
    arguments = {**site, **LIMITS, "day": "2019-12-31", "templates": None, "skip_pages": ["2"]}
    made = [kind(**arguments).extract(data, state) for kind in (native, MlperfExtractor)]
    assert made[0] == made[1]
    made = [kind(**arguments).definitions(data, state) for kind in (native, MlperfExtractor)]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "text",
    [
        "a" + "{{y" * 488 + "}}" * 488 + "b",
        "a" + "{{y" * 489 + "}}" * 489 + "b",
        *("a" + "{{lc:" * n + "x" + "}}" * n + "b" for n in (486, 487, 488, 489)),
        *("a" + "{{#if:y|" * n + "x" + "}}" * n + "b" for n in (243, 244, 245, 300)),
        *("a" + "{{T|" * n + "x" + "}}" * n + "b" for n in (100, 200, 240, 250, 330)),
        *("a" + "{{{1|" * n + "x" + "}}}" * n + "b" for n in (9, 10, 11, 12)),
        "{{#invoke:String|replace|" + "a" * 50_000 + "|a|" + "b" * 50_000 + "}}",
    ],
)
@pytest.mark.thorough_after_first
def test_both_engines_have_the_same_limits(text):
    templates = {**TEMPLATES, "Deep": "{{{a|" * 12 + "x" + "}}}" * 12}
    definitions = [
        page(f"Template:{name}", body, number=n, namespace=10)
        for n, (name, body) in enumerate(templates.items())
    ]
    dump = (
        HEAD
        + "".join(definitions)
        + page("A", text, number=8)
        + page("B", "{{Deep}}" + text, number=9)
        + TAIL
    )
    assert_equal(dump.encode(), templates=True, block=1 << 30)


@pytest.mark.parametrize(
    "call",
    [
        *(
            "#expr:@",
            "urlencode:@",
            "lc:@A",
            "uc:@ß",
            "ucfirst:@a",
            "int:@",
            "#if:@|a",
            "#ifeq:@|@|a",
            "#switch:a|@=1|a=2",
        ),
        *(
            "#invoke:String|len|@@",
            "#invoke:If empty|main|@",
            "#invoke:String|find|a@|.",
            "#invoke:String|sub|a@b|1|1",
        ),
        *("#invoke:String|replace|a@|a|b|0|0", "#invoke:String|pos|a@b|3", "T2|@", "#ifexist:x|y|@"),
    ],
)
def test_both_engines_take_lone_surrogates_alike(call):
    body = "{{" + call.replace("@", "@@@") + "}}"
    pages = [
        page("Template:T", body, number=1, namespace=10),
        page("Template:T2", "x", number=2, namespace=10),
    ]
    dump = HEAD + "".join(pages) + page("A", "x {{T|é}} y", number=3) + TAIL
    assert_equal(dump.replace("@@@", "&#xD800;").encode(), templates=True, block=1 << 30)


def reason_of(kind: Any, dump: bytes, budget: int) -> str:
    return str(Extraction(kind, dump, templates=True, max_work=budget).outcomes[-1][0])


def assert_same_work(definitions: str, text: str) -> None:
    """The least budget that the kernel needs for the page is the twin's too."""
    dump = (HEAD + definitions + page("A page", text, number=99) + TAIL).encode()
    enough, too_little = 1 << 24, 0
    while enough - too_little > 1:
        budget = (enough + too_little) // 2
        if reason_of(native, dump, budget) == LIMIT:
            too_little = budget
        else:
            enough = budget
    found = [reason_of(MlperfExtractor, dump, budget) for budget in (too_little, enough)]
    assert found == [LIMIT, reason_of(native, dump, enough)], text


@given(seed=st.integers(0, 2**32))
def test_both_engines_take_the_same_work(seed):
    rng = Random(seed)
    definitions = "".join(
        page(f"Template:T{n}", Markup(rng, n // 8, depth=2).text(2), number=n, namespace=10)
        for n in range(24)
    )
    text = Markup(rng).text(3)
    assert_same_work(definitions, text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a",
            "東" * 50,
            "{{東}}" * 9,
            "{{T|東|n=é}}",
            "{{Nest|{{{1|東}}}}}",
            "{{Loop}}",
            "{{subst:T|{{T}}}}",
        ),
        *(
            "{{#if:x|a|b}}",
            "{{#switch:b|a|b=c|#default=d}}",
            "{{lc:" * 490 + "}}" * 490,
            "{{#ifexist:x|y|{{T}}}}",
        ),
        *("{{#expr:1+é}}", "{{#invoke:String|find|aé|.}}", "{{#invoke:String|replace|aéa|a|東}}"),
        *(
            "{{#invoke:String|replace|aéa||東|2}}",
            "{{#invoke:String|replace|aé|a|b|0|0}}",
            "{{#invoke:If empty|main|é|'}}",
        ),
        *("<ref>é</ref>" * 5, "<ref>" * 5, "</ref><table></table><tr", "<nowiki>{{T}}</nowiki>{{T}}<nowiki>"),
        *(
            "<math>a</math>" * 3,
            "<math>a<math>b</math>c</math>",
            "<code a</code>b</code><math ",
            "{{{1|{{T}}}}}",
        ),
    ],
)
def test_both_engines_take_the_same_work_for_each_construct(text):
    definitions = "".join(
        page(f"Template:{name}", body, number=n, namespace=10)
        for n, (name, body) in enumerate(TEMPLATES.items())
    )
    assert_same_work(definitions, text)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    "call",
    [
        "pos|target=abcdef|pos=@",
        *("sub|abcdef|@|4", "sub|abcdef|1|@", "sublength|abcdef|@|2", "sublength|abcdef|2|@"),
        *("find|abcabc|b|@|1", "replace|aXbXc|X|y|@", "replace|source=aXbX|pattern=X|replace=y|count=@"),
    ],
)
def test_both_engines_take_numbers_of_any_size_alike(call: str, sign: str) -> None:
    numbers = (2**k + d for k in (31, 32, 60, 61, 62, 63, 64, 65, 128) for d in (-3, -1, 0, 1, 3))
    calls = [f"{{{{#invoke:String|{call.replace('@', f'{sign}{number}')}}}}}" for number in numbers]
    assert_equal(
        (HEAD + page("A", " x ".join(calls), number=1) + TAIL).encode(), templates=True, block=1 << 30
    )


@pytest.mark.parametrize(
    "text",
    [
        *(f"[http://a.b http://x.org/{letter}.png]" for letter in "ÿŸÅΜμẞKİſıéaβ'$&"),
        *(
            "[http://a.b HTTPſ://x.org/a.pİng]",
            "[http://a.b httpſ://x.org/a.gıf]",
            "[ſip:x y]",
            "[ſsh://x y]",
        ),
        *(
            "[http://a [[b]c]] d]",
            "[[x [//a [[b]] c]",
            "[[q [//a [[]] c]",
            "[[q [//a x\tb\x0bc]",
            "[//a\x85b c]",
        ),
        *(
            "{{ſubst:T|a}}",
            "{{SAFESUBſT:T|a}}",
            "<ſource>a</SOURCE>",
            "<ſ>a</S>",
            "<İ>a",
            "<Kbd>a",
            "<br\u0301 /><br²/>",
        ),
        *(
            "<math\x85>a</math>b",
            "<math\tx>a</math>",
            "<math >a</ math >",
            "<ref\u2003name=x /\u3000>",
            "++é!++\n+++",
        ),
        *(
            "{{lc:ΑΣ Σ ΣΑ'Σ}}",
            "{{uc:ŉǆﬁΐ}}",
            "{{ucfirst:ǆx}}",
            "{{lcfirst:İx}}",
            "&#٦٥;&#x٤1;&#1_0;&#x_41;&#xx41;",
        ),
    ],
)
def test_both_engines_know_the_same_letters(text):
    definition = page("Template:T", text.replace("{{", "{{{{lc:}}"), number=1, namespace=10)
    dump = HEAD + definition + page("A", f"{{{{T}}}} {text}", number=2) + TAIL
    assert_equal(dump.encode(), templates=True, block=1 << 30)
