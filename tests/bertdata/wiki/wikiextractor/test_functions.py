"""Parser functions give the kernel and the package the same text for any arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import kernels
from tests.soak.wiki_markup import random_dump
from tests.support.dumps import page
from tests.support.package_pair import DAY, LIMITS, PackagePair
from tests.support.wiki_extraction import START, split_head, template_file

pytestmark = pytest.mark.skipif(kernels is None, reason="the kernels are not built")

FUNCTIONS = (
    "lc uc lcfirst ucfirst urlencode urldecode int formatnum padleft padright #len #pos #rpos #sub #count "
    "#replace #explode #if #ifeq #switch #iferror #ifexist #expr #ifexpr #invoke #time unknown"
)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")
TEXTS = st.one_of(
    st.text(st.sampled_from("ab AB12-=.,%+é\n"), max_size=8),
    st.text(CHARACTERS, max_size=6),
    st.integers(-20, 20).map(str),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["R", "%C3%A9", "%00", "<span class='error'>", "{{lc:A}}", "{{#expr:1+}}", "#default"]),
)
OPERANDS = "0 1 2 3 7 12 1.5 .5 5. 1e3 1e-3 1e16 1_000 007 0x1f 99999999999 trunc(2.5) abc"
OPERATORS = "+ - * / % ** mod div round = == != < > <= >= and or not ( ) , #"

HEAD, _ = split_head(random_dump(0, 1), "3.1.0")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> PackagePair:
    """Extractors that know Template:T, whose text is not escaped as an article's is."""
    head = {**HEAD, "template_namespace": "Template"}
    template = page("Template:T", "{{{{{f}}}:{{{1|}}}|{{{2|}}}}}", number=1, namespace=10)
    return PackagePair(head, template.encode(), str(tmp_path_factory.mktemp("pair")))


@given(st.sampled_from(FUNCTIONS.split()), st.lists(TEXTS, min_size=1, max_size=4))
def test_functions_of_any_texts_are_the_packages(pair: PackagePair, name: str, arguments: list[str]) -> None:
    pair.check_pages(page("X", f"x{{{{{name}:{'|'.join(arguments)}}}}}x", number=1).encode())


@pytest.mark.parametrize("name", ["#replace", "#explode"])
@pytest.mark.parametrize("limit", [2**63 - 1, 2**63, 2**63 + 1, 10**30, -(2**63), -(2**63) - 1, -(10**30)])
def test_limits_beyond_64_bits_are_the_packages(pair: PackagePair, name: str, limit: int) -> None:
    for arguments in (f"1,21|,|1|{limit}", f"121|2|3|{limit}"):
        pair.check_pages(page("X", f"x{{{{{name}:{arguments}}}}}x", number=1).encode())


@given(st.lists(st.sampled_from(f"{OPERANDS} {OPERATORS}".split()), max_size=8), st.sampled_from(["", " "]))
def test_sums_of_any_words_are_the_packages(pair: PackagePair, words: list[str], space: str) -> None:
    formula = space.join(words)
    text = f"x{{{{#expr:{formula}}}}} {{{{T|f=#expr|{formula}}}}} {{{{urlencode:{{{{#expr:{formula}}}}}}}}}"
    pair.check_pages(page("X", text, number=1).encode())


def test_numbers_beyond_the_kernel_go_to_the_package() -> None:
    kernel = kernels.Wikiextractor(**HEAD, **LIMITS, day=DAY, templates=template_file([]))
    for formula in ("2**70", "(-8)**0.5", "1 or abc", "(" * 90 + "1" + ")" * 90):
        text = page("X", f"{{{{#expr:{formula}}}}}", number=1).encode()
        _, ((reason, detail, *_),), _, _ = kernel.extract(text, START)
        assert reason == "unknown"
        assert detail
