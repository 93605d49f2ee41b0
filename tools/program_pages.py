"""Writes the files that are generated from code: ``python -m tools.program_pages``.

They are:

- docs/programs: a page for each program whose command line ``python -m trainer like`` or ``bertdata like``
  accepts.
  It is made from the program's file VENDOR/PROGRAM.toml, and from what its published commands mean here.
- ``schemas/trainer.json``, ``schemas/model.json``, docs/configuration.md and the pictures of the schedules,
  from
  the declarations in ``trainer/config/``.
- The part of ``schemas/manifest.json`` about objectives (see ``tools.objective_schema``).

Tests compare the files with what this module makes.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from shlex import split
from typing import Any

from bertdata.cli import like
from bertdata.cli.common.programs import choice
from bertdata.cli.common.programs.flag import Flag
from bertdata.cli.common.programs.program import Program
from tools.configuration_page import draw_pictures
from tools.configuration_page import make_page as page_of_configuration
from tools.objective_schema import make_manifest_schema
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.config.settings import get_key_schemas
from trainer.programs.choice import DOOR, load_programs, translate_command_line
from trainer.programs.translated_command import TranslatedCommand

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "programs"
TESTS = ROOT / "tests" / "trainer" / "programs"
TOOLKIT_TESTS = ROOT / "tests" / "bertdata" / "cli"
SCHEMAS = ROOT / "schemas"
CONFIGURATION = ROOT / "docs" / "configuration.md"
PICTURES = ROOT / "docs" / "schedules"


def make_pages() -> dict[str, str]:
    """Return the text of each page in docs/programs by its file name. README.md is the list of all pages."""
    known = [*load_programs().values(), *choice.list_programs(like.DOOR).values()]
    return {"README.md": _make_index()} | {
        name_page(program.name): make_program_page(program) for program in known
    }


def name_page(program: str) -> str:
    """Return the file name of the page about a program."""
    return program.rpartition(".")[0].replace("/", "-") + ".md"


def _make_index() -> str:
    """Return the page that lists the programs, by Google and others, whose command lines are accepted."""
    ours = _make_rows(load_programs(), TESTS)
    makers = _make_rows(choice.list_programs(like.DOOR), TOOLKIT_TESTS)
    return f"""\
# Other programs' command lines

`{DOOR.command} PROGRAM ARGUMENTS` runs a command line of another program as its authors publish it, with the
same meaning. `--print-config` prints the resulting configuration and does nothing else. Flags of this
trainer may follow after `--` and override all others, for example `-- --device cpu` if you do not have the
program's device.

