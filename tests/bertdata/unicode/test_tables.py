"""The tables of characters are those that their generators make, and the kernels have the same ones."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bertdata.unicode import tables
from tests.support.paths import ROOT
from tools.generate_unicode11 import make_cpp_header, parse_tables

DATA = Path(tables.__file__).with_name("unicode11.json")


def test_the_kernels_header_is_made_of_the_data_file():
    header = ROOT / "bertdata" / "_native" / "unicode" / "unicode11.h"
    assert header.read_text("utf-8") == make_cpp_header(parse_tables(DATA.read_text("utf-8")))


@pytest.mark.thorough
def test_the_data_file_is_what_python_3_7_says():
    python = shutil.which("python3.7")
    if python is None or subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode:
        pytest.skip("needs Python 3.7, whose Unicode is 11.0")
    code = "import generate_unicode11 as made; print(made.make_json(made.collect_tables()), end='')"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, cwd=ROOT / "tools", check=True
    )
    assert done.stdout == DATA.read_text("utf-8")


def test_tables_are_read_when_they_are_asked_for_and_once():
    assert tables.load_unicode11() is tables.load_unicode11()
    assert tables.load_library_classes() is tables.load_library_classes()
