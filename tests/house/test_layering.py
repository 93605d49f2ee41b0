"""The house drawn from its imports: they run downwards between rooms, and never in a circle."""

import ast
import subprocess
import sys

import pytest

from tests.support.house import ORDER, circles, draw, packages, read_sources, room, upward
from tests.support.paths import ROOT

LOOSE_MODULES = {"__init__.py", "__main__.py", "errors.py", "records.py"}
KERNEL_NAMES = {"kernels", "_kernels"}
ROOMS_WITH_KERNELS = {
    "bertdata.io",
    "bertdata.text",
    "bertdata.tokens",
    "bertdata.examples",
    "bertdata.loaders",
    "bertdata.shards",
    "bertdata.wiki",
}
SHARED_BY_COMMANDS = "bertdata.cli.common"

SOURCES = read_sources(ROOT)
ARROWS = draw(SOURCES)


def test_imports_run_downwards_between_rooms():
    assert upward(ARROWS, ORDER) == []


def test_no_modules_import_each_other_in_a_circle():
    assert circles(ARROWS) == []


def test_every_room_has_its_place_in_the_order():
    assert set(map(room, SOURCES)) <= set(ORDER)


def test_no_module_lies_loose_in_the_toolkit():
    assert {path.name for path in (ROOT / "bertdata").glob("*.py")} == LOOSE_MODULES


