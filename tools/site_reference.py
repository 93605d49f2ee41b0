"""Makes the site's page of Python functions: the signature, the text and a table of parameters of each.

mkdocstrings, which makes such pages, reads source files and would show ``create(request: CreateRequest)``.
But a user calls ``create(parts, output, vocab=...)``. So this page is made from the functions as Python sees
them.
"""

import html
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import bertdata

WIDTH = 88
ALIASES = {
    "AnyPath": "str | PathLike[str]",
    "AnyPaths": "str | PathLike[str] | Iterable[str | PathLike[str]]",
}
"""Types of ``bertdata.steps.values`` that may appear in annotations as strings, and how they are shown."""

HEAD = """\
# Python functions

This page is made from the functions' signatures and docstrings. [From Python](python.md) has examples. All
parameters after `*` are passed by name.
"""
EXCEPTIONS = "## Exceptions\n\n::: bertdata.errors\n    options:\n      heading_level: 3\n"


def make_python_page() -> str:
    """Return the Markdown of the page. Its section on exceptions is filled by mkdocstrings."""
    names = [name for name in bertdata.__all__ if name not in ("__version__", "errors")]
    functions = "\n".join(make_section(name, getattr(bertdata, name)) for name in names)
    return f"{HEAD}\n{functions}\n{EXCEPTIONS}"


def make_section(name: str, function: Callable[..., Any]) -> str:
    """Return the Markdown section about a function."""
    signature = inspect.signature(function)
    prose, meanings = divide_docstring(inspect.getdoc(function) or "", list(signature.parameters))
    text = prose.replace("``", "`")
    call, parameters = wrap_call(name, signature), make_table(signature, meanings)
    return f"## {name}\n\n```python\n{call}\n```\n\n{text}\n\n{parameters}\n"


def wrap_call(name: str, signature: inspect.Signature) -> str:
    """Return a call of the function with the names and defaults of its parameters.

    It is wrapped to lines of at most WIDTH characters.
    """
    words = []
    is_by_name = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_by_name:
            words.append("*")
            is_by_name = True
        prefix = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
        has_default = parameter.default is not parameter.empty
        words.append(f"{prefix}{parameter.name}{f'={parameter.default!r}' if has_default else ''}")
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 2 > WIDTH - 4:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word},"
    body = "".join(f"    {line}\n" for line in lines)
    return f"{name}(\n{body}) -> {_format_type(signature.return_annotation)}"


def make_table(signature: inspect.Signature, meanings: dict[str, str]) -> str:
    """Return the Markdown table of a function's parameters, with type, default and meaning of each.

    meanings: meaning of each parameter, from the docstring.
    """
    rows = []
    for name, parameter in signature.parameters.items():
        default = "required" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
        if parameter.kind is parameter.VAR_KEYWORD:
            default = ""
        kind = _format_type(parameter.annotation)
        rows.append(f"| `{name}` | `{kind}` | {default} | {_format_cell(meanings.get(name, ''))} |\n")
    return "| parameter | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def divide_docstring(text: str, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Divide a docstring into its prose and the meanings of the parameters.

    A meaning follows the parameter's name and a colon, as in ``workers: processes to use``. Several
    parameters may have one meaning together, as in ``blocks, tokens_per_sample: ...``. If the docstring has a
    paragraph with a parameter on every line, meanings are only looked for in such paragraphs.

    names: names of the function's parameters.
    """
    name = "|".join(map(re.escape, names))
    start = re.compile(rf"(?:^|(?<=[.;)] )|(?<=[.;)]\n))((?:{name})(?:, (?:{name}))*): ")
    paragraphs = text.split("\n\n")
    is_table = [all(start.match(line) for line in one.splitlines()) for one in paragraphs]
    prose: list[str] = []
    meanings: dict[str, str] = {}
    for paragraph, is_listed in zip(paragraphs, is_table, strict=True):
        if is_listed:
            meanings |= dict(_find_meanings(start, "\n".join(f"{line};" for line in paragraph.splitlines())))
        elif any(is_table) or not start.search(paragraph):
            prose.append(paragraph)
        else:
            before, after = _find_ends(start, paragraph)
            for names_of, meaning in _find_meanings(
                start, paragraph[len(before) : len(paragraph) - len(after)]
            ):
                meanings.setdefault(names_of, meaning)
            prose += [one for one in (before.strip(), after.strip()) if one]
    return "\n\n".join(prose), meanings


def _find_meanings(start: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the meaning of each parameter that the text explains.

    start: pattern of the start of a meaning.
    """
    _, *pieces = start.split(text)
    for names, meaning in zip(pieces[::2], pieces[1::2], strict=True):
        for name in names.split(", "):
            yield name, " ".join(meaning.split()).rstrip(".;")


def _find_ends(start: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return what stands before the first meaning and after the last one.

    Before it is prose. After it may be sentences about exceptions.

    start: pattern of the start of a meaning.
    """
    first = start.search(text)
    assert first is not None
    last = list(start.finditer(text))[-1].end()
    after = re.search(r"(?<=\. )(?=Raise|[A-Z]\w+Error )|(?<=\.\n)(?=Raise|[A-Z]\w+Error )", text[last:])
    return text[: first.start()], text[last + after.start() :] if after else ""


def _format_type(annotation: Any) -> str:
    """Return the text of a type annotation without the names of modules."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    shown = re.sub(r"\b(?:\w+\.)+(?=\w)", "", shown)
    return re.sub(r"\bAnyPaths?\b", lambda alias: ALIASES[alias[0]], shown)


def _format_cell(text: str) -> str:
    """Return the text for a cell of a Markdown table.

    Characters that Markdown would take for mark-up are escaped.
    """
    shown = html.escape(text, quote=False).replace("``", "`")
    return re.sub(r"([|*\[\]])", r"\\\1", shown)
