"""Grammar of wiki mark-up, drawn at random: every construct that the extractors know, whole and in pieces."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from tests.soak.wiki_words import (
    BROKEN,
    ENTITIES,
    EXPRESSIONS,
    FUNCTIONS,
    IMAGE_OPTIONS,
    INVOCATIONS,
    LINK_TARGETS,
    LOOPS,
    MAGIC_WORDS,
    NAMES,
    PARAMETERS,
    SWITCHES,
    TAGS,
    TYPOGRAPHY,
    URLS,
    WORDS,
)

Choice = TypeVar("Choice")

LEVELS = 3
"""Levels of templates: T0 to T7 call none, T8 to T15 call those, T16 to T23 all of them."""
PER_LEVEL = 8


class Markup:
    """Grammar of wiki mark-up. Each method draws one construct.

    ``level`` bounds the templates that may be called, ``depth`` how far constructs nest.
    """

    def __init__(self, rng: Random, level: int = LEVELS, depth: int = 4) -> None:
        self._rng = rng
        self._level = level
        self._depth = depth

    def text(self, size: int) -> str:
        """Blocks between empty lines, or line breaks, or nothing."""
        blocks = [self._block() for _ in range(self._rng.randint(1, max(1, size)))]
        return "".join(block + self._pick(("\n", "\n\n", "\n\n\n", "", " \n")) for block in blocks)

    def _block(self) -> str:
        draw = self._rng.random()
        if draw < 0.5:
            return self.inline(self._rng.randint(1, 6))
        blocks = (self._heading, self._list, self._table, self._gallery, self._odd_line, self._element)
        return self._pick(blocks)()

    def inline(self, parts: int = 3) -> str:
        """Words and inline constructs one after another."""
        return "".join(self._part() + self._pick((" ", " ", "", "  ")) for _ in range(parts))

    def _part(self) -> str:
        if self._depth <= 0 or self._rng.random() < 0.4:
            return self._pick(self._pick((WORDS, WORDS, WORDS, ENTITIES, TYPOGRAPHY, BROKEN)))
        self._depth -= 1
        drawn = self._rng.choice(self._CONSTRUCTS)(self)
        self._depth += 1
        return self._damage(drawn) if self._rng.random() < 0.04 else drawn

    def _call(self) -> str:
        if self._level <= 0 or self._rng.random() < 0.15:
            name = self._pick(
                ("Unknown", "unknown|x", "", " ", "a:b", "#tag:ref|x", "Template:T1", "DEFAULTSORT:X")
            )
        else:
            name = self._template_name()
        return "{{" + name + self._arguments(self._rng.choice((0, 0, 1, 1, 2, 3))) + "}}"

    def _template_name(self) -> str:
        draw = self._rng.random()
        if draw < 0.06 and self._level >= LEVELS:
            return self._pick(LOOPS)
        if draw < 0.25:
            return self._pick(NAMES)
        name = f"T{self._rng.randrange(PER_LEVEL * self._level)}"
        forms = (
            "{}",
            "{}",
            "{}",
            "{}",
            " {} ",
            "t{0[1]}",
            ":Template:{}",
            "subst:{}",
            "{}\n",
            "{{{{lc:{}}}}}",
        )
        return self._pick(forms).format(name)

    def _arguments(self, number: int) -> str:
        return "".join("|" + self._argument() for _ in range(number))

    def _argument(self) -> str:
        value = self.inline(self._rng.randint(0, 2))
        name = self._pick(PARAMETERS)
        return self._pick((value, value, f"{name}={value}", f" {name} = {value}\n", f"1={value}"))

    def _parameter(self) -> str:
        name = self._pick(PARAMETERS)
        default = self.inline(self._rng.randint(0, 2))
        forms = ("{{{%s}}}", "{{{%s|}}}", "{{{%s|" + default.replace("%", "%%") + "}}}", "{{{%s|a|b}}}")
        return (self._pick(forms) if self._rng.random() < 0.9 else "{{{{{{%s}}}}}}") % name

    def _function(self) -> str:
        name = self._pick(FUNCTIONS)
        first = self._pick((self._pick(WORDS), self.inline(1), "", "12", " ", "-1"))
        return "{{" + name + ":" + first + self._arguments(self._rng.randint(0, 4)) + "}}"

    def _if(self) -> str:
        test = self._pick(("", " ", "x", self._parameter(), self._call()))
        name = self._pick(("#if", "#if", "#IF", "#iferror", "#ifexist", "#ifexpr"))
        return "{{" + name + ":" + test + self._arguments(self._rng.choice((1, 2, 2, 3))) + "}}"

    def _ifeq(self) -> str:
        sides = ("a", "a", "b", " a", "", "1", "01", self.inline(1))
        return "{{#ifeq:" + self._pick(sides) + "|" + self._pick(sides) + self._arguments(2) + "}}"

    def _switch(self) -> str:
        cases = ("a=1", "b", "c = 3", "#default=d", "#default", "a|b=x", "= e", "A", self._argument())
        chosen = "|".join(self._pick(cases) for _ in range(self._rng.randint(0, 5)))
        return "{{#switch:" + self._pick(("a", "b", "z", "", self._parameter())) + "|" + chosen + "}}"

    def _expression(self) -> str:
        name = self._pick(("#expr", "#expr", "#expr", "#ifexpr"))
        return "{{" + name + ":" + self._pick(EXPRESSIONS) + self._pick(("", "", "", "|y|n")) + "}}"

    def _invoke(self) -> str:
        return "{{" + self._pick(INVOCATIONS) + self._pick(("", "", self._arguments(1))) + "}}"

    def _magic_word(self) -> str:
        return "{{" + self._pick(MAGIC_WORDS) + "}}"

    def _link(self) -> str:
        target, label = self._pick(LINK_TARGETS), self.inline(self._rng.randint(0, 2))
        forms = (
            "[[{0}]]",
            "[[{0}|{1}]]",
            "[[{0}]]s",
            "[[{0}|{1}]]ing",
            "[[ {0} | {1} ]]",
            "[[[{0}]]]",
            "[[{0}|{1}|x]]",
        )
        return self._pick(forms).format(target, label)

    def _image(self) -> str:
        options = "|".join(self._pick(IMAGE_OPTIONS) for _ in range(self._rng.randint(0, 3)))
        return "[[File:X.jpg|" + options + "|" + self.inline(2) + "]]"

    def _external(self) -> str:
        label = self._pick(
            ("", " ", " " + self.inline(1), " label", " http://x.org/p.png", " a [[b]] c", " a [b] c")
        )
        return "[" + self._pick(URLS) + label + self._pick(("]", "]", "]", ""))

    def _quotes(self) -> str:
        mark = self._pick(("''", "'''", "'''''", '"', "''\"", "''''", "'"))
        return mark + self.inline(1) + self._pick((mark[::-1], mark, mark, "'", ""))

    def _element(self) -> str:
        tag, content = self._pick(TAGS), self.inline(self._rng.randint(0, 2))
        opener = self._pick(
            ("<{}>", "<{}>", "<{} >", '<{} class="x">', "<{} name=a/b>", "< {}>", '<{} a="x>y">', "<{}\n>")
        )
        closer = self._pick(("</{}>", "</{}>", "</{}>", "</{} >", "</ {}>", "", "</{}"))
        alone = ("<{}/>", "<{} />", "<{}>", '<{} name="n" />', "<{} / >", "</{}>", "<{}")
        if self._rng.random() < 0.25:
            return self._pick(alone).format(tag)
        if self._rng.random() < 0.1:
            tag = tag.upper()
        return opener.format(tag) + content + closer.format(tag)

    def _comment(self) -> str:
        return "<!--" + self.inline(1) + self._pick(("-->", "-->", "--", "\n-->"))

    def _behaviour_switch(self) -> str:
        return "__" + self._pick(SWITCHES) + "__"

    def _entity(self) -> str:
        entity = self._pick(ENTITIES)
        return entity.replace("&", self._pick(("&", "&", "&amp;", "&amp;amp;")))

    def _heading(self) -> str:
        level = "=" * self._rng.randint(1, 6)
        title = self._pick(("See also", "Why?", "", " ", self.inline(1)))
        return (
            level + title + self._pick((level, level, level[1:], level + "=", level + " tail", level + " "))
        )

    def _list(self) -> str:
        return "\n".join(
            self._pick(("*", "#", ":", ";", "**", ":*", "#:", "::", "*"))
            + self._pick((" ", ""))
            + self.inline(1)
            for _ in range(self._rng.randint(1, 4))
        )

    def _table(self) -> str:
        rows = (
            "|-",
            "| {} || {}",
            "! {} !! {}",
            "|+ {}",
            '| style="x" | {}',
            "{{| \n| {}\n|}}",
            "{{{{!}}}} {}",
            "{}",
        )
        chosen = [
            self._pick(rows).format(self.inline(1), self.inline(1)) for _ in range(self._rng.randint(0, 4))
        ]
        opener = self._pick(('{| class="w"', "{|", "{|", "{{{!}}", "{{{|", ""))
        return "\n".join([opener, *chosen, self._pick(("|}", "|}", "|}", "|}}", "", "|}{|\n|}"))])

    def _gallery(self) -> str:
        return (
            "<gallery>\nA.jpg|" + self.inline(1) + "\nB.png\n" + self._pick(("</gallery>", "</gallery>", ""))
        )

    def _odd_line(self) -> str:
        begin = self._pick(
            (" ", "(", "{", "|", "!", "++", "--.-", "...", "----", "#REDIRECT [[X]]", ".", "\u3000")
        )
        return (
            begin + self.inline(self._rng.randint(0, 1)) + self._pick((")", "}", "++", "?++", "", "|}", "."))
        )

    def _damage(self, text: str) -> str:
        """The text with a few characters dropped, doubled or swapped."""
        characters = list(text)
        for _ in range(self._rng.randint(1, 3)):
            if characters:
                place = self._rng.randrange(len(characters))
                characters[place] = self._pick(("", characters[place] * 2, self._pick("{}[]|=<>&;'\"\n/!-")))
        return "".join(characters)

    def _pick(self, choices: Sequence[Choice]) -> Choice:
        return self._rng.choice(choices)

    _CONSTRUCTS: tuple[Callable[["Markup"], str], ...] = (
        *(_call, _call, _call, _parameter, _parameter, _function, _function, _if, _ifeq, _switch),
        *(_expression, _invoke, _magic_word, _link, _link, _image, _external, _quotes, _element),
        *(_element, _element, _comment, _behaviour_switch, _entity),
    )
