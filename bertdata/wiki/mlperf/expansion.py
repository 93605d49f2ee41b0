"""Expands calls in double braces: magic words such as {{PAGENAME}}, parser functions and templates."""

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
    """Interface of a mapping from the title of a template to its definition."""

    def get(self, title: str) -> str | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Facts about the dump that are needed to expand calls.

    namespaces: names of the namespaces.
    template_prefix: name of the namespace of templates, with a colon.
    templates: template definitions by title, or None if templates are not expanded.
    """

    namespaces: frozenset[str]
    template_prefix: str
    templates: Templates | None


class Expander:
    """Object that expands the calls in the wikitext of a page.

    site: facts about the dump.
    words: value of each magic word, such as ``PAGENAME``.
    work: counter of the work on the page, which is limited.
    """

    def __init__(self, site: Site, words: Mapping[str, str], work: Work) -> None:
        self._site = site
        self._words = words
        self._work = work
        self._callers: list[tuple[str, Arguments]] = []

    def expand_outside_nowiki(self, text: str) -> str:
        """Expand all calls in a text, except inside ``nowiki`` elements, which stay unchanged."""
        with self._work.enter_frames():
            pieces = [self.expand(plain) + nowiki for plain, nowiki in split_nowiki(text)]
            return "".join(pieces)

    def expand(self, text: str) -> str:
        """Replace each call in double braces by its value.

        If the value contains braces, they are not expanded again.
        """
        # A template may call itself. As in WikiExtractor, the text is empty from this depth on.
        if len(self._callers) >= MAX_DEPTH:
            return ""
        # Count the work for a text before it is searched. The C++ kernel counts at the same places, so both
        # exceed the limit at the same pages.
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
        """Join pieces of text. Raises LimitError if the result would be too long."""
        check_text_size(sum(map(count_bytes, pieces)))
        return "".join(pieces)

    def _expand_call(self, body: str) -> str:
        """Return the value of a call.

        body: text of the call between its double braces.
        """
        size = count_bytes(body)
        with self._work.enter_frames(waiting=size):
            self._work.spend(size + CALL_WORK)
            # For example, "#ifeq: {{lc:A}} | a | yes" is split into the first part "#ifeq: {{lc:A}} " and the
            # others [" a ", " yes"]. Only the first part is expanded now. A parser function expands the other
            # parts when it needs them.
            first, *others = split_parts(body)
            name = self.expand(first.strip())
            substitution = _SUBSTITUTION.match(name)
            if substitution is not None:
                name = name[substitution.end() :]
            if name in self._words:
                return self._words[name]
            # If a colon follows after two or more characters, the call is a parser function, as in "lc:A".
            # The call of a template in another namespace, as in "User:Foo", is therefore treated as an
            # unknown parser function, whose value is empty.
            colon = name.find(":")
            if colon > 1:
                function, value = lower(name[:colon]), name[colon + 1 :].strip()
                return call_function(self, self._work, function, value, others)
            return self._call_template(name, others, plain=substitution is not None)

    def compute(self, function: str, arguments: list[str]) -> str:
        """Count the work for an arithmetic or regular expression, and return its value.

        function, arguments: as for the function ``compute`` of the module ``compute``.
        """
        return self._work.compute(function, arguments)

    def invoke(self, module: str, function: str, parts: list[str]) -> str:
        """Return the value of a function of a Lua module, which ``{{#invoke:...}}`` calls.

        module, function: names of the module and of the function.
        parts: arguments of the call. If there are none, the function gets the arguments of the innermost
            template call whose template has the name of the module.
        """
        arguments: Arguments | None = self._expand_arguments(parts)
        if not parts:
            callers = (found for name, found in reversed(self._callers) if name == module)
            arguments = next(callers, None)
        return "" if arguments is None else invoke_function(module, function, arguments, self._work)

    def _call_template(self, name: str, parts: list[str], *, plain: bool) -> str:
        """Return the value of a template call. It is empty if the template is not defined.

        parts: arguments of the call, not yet expanded.
        plain: if True, the arguments are not expanded.
        """
        if self._site.templates is None:
            return ""
        title = find_definition_title(name, self._site.template_prefix, self._site.namespaces)
        text = self._site.templates.get(title)
        if text is None:
            return ""
        # First expand the arguments, while this template is not yet in the list of callers. Then replace the
        # parameters in the definition, and expand the result. For example, if the definition is
        # "[{{{1|none}}}] {{lc:{{{1}}}}}", the call "{{T|AB}}" gives "[AB] {{lc:AB}}" and then "[AB] ab".
        arguments = self._expand_arguments(parts, plain=plain)
        self._callers.append((name, arguments))
        try:
            return self.expand_outside_nowiki(self._fill_parameters(text, arguments, 0))
        finally:
            self._callers.pop()

    def _expand_arguments(self, parts: list[str], *, plain: bool = False) -> Arguments:
        """Return the arguments of a call by name, expanded unless ``plain`` is True."""
        with self._work.enter_frames():
            return _name_arguments(parts if plain else [self.expand_outside_nowiki(part) for part in parts])

    def _fill_parameters(self, text: str, arguments: Arguments, level: int) -> str:
        """Replace the parameters in a definition, such as ``{{{name}}}``, by the arguments of a call.

        level: number of parameters around this text. A parameter that is nested too deeply becomes empty.
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
        """Return the text that replaces a parameter: the argument with this name, or else the parameter's
        default.

        body: text of the parameter between its triple braces.
        level: number of parameters around this parameter.
        """
        # In "{{{1|default}}}", both the name and the default may contain parameters and calls. The value of
        # an argument is inserted unchanged, because it was already expanded.
        name, *defaults = split_parts(body)
        name = self.expand_outside_nowiki(self._fill_parameters(name, arguments, level + 1))
        if name in arguments:
            self._work.spend(count_bytes(arguments[name]))
            return arguments[name]
        if not defaults:
            return ""
        return self.expand_outside_nowiki(self._fill_parameters(defaults[0], arguments, level + 1))


def _name_arguments(parts: list[str]) -> Arguments:
    """Convert the parts of a call to arguments: a value for each name.

    A part without ``=`` gets the next number as its name, from 1 on. As in WikiExtractor, white space around
    a value is removed unless the value contains ``]]``.
    """
    # For example, ["a", "x = b ", "c"] gives {"1": "a", "x": "b", "2": "c"}.
    arguments: Arguments = {}
    number = 0
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            number += 1
            name, value = str(number), part
        arguments[name.strip()] = value if "]]" in value else value.strip()
    return arguments
