"""Expand calls in double braces: magic words, parser functions and templates."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bertdata.unicode.characters import lower
from bertdata.wiki.mlperf.definitions import find_definition_title, split_nowiki
from bertdata.wiki.mlperf.invoke import Arguments, invoke_function
from bertdata.wiki.mlperf.parser_functions import call_function
from bertdata.wiki.mlperf.spans import CALL, PARAMETER, find_spans, split_parts
from bertdata.wiki.mlperf.work import (
    CALL_WORK,
    MAX_DEPTH,
    MAX_PARAMETER_LEVEL,
    STEP_WORK,
    Work,
    check_text_size,
    count_bytes,
)

_SUBSTITUTION = re.compile("(?:safe)?subst:", re.IGNORECASE)


class Templates(Protocol):
    """Mapping from the title of a template to its definition."""

    def get(self, title: str) -> str | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """What the expansion of a page needs to know about the dump.

    namespaces: names of the namespaces.
    template_prefix: template namespace with its colon.
    templates: template definitions, or None if templates are not expanded.
    """

    namespaces: frozenset[str]
    template_prefix: str
    templates: Templates | None


class Expander:
    """Expander of the calls in one page's wikitext.

    words: value of each magic word, such as ``PAGENAME``.
    work: counter of the work on the page, which is limited.
    """

    def __init__(self, site: Site, words: Mapping[str, str], work: Work) -> None:
        self._site = site
        self._words = words
        self._work = work
        self._callers: list[tuple[str, Arguments]] = []

    def transform(self, text: str) -> str:
        """Expand all calls in the text, except inside ``nowiki`` elements, which stay as they are."""
        with self._work.enter_frames():
            pieces = [self.expand(plain) + nowiki for plain, nowiki in split_nowiki(text)]
            return "".join(pieces)

    def expand(self, text: str) -> str:
        """Replace each call in double braces by its value. Braces in a value are not expanded again."""
        # This ends a template that calls itself: from this depth on, WikiExtractor returns an empty text.
        if len(self._callers) >= MAX_DEPTH:
            return ""
        # Count the work for the text before looking at it, so that the C++ kernel and this code count the
        # same and fail at the same pages.
        size = count_bytes(text)
        self._work.spend(size + STEP_WORK)
        if "{{" not in text:
            return text
        with self._work.enter_frames(waiting=size):
            pieces: list[str] = []
            end = 0
            for begin, behind in find_spans(text, CALL):
                pieces += [text[end:begin], self._expand_call(text[begin + 2 : behind - 2])]
                end = behind
            return self._join_pieces([*pieces, text[end:]])

    def _join_pieces(self, pieces: list[str]) -> str:
        check_text_size(sum(map(count_bytes, pieces)))
        return "".join(pieces)

    def _expand_call(self, body: str) -> str:
        size = count_bytes(body)
        with self._work.enter_frames(waiting=size):
            self._work.spend(size + CALL_WORK)
            # "#ifeq: {{lc:A}} | a | yes" -> first "#ifeq: {{lc:A}} ", others [" a ", " yes"]
            # Only the first part is expanded now. A parser function expands the others when it needs them.
            first, *others = split_parts(body)
            name = self.expand(first.strip())
            substitution = _SUBSTITUTION.match(name)
            if substitution is not None:
                name = name[substitution.end() :]
            if name in self._words:
                return self._words[name]
            # A colon after two or more characters makes it a parser function ("lc:A"). A template of another
            # namespace ("User:Foo") is therefore taken for an unknown function, which gives an empty text.
            colon = name.find(":")
            if colon > 1:
                function, value = lower(name[:colon]), name[colon + 1 :].strip()
                return call_function(self, self._work, function, value, others)
            return self._call_template(name, others, plain=substitution is not None)

    def compute(self, function: str, arguments: list[str]) -> str:
        """Evaluate an arithmetic or regular expression with ``compute.compute``, and count its work."""
        return self._work.compute(function, arguments)

    def invoke(self, module: str, function: str, parts: list[str]) -> str:
        """Call a function of a Lua module, as ``{{#invoke:...}}`` does, and return its value.

        A call without arguments takes the arguments of the innermost template call with the module's name.
        """
        arguments: Arguments | None = self._expand_arguments(parts)
        if not parts:
            callers = (found for name, found in reversed(self._callers) if name == module)
            arguments = next(callers, None)
        return "" if arguments is None else invoke_function(module, function, arguments, self._work)

    def _call_template(self, name: str, parts: list[str], *, plain: bool) -> str:
        if self._site.templates is None:
            return ""
        title = find_definition_title(name, self._site.template_prefix, self._site.namespaces)
        text = self._site.templates.get(title)
        if text is None:
            return ""
        # Arguments are expanded in the caller's context, before the call is on the stack (a "subst:" call
        # takes them as they are). Then the definition's parameters are filled in, and the result is expanded.
        # definition "[{{{1|none}}}] {{lc:{{{1}}}}}", call "{{T|AB}}" -> "[AB] {{lc:AB}}" -> "[AB] ab"
        arguments = self._expand_arguments(parts, plain=plain)
        self._callers.append((name, arguments))
        try:
            return self.transform(self._fill_parameters(text, arguments, 0))
        finally:
            self._callers.pop()

    def _expand_arguments(self, parts: list[str], *, plain: bool = False) -> Arguments:
        with self._work.enter_frames():
            return _name_arguments(parts if plain else [self.transform(part) for part in parts])

    def _fill_parameters(self, text: str, arguments: Arguments, level: int) -> str:
        """Replace the parameters (``{{{name}}}``) in a definition by the arguments of a call.

        level: how many parameters this text is nested in. Too deeply nested parameters become empty.
        """
        size = count_bytes(text)
        with self._work.enter_frames(waiting=size):
            if level > MAX_PARAMETER_LEVEL:
                return ""
            self._work.spend(size + STEP_WORK)
            pieces: list[str] = []
            end = 0
            for begin, behind in find_spans(text, PARAMETER):
                pieces += [
                    text[end:begin],
                    self._expand_parameter(text[begin + 3 : behind - 3], arguments, level),
                ]
                end = behind
            return self._join_pieces([*pieces, text[end:]])

    def _expand_parameter(self, body: str, arguments: Arguments, level: int) -> str:
        # "{{{1|default}}}": the name may contain parameters and calls, as may the default. The value of an
        # argument is inserted as it is, since it was expanded with the arguments.
        name, *defaults = split_parts(body)
        name = self.transform(self._fill_parameters(name, arguments, level + 1))
        if name in arguments:
            self._work.spend(count_bytes(arguments[name]))
            return arguments[name]
        if not defaults:
            return ""
        return self.transform(self._fill_parameters(defaults[0], arguments, level + 1))


def _name_arguments(parts: list[str]) -> Arguments:
    """Turn the parts of a call into arguments: values by name.

    Parts without ``=`` are named by numbers from 1. As in WikiExtractor, a value is stripped unless it
    contains ``]]``.
    """
    # ["a", "x = b ", "c"] -> {"1": "a", "x": "b", "2": "c"}
    arguments: Arguments = {}
    number = 0
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            number += 1
            name, value = str(number), part
        arguments[name.strip()] = value if "]]" in value else value.strip()
    return arguments
