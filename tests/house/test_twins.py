"""Kernels and their readable twins name one another by paths that exist."""

import re

from tests.support.paths import ROOT

PACKAGE = ROOT / "bertdata"


def test_every_twin_that_a_kernel_names_is_there():
    named = 0
    for header in sorted((PACKAGE / "_native").rglob("*.h")):
        for path in re.findall(r"\b((?:\w+/)+\w+\.py)\b", header.read_text(encoding="utf-8")):
            root = ROOT if path.startswith("tools/") else PACKAGE
            assert (root / path).is_file(), f"{header.name}: {path}"
            named += 1
    assert named > 10


def test_every_kernel_that_a_twin_names_is_there():
    named = 0
    for module in sorted(PACKAGE.rglob("*.py")):
        for path in re.findall(r"\b_native/[\w/]+\.h\b", module.read_text(encoding="utf-8")):
            assert (PACKAGE / path).is_file(), f"{module.name}: {path}"
            named += 1
    assert named > 5
