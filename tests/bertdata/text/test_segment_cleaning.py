"""Stages 1 and 2 of MLPerf's text stage: frames off, mark-up out."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from bertdata.text.cleaning import (
    DROPPED_LINES,
    LINK_RULES,
    RULES,
    TAG_RULES,
    TEXT_RULES,
    Rule,
    clean_by_table,
    clean_lines,
)
from bertdata.text.doc_tags import strip_doc_tags
from tests.support.fake_splitters import read_kit
from tests.support.paths import ROOT

GOLDEN = ROOT / "golden" / "cleaning"
FILES = ("wiki_00", "wiki_01")

NAMES = (
    *("doc", "chem", "ins", "ref", "Ref", "includeonly", "graph", "section", "meta", "hr", "gallery", "http"),
    *("mapframe", "poem", "math", "div", "sup", "br", "BR", "Br", "del", "nowiki", "NOWIKI", "onlyinclude"),
    *("small", "noinclude", "references"),
)
PIECES = [
    *"[]|<>/\\{}: \r",
    *(
        "[[",
        "]]",
        "[[Category:",
        "[[File:",
        "[[:file:",
        "[[Media:",
        "[[image:",
        "alt=",
        "al",
        "t=",
        "<, ref ",
    ),
    *("é", "水", "\u2028", "word", "</div style>", "<graph>{", "}</graph>", "/>", "<poem x>"),
    *(f"<{name}" for name in NAMES),
    *(f"<{name}>" for name in NAMES),
    *(f"</{name}>" for name in NAMES),
]
MARKUP_LINES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
MARKUP = st.lists(MARKUP_LINES, max_size=6).map(lambda lines: "\n".join(lines).encode())


@pytest.mark.parametrize("file", FILES)
def test_stages_1_and_2_equal_the_kit(kit: Path, file: str) -> None:
    extracted = (kit / "extracted" / "AA" / file).read_bytes()
    stripped = strip_doc_tags(extracted, file)
    assert stripped.text == read_kit(kit, f"stages/{file}.1")
    assert stripped.articles == extracted.count(b"\n</doc>")
    assert clean_lines(stripped.text) == read_kit(kit, f"stages/{file}.2")


@pytest.mark.parametrize("file", FILES)
def test_the_table_alone_gives_the_kits_stage_2(kit: Path, file: str) -> None:
    assert clean_by_table(read_kit(kit, f"stages/{file}.1")) == read_kit(kit, f"stages/{file}.2")


def test_golden_markup_is_cleaned_as_grep_and_sed_do() -> None:
    cleaned = (GOLDEN / "markup.cleaned.txt").read_bytes()
    markup = (GOLDEN / "markup.txt").read_bytes()
    assert clean_by_table(markup) == cleaned
    assert clean_lines(markup) == cleaned


def test_every_rule_changes_some_line_of_the_golden_markup() -> None:
    idle = set(range(len(RULES)))
    for line in (GOLDEN / "markup.txt").read_bytes().split(b"\n"):
        for number, rule in enumerate(RULES):
            changed = re.sub(rule.pattern, rule.replacement, line)
            if changed != line:
                idle.discard(number)
            line = changed
    assert [RULES[number] for number in idle] == []


@given(MARKUP)
def test_skipping_rules_changes_nothing(text: bytes) -> None:
    assert clean_lines(text) == clean_by_table(text)


@pytest.mark.parametrize("rule", sorted(set(RULES + DROPPED_LINES)), ids=lambda rule: rule.pattern.decode())
def test_each_match_of_a_rule_holds_the_text_it_needs(rule: Rule) -> None:
    @given(st.from_regex(re.compile(rule.pattern)))
    def check(text: bytes) -> None:
        match = re.search(rule.pattern, text)
        assert match is not None
        assert rule.needs in match.group()

    check()


def test_rules_of_a_group_need_what_the_group_is_skipped_without() -> None:
    for common, rules in ((b"[", LINK_RULES), (b"alt=", TEXT_RULES), (b"<", TAG_RULES)):
        assert all(common in rule.needs or rule.needs in (b"ile:", b"edia:", b"mage:") for rule in rules)
        assert all(re.escape(common) in rule.pattern or common in rule.pattern for rule in rules)


def test_no_rule_adds_a_bracket() -> None:
    assert {rule.replacement for rule in RULES} == {b"", rb"\1", b"\r"}


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        (b"[[[[a]]]]", b"a"),
        (b"[[b|a [[c|d]]]]", b"a d"),
        (b"<chem>x</chem>", b">x"),
        (b"<references/>", b""),
        (b"<section a/>b<hr/>", b""),
        (b"<section \\/>", b"<section \\/>"),
        (b"x</doc>", b"x\r"),
        (b"<br/>", b"<br/>"),
        (b"<mapframe a/>b", b"b"),
        (b"<mapframe a>b\\c/>", b"b\\c/>"),
    ],
)
def test_a_rule_does_what_the_original_does(line: bytes, cleaned: bytes) -> None:
    assert clean_lines(line + b"\n") == cleaned + b"\n"


def test_a_category_link_takes_its_line_along() -> None:
    assert clean_lines(b"a\nb [[Category:c|d]] e\nf") == b"a\nf\n"


def test_the_line_after_any_doc_is_dropped_unseen() -> None:
    text = b'<doc id="1">\nTitle\n\nuses <document> tags\nlost\nkept\r\ncarriage\rreturns\n</doc>\n'
    assert strip_doc_tags(text, "wiki_00").text == b"\n\nkept\ncarriage\nreturns\n"


@pytest.mark.parametrize("last", [b"uses <document> tags", b"names <doc"])
def test_an_articles_end_after_a_doc_is_dropped_as_a_title_and_still_ends_it(last: bytes) -> None:
    article = b'<doc id="%d">\nTitle\n\nkept\n%b\n</doc>\n'
    stripped = strip_doc_tags(article % (1, last) + article % (2, last), "wiki_00")
    assert stripped.text == b"\nkept\n\n\nkept\n\n"
    assert stripped.articles == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wiki_00: no article found"),
        (b"plain text\n", "wiki_00: no article found"),
        (
            b'<doc id="1">\nA\n\ntext\n',
            r"wiki_00: line 1: <doc> is not closed by </doc> before the file ends",
        ),
        (
            b'<doc id="1">\nA\ntext\n<doc id="2">\nB\ntext\n</doc>\n',
            r"wiki_00: line 1: <doc> is not closed by </doc> before the next one opens on line 4",
        ),
    ],
)
def test_a_frame_cut_short_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        strip_doc_tags(data, "wiki_00")
