"""Expansion of calls: magic words, parser functions and templates."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bertdata.unicode.characters import lower
from bertdata.wiki.mlperf.definitions import definition_title, split_nowiki
from bertdata.wiki.mlperf.invoke import Arguments, invoke
from bertdata.wiki.mlperf.parser_functions import call_function
from bertdata.wiki.mlperf.spans import CALL, PARAMETER, find_spans, split_parts
from bertdata.wiki.mlperf.work import (
    CALL_WORK,
    MAX_DEPTH,
    MAX_PARAMETER_LEVEL,
    STEP_WORK,
    Work,
    check_size,
    size_of,
)

_SUBSTITUTION = re.compile("(?:safe)?subst:", re.IGNORECASE)


class Templates(Protocol):
    """Definitions by title."""

    def get(self, title: str) -> str | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Facts of the dump: names of namespaces, the prefix of templates (with its colon), definitions."""

    namespaces: frozenset[str]
    template_prefix: str
    templates: Templates | None


class Expander:
    """Expansion of the texts of one page."""

    def __init__(self, site: Site, words: Mapping[str, str], work: Work) -> None:
        self._site = site
        self._words = words
        self._work = work
        self._callers: list[tuple[str, Arguments]] = []

    def transform(self, text: str) -> str:
        """The text expanded, apart from ``nowiki`` elements, which stay as they are."""
        with self._work.frames():
            pieces = [self.expand(plain) + nowiki for plain, nowiki in split_nowiki(text)]
            return "".join(pieces)

    def expand(self, text: str) -> str:
        """The text with each call replaced by its value, which is not looked at again."""
        if len(self._callers) >= MAX_DEPTH:
            return ""
        size = size_of(text)
        self._work.spend(size + STEP_WORK)
        if "{{" not in text:
            return text
        with self._work.frames(waiting=size):
            pieces: list[str] = []
            end = 0
            for begin, behind in find_spans(text, CALL):
                pieces += [text[end:begin], self._call(text[begin + 2 : behind - 2])]
                end = behind
            return self._join([*pieces, text[end:]])

    def _join(self, pieces: list[str]) -> str:
        check_size(sum(map(size_of, pieces)))
        return "".join(pieces)

    def _call(self, body: str) -> str:
        size = size_of(body)
        with self._work.frames(waiting=size):
            self._work.spend(size + CALL_WORK)
            first, *others = split_parts(body)
            name = self.expand(first.strip())
            substitution = _SUBSTITUTION.match(name)
            if substitution is not None:
                name = name[substitution.end() :]
            if name in self._words:
                return self._words[name]
            colon = name.find(":")
            if colon > 1:
                function, value = lower(name[:colon]), name[colon + 1 :].strip()
                return call_function(self, self._work, function, value, others)
            return self._call_template(name, others, plain=substitution is not None)

    def compute(self, function: str, arguments: list[str]) -> str:
        """The value of a function that is left to Python."""
        return self._work.compute(function, arguments)

    def invoke(self, module: str, function: str, parts: list[str]) -> str:
        """A function of a module. Without arguments it has those of the template of the module's name."""
        arguments: Arguments | None = self._arguments(parts)
        if not parts:
            callers = (found for name, found in reversed(self._callers) if name == module)
            arguments = next(callers, None)
        return "" if arguments is None else invoke(module, function, arguments, self._work)

    def _call_template(self, name: str, parts: list[str], *, plain: bool) -> str:
        if self._site.templates is None:
            return ""
        title = definition_title(name, self._site.template_prefix, self._site.namespaces)
        text = self._site.templates.get(title)
        if text is None:
            return ""
        arguments = self._arguments(parts, plain=plain)
        self._callers.append((name, arguments))
        try:
            return self.transform(self._substitute(text, arguments, 0))
        finally:
            self._callers.pop()

    def _arguments(self, parts: list[str], *, plain: bool = False) -> Arguments:
        with self._work.frames():
            return _name_arguments(parts if plain else [self.transform(part) for part in parts])

    def _substitute(self, text: str, arguments: Arguments, level: int) -> str:
        """The text with its parameters filled in. Those nested too deep are empty."""
        size = size_of(text)
        with self._work.frames(waiting=size):
            if level > MAX_PARAMETER_LEVEL:
                return ""
            self._work.spend(size + STEP_WORK)
            pieces: list[str] = []
            end = 0
            for begin, behind in find_spans(text, PARAMETER):
                pieces += [text[end:begin], self._parameter(text[begin + 3 : behind - 3], arguments, level)]
                end = behind
            return self._join([*pieces, text[end:]])

    def _parameter(self, body: str, arguments: Arguments, level: int) -> str:
        name, *defaults = split_parts(body)
        name = self.transform(self._substitute(name, arguments, level + 1))
        if name in arguments:
            self._work.spend(size_of(arguments[name]))
            return arguments[name]
        if not defaults:
            return ""
        return self.transform(self._substitute(defaults[0], arguments, level + 1))


def _name_arguments(parts: list[str]) -> Arguments:
    """The values by name. A value is stripped unless it may hold a link."""
    arguments: Arguments = {}
    number = 0
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            number += 1
            name, value = str(number), part
        arguments[name.strip()] = value if "]]" in value else value.strip()
    return arguments
