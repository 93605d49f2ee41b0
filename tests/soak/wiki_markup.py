"""Generated MediaWiki dumps: every construct that the extractors know, whole and in pieces.

The templates of a dump call those of lower levels, so a text grows by a bounded factor; a few of them
call themselves, once each.
"""

from random import Random

from tests.soak.wiki_grammar import LEVELS, PER_LEVEL, Markup
from tests.soak.wiki_words import NAMES

_TEMPLATES = {
    "Loop": "e{{Loop}}",
    "Ping": "i{{Pong|{{{1|}}}}}",
    "Pong": "o{{Ping|a}}",
    "Cond": "{{#if:{{{1|}}}|{{{1}}}|none}}{{#switch:{{{name|}}}|a=A|#default={{{name}}}}}",
    "Rows": "{|\n|-\n| {{{1}}} || {{{2|}}}\n{{#if:{{{3|}}}|{{!}}-\n{{!}} {{{3}}}}}\n|}",
    "Only": "before<onlyinclude>[{{{1|}}}]</onlyinclude>, <onlyinclude>\n{{{2|two}}}\n</onlyinclude>after",
    "No": "<noinclude>documentation {{T1}}</noinclude>\nx{{{1|}}}<noinclude/>\n<includeonly>y</includeonly>",
    "Verbatim": "<nowiki>{{T0|{{{1}}}}}</nowiki> {{T1}} <noWiki>a\n{{T2}}</nowiki>",
    "Pointer": "{{{{{{of|name}}}}}}{{{{{1|T3}}}|x}}",
    "ﬁrst": "small ligature",
    "SSx": "capital of a sharp s",
    "ΣΑΣ": "{{{ΣΑΣ|}}}σ",
    "AT&T": "ampersand {{PAGENAME}}",
    "!": "never seen",
    "=": "equals",
    "Infobox x": "{{{name}}}: {{#invoke:Infobox x|main}}{{#invoke:String|len}} {{lc:{{{1|X}}}}}",
    "Ns:Odd name": "odd",
    "Twice": "<!-- a -->{{{1}}}{{{1|}}}<noinclude>\nunclosed {{{1}}}",
    "Convert": "{{#invoke:convert|convert}}",
    "Under_score": "u",
    "Empty": "<noinclude>nothing else</noinclude>",
}


def random_wikitext(rng: Random, *, level: int = LEVELS, size: int = 12) -> str:
    """The text of a page, not yet escaped for XML. It may call templates below that level."""
    return Markup(rng, level).text(size)


def random_dump(seed: int, pages: int, *, odd: bool = True) -> bytes:
    """A dump of so many pages beside its templates, the same for the same seed.

    odd: some pages break the rules: fields missing or doubled, ids repeated, tags in the text, cut short.
    """
    rng = Random(seed)
    template, module = rng.choice((("Template", "Module"), ("Template", "Module"), ("Vorlage", "Modul")))
    writer = _Writer(rng, template)
    parts = [_head(rng, template, module)]
    definitions = [*_TEMPLATES.items(), *((f"T{n}", _body(rng, n)) for n in range(LEVELS * PER_LEVEL))]
    rng.shuffle(definitions)
    parts += [writer.page(f"{template}:{name}", text, namespace="10") for name, text in definitions]
    parts += [
        writer.page(f"{module}:Mod", "return {}", namespace="828"),
        writer.page(f"{template}:Redirected", f"#REDIRECT [[{template}:T1]]", namespace="10", redirect=True),
        writer.page(f"{template}:By text", f" #redirect: [[{template}:T2]]\nmore", namespace="10"),
        writer.page(f"{template}:T1", "a second definition {{{1|}}}", namespace="10"),
        writer.page("P:One", "of a namespace with one letter", namespace="10"),
        writer.page(f"{template} engine", "an article all the same"),
    ]
    parts += [writer.odd_page() if odd and rng.random() < 0.2 else writer.plain_page() for _ in range(pages)]
    return "".join([*parts, "</mediawiki>\n"]).encode()


