"""The house has storeys: imports run downwards only, and the light package stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# Each module belongs to the longest prefix that fits it. A module may import modules of lower levels,
# and of its own package.
LEVELS = {
    "schemas": 0,
    "bertdata": 0,
    "bertdata.errors": 0,
    "bertdata.records": 0,
    "trainer.data.order": 0,
    "bertdata.config.dialects": 1,
    "bertdata.config.recipes": 1,
    "bertdata.io.remote": 1,
    "bertdata.io.storage": 1,
    "bertdata.dataset.published.tables": 1,
    "bertdata.cli.common.example_flags": 1,
    "bertdata.cli.common.parser": 1,
    "bertdata.cli.common.dispatch": 1,
    "bertdata.unicode": 1,
    "bertdata.io.assets": 2,
    "bertdata.config.value_check": 2,
    "bertdata.io.process_pool": 2,
    "bertdata._native": 2,
    "bertdata.tokens": 3,
    "bertdata.examples": 3,
    "bertdata.text": 3,
    "bertdata.build.shuffle": 3,
    "bertdata.shards": 4,
    "bertdata.dataset.manifest": 4,
    "bertdata.text.load_splitter": 4,
    "bertdata.examples.describe": 4,
    "bertdata.tokens.train": 4,
    "bertdata.shards.content": 5,
    "bertdata.shards.pick": 5,
    "bertdata.dataset.writer": 5,
    "bertdata.report.count": 5,
    "bertdata.dataset.discover": 6,
    "bertdata.build.task": 6,
    "bertdata.dataset.reader": 7,
    "bertdata.report.summary": 7,
    "bertdata.dataset.verify": 7,
    "bertdata.build.plan": 7,
    "bertdata.dataset.vocabulary": 7,
    "trainer.data.generated": 8,
    "bertdata.report.plot": 8,
    "bertdata.build.shuffled_task": 7,
    "bertdata.build.dry_run": 8,
    "bertdata.cli.common.progress": 8,
    "bertdata.cli": 9,
    "bertdata.__main__": 10,
    "beam_pipelines": 9,
    "trainer": 9,
}
# Within level 1: recipes are made of dialects, flags of recipes; storage reaches URLs through remote.
MAY_ALSO_IMPORT = {
    "bertdata.io.storage": {"bertdata.io.remote"},
    "bertdata.config.recipes": {"bertdata.config.dialects"},
    "bertdata.cli.common.example_flags": {"bertdata.config.recipes", "bertdata.config.dialects"},
}
OURS = ("bertdata", "beam_pipelines", "trainer", "schemas")
KERNEL_USERS = {"bertdata.tokens", "bertdata.examples", "bertdata.shards", "bertdata.text"}
ENGINE_NAMES = {"Engine", "default_engine", "available", "why_missing"}


def modules() -> dict[str, Path]:
    found = {}
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found[name] = path
    return found


MODULES = modules()


def unit(module: str) -> str:
    """The entry of LEVELS that the module belongs to."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in LEVELS and (length > 1 or len(parts) == 1 or prefix != "bertdata"):
            return prefix
    raise AssertionError(f"{module} has no place in the house: add it to LEVELS")


def imports(path: Path) -> list[tuple[str, set[str]]]:
    """(module, names taken from it) of every import of ours, at the top or inside a function."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, set()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append((inner, set()) if inner in MODULES else (node.module, {alias.name}))
    return [(module, names) for module, names in found if module.split(".")[0] in OURS]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_run_downwards(module):
    here = unit(module)
    for imported, _ in imports(MODULES[module]):
        there = unit(imported)
        allowed = here == there or LEVELS[there] < LEVELS[here] or there in MAY_ALSO_IMPORT.get(here, ())
        assert allowed, f"{module} (level {LEVELS[here]}) imports {imported} (level {LEVELS[there]})"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_steps_with_a_kernel_import_the_kernels(module):
    for imported, names in imports(MODULES[module]):
        if imported.startswith("bertdata._native") and unit(module) not in KERNEL_USERS | {
            "bertdata._native"
        }:
            assert names <= ENGINE_NAMES, f"{module} imports {names} from {imported}"


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name.startswith("bertdata.cli.")))
def test_commands_never_import_one_another(module):
    # main finds a command's module by name; what commands share lies below them
    shared = {"bertdata.cli.common.progress"}
    others = {imported for imported, _ in imports(MODULES[module]) if imported.startswith("bertdata.cli.")}
    assert others <= shared


def test_toolkit_needs_none_of_the_heavy_packages():
    heavy = ["apache_beam", "tensorflow", "torch", "h5py", "pyarrow", "tokenizers", "numpy", "nltk"]
    heavy += ["wikiextractor", "matplotlib"]
    names = [name for name in MODULES if name.startswith("bertdata") and "__main__" not in name]
    lazy = {"trainer.data.order", "bertdata.shards.columns", "bertdata.unicode.generate_unicode11"}
    code = f"""
import importlib, sys
for name in {sorted(set(names) - lazy)!r}:
    importlib.import_module(name)
print([name for name in {heavy!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_top_level_is_the_designs():
    wanted = {"bertdata", "beam_pipelines", "trainer", "schemas", "tests", "golden", "setup.py"}
    assert wanted <= {path.name for path in ROOT.iterdir()}
