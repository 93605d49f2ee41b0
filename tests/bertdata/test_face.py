"""The Python face: its names, its settings beside the command line's flags, and how light it is."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import bertdata
from bertdata.examples.objectives import OBJECTIVES
from tests.support.paths import ROOT

STEPS = {
    "create": "create",
    "extract": "extract",
    "find_date": "extract",
    "lineage": "lineage",
    "pack": "pack",
    "rebuild": "rebuild",
    "report": "report",
    "segment": "segment",
    "show": "show",
    "sign": "sign",
    "stats": "stats",
    "train_vocab": "train-vocab",
    "verify": "verify-md5",
    "write_report": "report",
}
"""The command of each function."""

OF_ANOTHER = {
    "extract": {"find_date", "table", "until", "punkt_tables"},
    "find_date": {"find_date", "output", "recipe"},
    "lineage": {"format"},
}
"""Flags of a function's command that choose another function, or belong to that one, or choose what is
printed.
"""

PACKED = ["path", "output"]

PRINTED = {"help", "json", "dry_run"}
"""Flags that decide only what the command line prints."""


def test_the_package_offers_these_names_and_no_others():
    offered = ["Records", "__version__", "create", "errors", "extract", "find_date", "lineage"]
    offered += [
        "open_dataset",
        "pack",
        "rebuild",
        "report",
        "segment",
        "show",
        "sign",
        "stats",
        "train_vocab",
        "verify",
        "write_report",
    ]
    assert bertdata.__all__ == offered
    assert dir(bertdata) == sorted(offered)
    for name in offered:
        assert getattr(bertdata, name) is not None


@pytest.mark.parametrize("name", [*STEPS, "open_dataset"])
def test_each_function_is_that_of_its_module_and_says_what_it_does(name):
    function = getattr(bertdata, name)
    module = "write_report" if name == "report" else name
    # The public function only changes the words of errors.
    assert function.__wrapped__ is getattr(import_module(f"bertdata.steps.{module}"), name)
    assert inspect.getdoc(function)


def test_a_name_that_is_not_offered_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'bertdata' has no attribute 'crate'"):
        bertdata.crate  # noqa: B018


def test_type_checkers_see_the_names_that_are_offered():
    source = ast.parse((ROOT / "bertdata" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in source.body if isinstance(node, ast.If) and not node.orelse and node.body
                and isinstance(node.test, ast.Name))  # fmt: skip
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen.keys() | {"__version__"} == set(bertdata.__all__)
    for name, module in seen.items():
        others = {
            "errors": "bertdata",
            "Records": "bertdata.sources.in_memory",
            "report": "bertdata.steps.write_report",
        }
        assert module == others.get(name, f"bertdata.steps.{name}")
    assert (ROOT / "bertdata" / "py.typed").exists()
    assert '"bertdata": ["py.typed"]' in (ROOT / "setup.py").read_text(encoding="utf-8")


SNIPPET = """\
import bertdata
report = bertdata.verify("shards", content=True)
sound: bool = report.sound
length: int = len(bertdata.open_dataset("shards"))
rows: int = bertdata.create("part", "shards", vocab="v").datasets[0].manifest.shards[0].examples
bertdata.verify("shards", contents=True)  # wrong
bertdata.create("part", "shards", vocab="v", dupe_factor="5")  # wrong
bertdata.create("part", "shards", vocab="v", dupe_facter=5)  # wrong
bertdata.create("part", "shards", "v")  # wrong
bertdata.create("part", "shards", vocab="v", objective="my:OWN", own_settings={"depth": 3})
bertdata.segment("text", "parts", exclude=["dev.json"], part_size="1")  # wrong
packed: str | None = bertdata.pack("shards", "packed", layout="flat", seed=1).directory
bertdata.pack("shards", "packed", seed="1")  # wrong
bertdata.crate  # wrong
"""


@pytest.mark.thorough
def test_mypy_sees_the_signatures_and_finds_what_is_wrong(tmp_path):
    (tmp_path / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", tmp_path / "snippet.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if " error: " in line]
    wrong = [number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# wrong")]
    assert found == wrong, done.stdout + done.stderr


def test_importing_the_package_imports_nothing_else_of_it():
    code = (
        "import sys, bertdata; print([n for n in sys.modules if n[:4] in ('bert', 'rich', 'fssp', 'nump')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "['bertdata']"


def test_report_and_write_report_are_one_function():
    assert bertdata.report is bertdata.write_report


def flags_of(command: str) -> set[str]:
    """The names of the command's arguments, underscores for dashes."""
    parser = import_module(f"bertdata.cli.{command.replace('-', '_')}").make_parser()
    return {action.dest for action in parser._actions} - PRINTED


@pytest.mark.parametrize(("function", "command"), STEPS.items())
def test_a_functions_settings_are_its_commands_flags(function, command):
    flags = flags_of(command) - OF_ANOTHER.get(function, set())
    parameters = inspect.signature(getattr(bertdata, function)).parameters
    named = parameters.keys() - {"progress", "own_settings"}
    assert named <= flags
    by_objective = {name for one in OBJECTIVES.values() for name in one.settings_type.__dataclass_fields__}
    assert flags - named <= (by_objective if "own_settings" in parameters else set())


@pytest.mark.parametrize("function", STEPS)
def test_settings_are_keywords_and_paths_come_first(function):
    parameters = inspect.signature(getattr(bertdata, function)).parameters.values()
    by_place = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
    assert by_place in (
        ["parts", "output"],
        ["dump", "output"],
        ["dump"],
        ["sources", "output"],
        ["paths", "output"],
        ["path"],
        ["shard"],
        ["texts", "output"],
        ["path", "private_key"],
        ["path", "sources", "output"],
        PACKED,
    )
    optional = [
        item for item in parameters if item.kind is item.KEYWORD_ONLY and item.name not in ("vocab", "table")
    ]
    usual = (None, False, True, (), "none", "wordpiece", 0, 1)
    assert all(item.default in usual for item in optional if item.name != "size")