def test_every_folder_of_modules_is_a_package_that_setuptools_finds():
    shipped = ("bertdata", "beam_pipelines", "schemas", "trainer")
    folders = {path.parent for package in shipped for path in (ROOT / package).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_top_level_is_the_designs():
    designed = {name.partition(".")[0] for name in ORDER}
    assert set(packages(ROOT)) == designed


def uses_kernels(source: str) -> bool:
    """True where the source imports a name ``kernels``, or reads one as an attribute."""
    return any(
        (isinstance(node, ast.ImportFrom) and any(alias.name in KERNEL_NAMES for alias in node.names))
        or (isinstance(node, ast.Attribute) and node.attr in KERNEL_NAMES)
        for node in ast.walk(ast.parse(source))
    )


def test_only_rooms_with_kernels_use_them():
    users = {
        room(module)
        for module, source in SOURCES.items()
        if room(module) not in ("tests", "bertdata._native") and uses_kernels(source)
    }
    assert users == ROOMS_WITH_KERNELS


def test_commands_never_import_one_another():
    # bertdata.cli.main finds a command's module by its name
    for module, found in ARROWS.items():
        if module.startswith("bertdata.cli.") and not module.startswith(SHARED_BY_COMMANDS):
            others = {name for name in found if name.startswith("bertdata.cli.")}
            assert {name for name in others if not name.startswith(SHARED_BY_COMMANDS)} == set(), module


def test_the_toolkit_needs_none_of_the_heavy_packages():
    heavy = ["apache_beam", "tensorflow", "torch", "h5py", "pyarrow", "tokenizers", "numpy", "nltk"]
    heavy += ["wikiextractor", "matplotlib", "scipy"]
    # imported by a container or a view once it is known that their packages are there
    users = {"bertdata.examples.columns", "bertdata.shards.rows", "bertdata.dataset.views.model_rows"}
    users |= {"bertdata.examples.dynamic_masking.masker", "bertdata.dataset.masked_data"}
    users |= {"bertdata.dataset.mask_presence"}
    users |= {"bertdata.examples.sop.load_masker", "bertdata.examples.span.load_masker"}
    users |= {"bertdata.dataset.binarised_blocks"}
    users |= {
        f"bertdata.examples.fairseq.{name}" for name in ("batch_order", "blocks", "load_masker", "seeds")
    }
    users |= {"bertdata.dataset.mixture.examples", "bertdata.dataset.mixture.turns"}
    users |= {"bertdata.dataset.views.torch_examples", "bertdata.dataset.views.huggingface"}
    users |= {"bertdata.dataset.views.epoch_dataset", "bertdata.dataset.views.tensorflow_rows"}
    users |= {"bertdata.dataset.label_counts", "bertdata.dataset.random_access"}
    users |= {"bertdata.dataset.mixture.by_number", "bertdata.dataset.selection"}
    packed = {name for name in SOURCES if name.startswith("bertdata.shards.packed.")}
    users |= packed - {f"bertdata.shards.packed.{name}" for name in ("fields", "layouts", "packs")}
    mds = {name for name in SOURCES if name.startswith("bertdata.shards.mds.")}
    light_mds = ("compression", "fit", "hashes", "layout", "listing", "names")
    users |= mds - {f"bertdata.shards.mds.{name}" for name in light_mds}
    users |= {"bertdata.shards.hdf5_varlength", "bertdata.shards.lddl", "bertdata.dataset.sorted_runs"}
    users |= {"bertdata.shards.arrow", "bertdata.shards.arrow_reader", "bertdata.build.binarise"}
    users |= {name for name in SOURCES if name.startswith("bertdata.shards.fairseq.")}
    users |= {name for name in SOURCES if name.startswith("bertdata.build.conversion.")}
    users |= {name for name in SOURCES if name.startswith("bertdata.packing.")}
    users |= {name for name in SOURCES if name.startswith("bertdata.loaders.")}
    light = {name for name in SOURCES if name.startswith("bertdata")} - users - {"bertdata.__main__"}
    code = f"""
import importlib, sys
for name in {sorted(light)!r}:
    importlib.import_module(name)
print([name for name in {heavy!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# The checks themselves: a fault that is planted in the source text must be found.


UPWARD = {
    "at the top": "from bertdata.cli.main import main",
    "a whole module": "import bertdata.cli.main",
    "a package and a name": "from bertdata.cli import main",
    "in a function": "def late():\n    from bertdata.cli.main import main\n    return main",
    "for type checkers": "if TYPE_CHECKING:\n    from bertdata.cli.main import main",
}


@pytest.mark.parametrize("statement", UPWARD.values(), ids=UPWARD)
def test_a_planted_upward_import_is_found(statement):
    planted = SOURCES | {"bertdata.errors": f"{SOURCES['bertdata.errors']}\n{statement}\n"}
    found = set(upward(draw(planted), ORDER)) - set(upward(ARROWS, ORDER))
    assert found == {"bertdata.errors imports bertdata.cli.main"}


@pytest.mark.parametrize("top", ["beam_pipelines", "trainer"])
def test_neither_of_the_two_packages_on_top_is_below_the_toolkit(top):
    imported = next(name for name in SOURCES if name.startswith(f"{top}."))
    planted = SOURCES | {"bertdata.cli.show": f"import {imported}\n"}
    assert f"bertdata.cli.show imports {imported}" in upward(draw(planted), ORDER)


ROUNDABOUT = {
    "room.a": "import room.b\n",
    "room.b": "def late():\n    from room import c\n    return c\n",
    "room.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from room.a import A\n",
    "room.d": "import room.a\nimport sys\n",
}
"""Three modules of one room in a circle, each import of another kind, and one that only looks on."""


def test_a_planted_circle_inside_a_room_is_found_however_it_is_hidden():
    planted = draw(ROUNDABOUT)
    assert circles(planted) == [["room.a", "room.b", "room.c"]]


@pytest.mark.parametrize("module", sorted(ROUNDABOUT)[:3])
def test_a_circle_opened_anywhere_is_none(module):
    assert circles(draw(ROUNDABOUT | {module: "import sys\n"})) == []


def test_a_circle_planted_in_a_copy_of_the_house_is_found(tmp_path):
    for name, source in SOURCES.items():
        if name.startswith(("bertdata", "schemas")):
            is_package = any(other.startswith(f"{name}.") for other in SOURCES)
            path = tmp_path / name.replace(".", "/") / "__init__.py"
            path = path if is_package else path.parent.with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
    before = draw(read_sources(tmp_path))
    assert circles(before) == [circle for circle in circles(ARROWS) if circle[0].startswith("bertdata")]
    with (tmp_path / "bertdata/io/remote.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef late():\n    from bertdata.io import storage\n    return storage\n")
    after = circles(draw(read_sources(tmp_path)))
    assert [circle for circle in after if circle not in circles(before)] == [
        ["bertdata.io.remote", "bertdata.io.storage"]
    ]
