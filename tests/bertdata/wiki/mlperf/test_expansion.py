"""Calls, parameters and functions within the original's limits; a page beyond the budget is named."""

import pytest

from bertdata.wiki.mlperf import MlperfExtractor
from tests.support.dumps import HEAD, TAIL, page
from tests.support.wiki_extraction import Extraction


def extraction(
    text: str, templates: dict[str, str] | None = None, *, title: str = "X", **settings
) -> Extraction:
    """The dump of one article, and of templates if they are given."""
    names = [
        page(f"Template:{name}", body, number=n, namespace=10)
        for n, (name, body) in enumerate((templates or {}).items(), 1)
    ]
    dump = HEAD + "".join(names) + page(title, text, number=500) + TAIL
    return Extraction(MlperfExtractor, dump.encode(), templates=templates is not None, **settings)


def render(text: str, templates: dict[str, str] | None = None, *, title: str = "X") -> str:
    """The body of an article of that text."""
    made = extraction(text, templates, title=title)
    reason, detail = made.outcomes[-1][:2]
    assert not reason, (reason, detail)
    return made.articles.decode().split("\n\n", 1)[1].removesuffix("\n</doc>\n").rstrip("\n")


def nested(opening: str, times: int, closing: str) -> str:
    return opening * times + "x" + closing * times


def test_calls_nest_488_deep_in_names_and_no_deeper():
    assert render("a" + nested("{{y", 488, "}}") + "b") == "ab"
    outcome = extraction("a" + nested("{{y", 489, "}}") + "b").outcomes[-1]
    assert outcome[:2] == ("extraction failed", "calls are nested too deep")


def test_branches_nest_244_deep_and_are_empty_beyond():
    assert render("a" + nested("{{#if:y|", 244, "}}") + "b") == "axb"
    assert render("a" + nested("{{#if:y|", 245, "}}") + "b") == "ab"


def test_a_template_that_calls_itself_shows_its_text_29_times():
    assert render("{{Loop}}.", {"Loop": "e{{Loop}}"}) == "e" * 29 + "."


def test_a_template_that_calls_itself_twice_ends_at_the_budget():
    outcome = extraction("{{Loop}}.", {"Loop": "e{{Loop}}{{Loop}}"}, max_work=1 << 22).outcomes[-1]
    assert outcome[:2] == ("limit", f"took more than {1 << 22} bytes of work")


def test_templates_that_double_a_text_end_at_the_budget():
    doubling = {f"D{n}": f"{{{{D{n + 1}}}}}{{{{D{n + 1}}}}}" for n in range(28)}
    outcome = extraction("{{D0}}", {**doubling, "D28": "x" * 10000}, max_work=1 << 24).outcomes[-1]
    assert outcome[0] == "limit"


def test_a_replacement_that_would_fill_memory_is_refused_before_it_is_made():
    long = "{{#invoke:String|replace|" + "a" * 100_000 + "|a|" + "b" * 100_000 + "}}"
    assert extraction(long).outcomes[-1][:2] == ("limit", "grew beyond 256 MiB of text")


def test_parameters_nest_ten_levels_and_are_empty_beyond():
    assert render("a{{P}}b", {"P": nested("{{{p|", 10, "}}}")}) == "axb"
    assert render("a{{P}}b", {"P": nested("{{{p|", 11, "}}}")}) == "ab"


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("{{T|a}}", "1=a n="),
        ("{{T| a |n= b }}", "1=a n=b"),
        ("{{T|1=a|b}}", "1=b n="),
        ("{{T|n=a|n=b}}", "1= n=b"),
        ("{{T|{{lc:A=B}}}}", "1= n="),
        ("{{t|a}}", "1=a n="),
        ("{{:Template:T|a}}", "1=a n="),
        ("{{subst:T|{{lc:A}}}}", "1=a n="),
        ("{{T_|a}}", ""),
        ("{{Template:T|a}}", ""),
    ],
)
def test_a_template_takes_its_arguments_by_name_or_number(call, value):
    assert render(f"({call}).", {"T": "1={{{1|}}} n={{{n|}}}"}) == f"({value})."


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("a<noinclude>b</noinclude>c", "ac"),
        ("a<noinclude >b", "a"),
        ("a<noinclude/>b", "ab"),
        ("a<includeonly>b</includeonly>c", "abc"),
        ("a<onlyinclude>b</onlyinclude>c<onlyinclude>d</onlyinclude>", "bd"),
        ("a<onlyinclude></onlyinclude>b", "a<onlyinclude></onlyinclude>b"),
        ("a<!-- b\n -->c", "ac"),
        ("<nowiki>{{T2}}</nowiki>", "<nowiki></nowiki>"),
        ("<nowiki>{{T2}}\n</nowiki>", "<nowiki>two\n</nowiki>"),
    ],
)
def test_a_definition_holds_what_is_to_be_included(body, value):
    assert render("({{T}}).", {"T": body, "T2": "two"}) == f"({value})."


def test_without_definitions_every_call_of_a_template_is_empty():
    assert render("({{T|{{lc:A}}}}{{lc:A}}).") == "(a)."


def test_functions_of_modules_take_the_arguments_of_the_caller_of_their_name():
    templates = {"Say": "{{#invoke:String|len}}", "String": "{{Mid}}", "Mid": "{{#invoke:String|len}}"}
    assert render("({{Say|abc}}{{String|abcd}}).", templates) == "(4)."


def test_printable_characters_of_a_repr_are_those_of_unicode_11():
    assert render("({{#invoke:If empty|main|é\u200b\u0b55}}).") == r"({'1': 'é\u200b\u0b55'})."
