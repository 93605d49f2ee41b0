"""A lineage drawn as a tree of text: each step with its settings, versions and files, down to the sources.

::

    shards: bertdata create
    │ record      md5 f223045b1761900ff3711fb843099399
    │ settings    recipe habana, phase 1, ...
    │ output      part-00000-of-00500.hdf5, 331671 bytes, md5 ...
    ├─ parts: bertdata segment
    │  │ ...
    │  └─ articles: bertdata extract
    │     │ ...
    │     └─ dump: the sources begin here
    │          file        allerwiki-20200101-pages-articles.xml, 417290 bytes, md5 ...
    └─ vocabulary: the sources begin here
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertdata.lineages.shown_settings import format_value, list_shown_settings
from bertdata.lineages.step import Input, Lineage, LineageFile, Step, compute_files_md5

_LABEL_WIDTH = 11
_WIDTH = 110
_MOST_FILES = 4
"""Largest number of files that are listed one by one. Of more, the first ones and a count are listed."""


def draw_lineage(lineage: Lineage) -> list[str]:
    """Return the lines of a tree that shows every step of a lineage.

    A step that several steps have read is drawn once. At the other places, its record is named.
    """
    drawn: dict[tuple[str, str], str] = {}
    lines: list[str] = []
    for step in lineage.results:
        lines += _draw_step(step.path or lineage.path, step, "", drawn)
    return lines


def _draw_step(title: str, step: Step, margin: str, drawn: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield the lines of a step and of all steps before it.

    title: what the step has written, in words.
    margin: text before each line, with the vertical lines of the tree.
    drawn: titles of the steps that were drawn before, by name and record. The step is added.
    """
    key = (step.name, step.record)
    if key in drawn:
        yield f"{title}: {step.program}, shown above as {drawn[key]}"
        yield from _draw_fact("record", f"md5 {step.record}", f"{margin}  ")
        return
    drawn[key] = title
    place = f" in {step.path}" if step.path and step.path != title else ""
    yield f"{title}: {step.program}{place}"
    mark = f"{margin}│ " if step.inputs else f"{margin}  "
    for label, value in _list_facts(step):
        yield from _draw_fact(label, value, mark)
    for number, one in enumerate(step.inputs, 1):
        is_last = number == len(step.inputs)
        inner = f"{margin}   " if is_last else f"{margin}│  "
        lines = _draw_input(one, inner, drawn)
        yield f"{margin}{'└─' if is_last else '├─'} {next(lines)}"
        yield from lines


def _draw_input(given: Input, margin: str, drawn: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield the lines of an input, and of the step that made it if it is known."""
    if given.made_by is not None:
        is_new = (given.made_by.name, given.made_by.record) not in drawn
        lines = _draw_step(given.role, given.made_by, margin, drawn)
        yield next(lines)
        mark = f"{margin}│ " if given.made_by.inputs and is_new else f"{margin}  "
        if given.remark:
            yield from _draw_fact("fault" if given.is_fault else "remark", given.remark, mark)
        if {file.md5 for file in given.files} != {file.md5 for file in given.made_by.outputs}:
            for label, value in _list_files("read", given.files):
                yield from _draw_fact(label, value, mark)
        yield from lines
        return
    yield f"{given.role}: {'a source' if given.source else 'not followed further'}"
    if given.remark:
        yield from _draw_fact("fault" if given.is_fault else "remark", given.remark, f"{margin}  ")
    if given.record is not None and given.record not in given.remark:
        yield from _draw_fact("record", f"md5 {given.record}", f"{margin}  ")
    for label, value in _list_files("file", given.files):
        yield from _draw_fact(label, value, f"{margin}  ")


def _list_facts(step: Step) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each line about a step."""
    yield "record", f"md5 {step.record}"
    for fault in step.faults:
        yield "fault", fault
    for label, values in (
        ("settings", list_shown_settings(step)),
        ("versions", step.versions),
        ("counts", {name: value for name, value in step.facts.items() if name != "history"}),
    ):
        if values:
            yield label, join_pairs(values)
    for part in step.facts.get("history", ()):
        others = {name: value for name, value in part.items() if name not in ("until", "settings")}
        yield "before", f"until update {part['until']}: {join_pairs({**part.get('settings', {}), **others})}"
    yield from _list_files("output", step.outputs)


def join_pairs(values: Mapping[str, Any]) -> str:
    """Return names and values as text, such as ``recipe habana, phase 1``."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in values.items())


def _list_files(label: str, files: Sequence[LineageFile]) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of the line of each file. Of many files, only the first are listed.

    label: label of a single file, such as "output".
    """
    shown = files if len(files) <= _MOST_FILES else files[: _MOST_FILES - 1]
    for file in shown:
        yield label, describe_file(file)
    if len(shown) < len(files):
        rest = len(files) - len(shown)
        yield label, f"and {rest} more; md5 of the md5s of all {len(files)}: {compute_files_md5(files)}"


def describe_file(file: LineageFile) -> str:
    """Return a file's name, size and md5 as text."""
    size = "" if file.bytes is None else f", {file.bytes} bytes"
    md5 = "" if file.md5 is None else f", md5 {file.md5}"
    return f"{file.name}{size}{md5}"


def _draw_fact(label: str, text: str, margin: str) -> Iterator[str]:
    """Yield the lines of a fact: its label, and its text in as many lines as it needs."""
    start = f"{margin}{label:<{_LABEL_WIDTH}} "
    indent = f"{margin}{'':<{_LABEL_WIDTH}} "
    width = max(_WIDTH, len(indent) + 40)
    lines = textwrap.wrap(text, width - len(indent), break_on_hyphens=False, break_long_words=False)
    for number, line in enumerate(lines):
        yield f"{indent if number else start}{line}"
