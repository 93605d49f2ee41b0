"""Licences of the packages that our extras install: permissive, or named here with their extras."""

import re

import pytest

from tools.licences import find_licence, list_packages

pytest.importorskip("torch")

PERMISSIVE = {
    "0BSD", "Apache", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "CNRI-Python", "ISC", "ISCL", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0",
    "Python Software Foundation", "Unlicense", "Zlib",
}  # fmt: skip
FILES_STAY_OPEN = {"certifi", "hypothesis", "orjson", "pathspec", "tqdm"}
"""Packages under the Mozilla Public License, which concerns changes of their own files alone."""
STATED_ELSEWHERE = {
    "mlcroissant": "Apache-2.0",
    "namex": "Apache-2.0",
    "sigstore-models": "MIT",
    "torchao": "BSD-3-Clause",
}
"""Packages whose metadata say nothing, with the licence in their source."""
OF_CUDA = ("nvidia-", "cuda-")
"""Beginnings of the names of packages that PyTorch's CUDA build brings along, under NVIDIA's own licences."""
COPYLEFT = {"wikiextractor": {"wiki", "all", "dev"}}
"""Packages whose licence asks something of programs that use them, and the extras that install them."""
OTHER_NAMES = {"3-Clause BSD": "BSD", "Apache 2.0": "Apache", "The Unlicense": "Unlicense"}


def split_licence(text: str) -> list[str]:
    """Return the single licences of a statement, without the words that vary from one package to the next."""
    words = re.split(r"\bAND\b|\bOR\b|\bWITH LLVM-exception\b|[();]", text)
    names = [re.sub(r"\b(Software )?Licen[sc]e( 2\.0)?$", "", word.strip()).strip() for word in words]
    return [OTHER_NAMES.get(name, name) for name in names if name]


def test_every_licence_is_known() -> None:
    packages = list_packages(["dev", "all"])
    assert {"numpy", "torch", "apache-beam"} <= set(packages)
    unknown = {}
    for name, package in packages.items():
        stated = split_licence(find_licence(package) or STATED_ELSEWHERE.get(name, ""))
        if name in COPYLEFT or name in FILES_STAY_OPEN or name.startswith(OF_CUDA):
            continue
        if not stated or not set(stated) <= PERMISSIVE:
            unknown[name] = find_licence(package)
    assert unknown == {}


def test_copyleft_is_installed_by_its_own_extra_alone() -> None:
    ours = list_packages(["all"], project="bertdata-toolkit")
    assert set(COPYLEFT) <= set(ours)
    every = {"all", "dev", *(extra for extras in COPYLEFT.values() for extra in extras)}
    from tools.install_extras import list_extras

    for extra in {*list_extras(), *every}:
        found = set(list_packages([extra])) & set(COPYLEFT)
        assert found == {name for name, extras in COPYLEFT.items() if extra in extras}, extra


def test_what_is_called_weak_copyleft_is_so() -> None:
    packages = list_packages(["dev", "all"])
    for name in FILES_STAY_OPEN & set(packages):
        assert "MPL" in find_licence(packages[name])
