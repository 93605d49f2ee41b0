"""JSON, TOML and tables that anybody may have written are read in one place, with its limits.

A bare ``json.loads`` recurses a hundred thousand brackets deep, takes half of a surrogate pair for a name
and reads NaN; a bare ``csv.DictReader`` takes the last of two columns of one name. The modules
``json_text``, ``toml_text`` and ``table_text`` of ``bertdata/io/`` do not.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT

PROGRAMS = ("bertdata", "trainer", "beam_pipelines")

PARSERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "orjson": {"loads"},
    "tomllib": {"load", "loads"},
    "tomli": {"load", "loads"},
    "csv": {"reader", "DictReader"},
    "ast": {"literal_eval"},
}
"""The functions that parse a text, by their modules."""

PLACES = {
    "bertdata/io/json_text.py": {"json.loads"},
    "bertdata/io/toml_text.py": {"tomllib.loads"},
    "bertdata/io/table_text.py": {"csv.reader"},
    "bertdata/sources/json_lines.py": {"orjson.loads", "json.JSONDecoder"},  # records, a line at a time
    "bertdata/sources/delimited.py": {"csv.reader"},  # rows of a file larger than the memory
    "bertdata/tokens/json_document.py": {"json.loads"},  # tokenizer.json, as its library reads it
    "bertdata/config/dataset_settings.py": {"json.loads"},  # of what it has dumped itself
    "bertdata/unicode/tables.py": {"json.loads"},  # of the package's own data
    "trainer/workers/worker_group.py": {"json.loads"},  # of what the other workers have dumped
}
"""Each module that parses, with its parsers."""


def parsers_in(source: str) -> Iterator[str]:
    """Yield each use of a parser in a module, as ``module.function``, called or handed on."""
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in node.names:
                names.setdefault(name.asname or name.name, name.name)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                if name.name in PARSERS.get(node.module or "", ()):
                    yield f"{node.module}.{name.name}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id, "")
            if node.attr in PARSERS.get(module, ()):
                yield f"{module}.{node.attr}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_foreign_files_are_parsed_in_one_place(program: str) -> None:
    found = set()
    for path in sorted((ROOT / program).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found |= {(name, parser) for parser in parsers_in(path.read_text(encoding="utf-8"))}
    allowed = {
        (name, parser)
        for name, parsers in PLACES.items()
        for parser in parsers
        if name.startswith(f"{program}/")
    }
    assert found == allowed, "read it by bertdata.io.json_text, toml_text or table_text"


@pytest.mark.parametrize(
    ("source", "parser"),
    [
        ("import json\nvalue = json.loads('1')", "json.loads"),
        ("import json as reader\nreader.load(file)", "json.load"),
        ("from csv import DictReader\n", "csv.DictReader"),
        ("import json\ntypes = {'json': json.loads}", "json.loads"),
        ("def read():\n    import tomllib as toml\n    return toml.loads('')", "tomllib.loads"),
    ],
)
def test_a_parser_is_found_however_it_is_named(source: str, parser: str) -> None:
    assert list(parsers_in(source)) == [parser]


def test_writing_is_no_reading() -> None:
    assert not list(parsers_in("import csv, json\njson.dumps(1)\ncsv.writer(file)"))