def _body(rng: Random, number: int) -> str:
    text = Markup(rng, number // PER_LEVEL, depth=2).text(3)
    forms = (
        "{}",
        "{}",
        "{}",
        "<includeonly>{}</includeonly>",
        "<noinclude>doc</noinclude>{}",
        "{}<noinclude>\nx",
    )
    chosen: str = rng.choice(forms)
    return chosen.format(text)


def _head(rng: Random, template: str, module: str) -> str:
    base = rng.choice(
        ("https://en.example.org/wiki/Main_Page", "http://x.org/a&amp;b/c", "https://e.org/wiki/")
    )
    keys = {
        "-1": "Special",
        "1": "Talk",
        "6": "File",
        "10": template,
        "14": "Category",
        "100": "P",
        "828": module,
    }
    namespaces = "".join(f'      <namespace key="{key}">{name}</namespace>\n' for key, name in keys.items())
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n'
        f"  <siteinfo>\n    <sitename>Generated</sitename>\n    <base>{base}</base>\n"
        f'    <namespaces>\n      <namespace key="0" />\n{namespaces}    </namespaces>\n  </siteinfo>\n'
    )


class _Writer:
    """Pages in XML, numbered from 1."""

    def __init__(self, rng: Random, template: str) -> None:
        self._rng = rng
        self._template = template
        self._quote = rng.choice(("&quot;", "&quot;", '"'))
        self._id = 0

    def plain_page(self) -> str:
        """An article as they come."""
        return self.page(self._title(), random_wikitext(self._rng))

    def odd_page(self) -> str:
        """A page that differs from an article in one way."""
        page = self.plain_page()
        changes = (
            lambda: page.replace("    <ns>0</ns>\n", ""),
            lambda: page.replace(
                "<ns>0</ns>", f"<ns>{self._rng.choice(('1', '4', '10', '14', '828', '', ' 0', '-1'))}</ns>"
            ),
            lambda: page.replace("    <revision>", '    <redirect title="X" />\n    <revision>'),
            lambda: page.replace(f"<id>{self._id}</id>", f"<id>{self._id - 1}</id>", 1),
            lambda: page.replace(f"    <id>{self._id}</id>\n", "", 1),
            lambda: page.replace("    <title>", "    <subtitle>").replace("</title>", "</subtitle>"),
            lambda: page + page,
            lambda: page.replace("</text>", "\n<b>raw</b> x\n<unclosed\n</text>"),
            lambda: page.replace("</text>", "</text>\n      <text>more</text>\n<text>and\nmore</text>"),
            lambda: page.replace("</text>", "</text> tail </page>"),
            lambda: page.replace("</title>", "</title><ns>5</ns>"),
            lambda: page.replace("\n    <id>", "<id>", 1),
            lambda: page.replace("</text>", " &amp;#xD800; surrogate</text>"),
            lambda: self.page(self._title(), None),
            lambda: self.page(self._title(), ""),
            lambda: self.page(
                self._title(), "#REDIRECT [[Elsewhere]]\n\nleft over", redirect=self._rng.random() < 0.5
            ),
            lambda: self.page(self._template + self._rng.choice((":T3", " x", ":T3/doc")), "x {{{1}}}"),
            lambda: "stray text\n<!-- comment -->\n" + page,
        )
        return self._rng.choice(changes)()

    def page(self, title: str, text: str | None, *, namespace: str = "0", redirect: bool = False) -> str:
        """A page as MediaWiki exports it. text: None for an element without text."""
        self._id += 1
        body = (
            '<text bytes="0" />'
            if text is None
            else f'<text xml:space="preserve">{self._escape(text)}</text>'
        )
        lines = [
            f"    <title>{self._escape(title)}</title>",
            f"    <ns>{namespace}</ns>",
            f"    <id>{self._id}</id>",
            *(['    <redirect title="Elsewhere" />'] if redirect else []),
            f"    <revision>\n      <id>{5000 + self._id}</id>",
            "      <contributor>\n        <username>x</username>\n        <id>7</id>\n      </contributor>",
            f"      <comment>{self._escape(self._rng.choice(('fixed', 'a > b', '{{T1}}')))}</comment>",
            f"      {body}\n    </revision>",
        ]
        return "  <page>\n" + "".join(f"{line}\n" for line in lines) + "  </page>\n"

    def _title(self) -> str:
        plain = f"{self._rng.choice(('Page', 'Ünï', '東京', 'ΣΑΣ', 'a b'))} {self._id}"
        odd = (
            "2001: A Film/Cast/Crew",
            'AT&T <b> "x"',
            "Talk:X/y",
            "A/B",
            ":x",
            "a:",
            "P:Portal/x",
            "{{T1}}",
            "[[x]]|",
        )
        return self._rng.choice((plain, plain, plain, self._rng.choice(odd), self._rng.choice(NAMES)))

    def _escape(self, text: str) -> str:
        for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', self._quote)):
            text = text.replace(character, entity)
        return text