Each page says what was run side by side with the original and how closely it matches. One table has it all:
[reliability.md](../reliability.md#the-same-training).

`python -m tools.program_pages` makes these pages from the programs' files,
`trainer/programs/VENDOR/PROGRAM.toml`.

| program | purpose | tests, in `tests/trainer/programs/` |
|---|---|---|
{ours}
`{like.DOOR.command} PROGRAM ARGUMENTS` runs programs that make data in the same way. Their files are
`bertdata/cli/programs/VENDOR/PROGRAM.toml`.

| program | purpose | tests, in `tests/bertdata/cli/` |
|---|---|---|
{makers}
To add a program of your own, write a file of the same form and name it by its path:
`{DOOR.command} my_program.toml ARGUMENTS`.
[architecture.md](../architecture.md#another-programs-command-line) shows the form.
"""


def _make_rows(known: Mapping[str, Program], tests: Path) -> str:
    """Return the rows of the table of programs.

    tests: folder of the tests that compare these programs with the originals.
    """
    return "".join(
        f"| [`{name}`]({name_page(name)}) | {program.purpose} | {', '.join(_find_tests(name, tests))} |\n"
        for name, program in known.items()
    )


def _find_tests(name: str, folder: Path) -> list[str]:
    """Return the names of the test files about a program: those that mention it.

    A test file of the trainer must also have the program's vendor in its own name.
    """
    vendor, _, file = name.partition("/")
    found = [path for path in sorted(folder.glob("test_*.py")) if file in path.read_text(encoding="utf-8")]
    if folder == TOOLKIT_TESTS:
        return [f"`{path.name}`" for path in found if name in path.read_text(encoding="utf-8")]
    vendor = vendor.replace("-", "_")
    others = [one for one in ("habana_tf", "nvidia_tf") if one.startswith(f"{vendor}_")]
    return [
        f"`{path.name}`"
        for path in found
        if path.name.startswith(f"test_{vendor}")
        and not path.name.startswith(tuple(f"test_{one}" for one in others))
    ]


def make_program_page(program: Program) -> str:
    """Return the Markdown page about another program.

    It shows what the program's published commands mean here, and what each of its flags does.
    """
    parts = [f"# {program.name}\n\n{program.title}: {program.source}.\n"]
    if program.other_versions:
        versions = ", ".join(f"`{program.name}@{version}`" for version in program.other_versions)
        parts.append(f"Other versions: {versions}.\n")
    parts.append(_read_notes(program))
    if program.compared:
        parts.append(f"**Run side by side with the original:** {program.compared}.\n")
    parts.append("## Published commands\n")
    for line in program.published:
        environment, words = _split_variables(line)
        setting = "".join(f"{name}={value} " for name, value in environment.items())
        shown = " ".join(filter(None, [f"{setting}{program.like_command.command} {program.name}", words]))
        with _replace_environment(environment):
            parts += [f"```\n{shown}\n```\n", _describe_command(program, words)]
    if program.also_published:
        parts.append(_make_other_commands(program))
    if program.variables:
        parts.append(f"## Environment variables\n\n{_make_flag_table(program.variables, 'variable')}")
    for command, table in program.commands.items():
        if table.flags:
            parts.append(f"## Flags{f' of {command}' if command else ''}\n\n{_make_flag_table(table.flags)}")
    return "\n".join(parts)


def _read_notes(program: Program) -> str:
    """Return the comment at the top of the program's TOML file. Each paragraph becomes one line."""
    vendor, _, file = program.name.partition("/")
    path = program.like_command.folder / vendor.replace("-", "_") / f"{file.rpartition('.')[0]}.toml"
    head = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    paragraphs = "\n".join(line.removeprefix("#").strip() for line in head).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n"


def _make_other_commands(program: Program) -> str:
    """Return the table of the published commands that are not shown in full, each with a summary of its
    meaning.
    """
    rows = []
    for line in program.also_published:
        with _replace_environment({}):
            summary = translate_command_line(program, program.read(split(line))).summary
        rows.append(f"| `{line}` | {summary} |\n")
    return "| also published, after the program's name | meaning |\n|---|---|\n" + "".join(rows)


def _split_variables(line: str) -> tuple[dict[str, str], str]:
    """Split a published command line in two: the environment variables at its start, and the other words."""
    words = line.split(" ")
    count = next(
        (place for place, word in enumerate(words) if not re.match(r"[A-Z_0-9]+=", word)), len(words)
    )
    return dict(word.split("=", 1) for word in words[:count]), " ".join(words[count:])


@contextmanager
def _replace_environment(given: Mapping[str, str]) -> Iterator[None]:
    """Context manager that replaces all environment variables, so that pages are the same on every machine.

    given: the variables that the published command sets.
    """
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update({"CUDA_VISIBLE_DEVICES": "", "HOME": "~"} | dict(given))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _describe_command(program: Program, line: str) -> str:
    """Return as Markdown what a published command means here.

    For the trainer's programs this is a summary, and a table of configuration keys with a column for each
    phase. For programs that make data it is a table of settings. The keys are in the order of
    docs/configuration.md, so that the pages of two programs can be compared.
    """
    given = program.read(split(line.replace("\\\n", " ")))
    if program.like_command is like.DOOR:
        return _make_key_table({"value": like.describe_settings(given.keys())})
    meaning = translate_command_line(program, given)
    return f"{meaning.summary[:1].upper()}{meaning.summary[1:]}.\n\n{_make_key_table(_list_columns(meaning))}"


def _make_key_table(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of configuration keys.

    columns: keys and values of each column, by its title.
    """
    order = {name: number for number, name in enumerate(get_key_schemas())}
    found = dict.fromkeys(name for column in columns.values() for name in column)
    names = sorted(found, key=lambda name: order.get(name, len(order)))
    heading = f"| key | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    rows = "".join(
        f"| `{name}` | {' | '.join(_format_cell(column.get(name)) for column in columns.values())} |\n"
        for name in names
    )
    return heading + rows


def _list_columns(meaning: TranslatedCommand) -> dict[str, Mapping[str, Any]]:
    """Return the columns of the table of keys, by title.

    There is a column for each phase, then one for the settings of an evaluation and one for those of a
    conversion, if the command asks for them.
    """
    phases: Sequence[Mapping[str, Any]] = meaning.phases
    titles = ["value"] if len(phases) == 1 else [f"phase {number}" for number in range(1, len(phases) + 1)]
    columns = dict(zip(titles, phases, strict=True))
    others = {"evaluate": meaning.evaluate, "convert": meaning.convert}
    return columns | {title: settings for title, settings in others.items() if settings is not None}


def _format_cell(value: Any) -> str:
    """Return a value as Markdown for a cell of a table. A long value is shortened."""
    if value is None:
        return ""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown if len(shown) < 80 else shown[:77] + '...'}`".replace("|", "\\|")


def _make_flag_table(table: Sequence[Flag], title: str = "flag") -> str:
    """Return the table of a program's flags or environment variables.

    title: title of the first column.
    """
    rows = []
    for flag in table:
        names = ", ".join(f"`{name}`" for name in flag.spellings)
        default = f"`{flag.shown_default}`" if flag.shown_default is not None else ""
        key = f"`{flag.key}`" if flag.key else ""
        rows.append(f"| {names} | {default} | {flag.effect} | {key} |\n".replace("|  |", "| |"))
    return f"| {title} | default | meaning | key here |\n|---|---|---|---|\n" + "".join(rows)


def make_schemas() -> dict[str, str]:
    """Return the text of each generated schema, by file name."""
    trainer = "Configuration of the trainer: section, meaning, type and range of each key"
    model = "The model: the keys of bert_config.json and of Hugging Face's config.json"
    made = "Made by python -m tools.program_pages from trainer/config/"
    ignored = "Keys without a description are written by other programs and change nothing here."
    keys = ModernBertConfig.file_keys() | ModelConfig.file_keys()
    return {
        "trainer.json": _make_schema(trainer, f"{made}.", get_key_schemas()),
        "model.json": _make_schema(model, f"{made}model.py. {ignored}", keys),
        "manifest.json": make_manifest_schema((SCHEMAS / "manifest.json").read_text(encoding="utf-8")),
    }


def _make_schema(title: str, comment: str, keys: Mapping[str, Any]) -> str:
    """Return the text of a schema of an object with these keys.

    keys: JSON Schema of each key.
    """
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$comment": comment,
        "type": "object",
        "additionalProperties": False,
        "properties": keys,
    }
    return _format_schema(schema, "") + "\n"


def _format_schema(schema: Any, indent: str) -> str:
    """Return the schema as JSON with one property on each line.

    A property that has properties takes more lines.
    """
    if schema is True or "properties" not in schema:
        return json.dumps(schema)
    inner = f"{indent}  "
    lines = {keyword: json.dumps(value) for keyword, value in schema.items()}
    inside = {name: _format_schema(item, f"{inner}  ") for name, item in schema["properties"].items()}
    lines["properties"] = _format_object(inside, inner)
    return _format_object(lines, indent)


def _format_object(lines: Mapping[str, str], indent: str) -> str:
    """Return a JSON object with one value on each line.

    lines: values that are already JSON, by key.
    """
    body = ",\n".join(f"{indent}  {json.dumps(name)}: {text}" for name, text in lines.items())
    return f"{{\n{body}\n{indent}}}"


def main() -> None:
    """Write all generated files."""
    for name, text in make_schemas().items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
    CONFIGURATION.write_text(page_of_configuration(), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, text in draw_pictures().items():
        (PICTURES / name).write_text(text, encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for name, text in make_pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
