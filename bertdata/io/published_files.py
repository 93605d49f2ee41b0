"""The published files that ``bertdata fetch`` downloads, with their published digests.

SQuAD and MRPC have the SHA-256 listed by TensorFlow Datasets. Wikipedia dumps have the md5 that Wikimedia
publishes next to them.
"""

import re
from pathlib import Path

from bertdata.errors import AssetError, SettingsError, UsageError
from bertdata.io.download import Download

DUMP_SERVER = "https://dumps.wikimedia.org"
LATEST = "latest"

_SQUAD_SERVER = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
_MRPC_SERVER = "https://dl.fbaipublicfiles.com/senteval/senteval_data"
_SQUAD = {
    "1.1": {
        "train-v1.1.json": "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
        "dev-v1.1.json": "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
    },
    "2.0": {
        "train-v2.0.json": "68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002",
        "dev-v2.0.json": "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8",
    },
}
SQUAD_VERSIONS = tuple(_SQUAD)
_MRPC = {
    "msr_paraphrase_train.txt": "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
    "msr_paraphrase_test.txt": "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
}
_DUMP = "pages-articles-multistream.xml.bz2"
_SUM = re.compile(r"([0-9a-f]{32}) [ *](\w+?)-(\d{8})-(\S+)")


def list_squad_downloads(version: str, folder: Path, server: str | None) -> list[Download]:
    """Return the downloads of SQuAD's training and development files.

    version: one of SQUAD_VERSIONS.
    server: address to use instead of the publisher's.
    """
    if version not in _SQUAD:
        raise UsageError(f"SQuAD {version!r} is not known; known are {', '.join(_SQUAD)}")
    return _list_downloads(server or _SQUAD_SERVER, _SQUAD[version], folder)


def list_mrpc_downloads(folder: Path, server: str | None) -> list[Download]:
    """Return the downloads of the Microsoft Research Paraphrase Corpus, which is two text files."""
    return _list_downloads(server or _MRPC_SERVER, _MRPC, folder)


def _list_downloads(server: str, files: dict[str, str], folder: Path) -> list[Download]:
    """Return a download for each file.

    server: URL of the directory in which the server has the files.
    files: the published digests by file name.
    folder: local directory for the files.
    """
    base = server.rstrip("/")
    return [Download(f"{base}/{name}", folder / name, digest) for name, digest in files.items()]


def find_dump_download(language: str, date: str, folder: Path, server: str | None) -> Download:
    """Return the download of a Wikipedia dump, with the md5 that its server publishes.

    Raises AssetError if the server has no such dump.

    language: the Wikipedia's code in its address (``en``, ``simple``, ``zh-yue``).
    date: YYYYMMDD, YYYY-MM-DD or LATEST.
    """
    if not re.fullmatch(r"[a-z]{2,}(-[a-z]+)*", language):
        raise SettingsError(f"{language!r} is no language of a Wikipedia, expected one as en, de or simple")
    day = date.replace("-", "")
    if day != LATEST and not re.fullmatch(r"\d{8}", day):
        raise SettingsError(f"{date!r} is no date of a dump, expected YYYYMMDD or {LATEST}")
    wiki = f"{language.replace('-', '_')}wiki"
    place = f"{(server or DUMP_SERVER).rstrip('/')}/{wiki}"
    for md5, found_wiki, found_day, name in _SUM.findall(
        _read_sums(f"{place}/{day}/{wiki}-{day}-md5sums.txt")
    ):
        if name == _DUMP and found_wiki == wiki and day in (LATEST, found_day):
            full = f"{wiki}-{found_day}-{name}"
            return Download(f"{place}/{found_day}/{full}", folder / full, md5)
    raise AssetError(f"{place}/{day}: its md5sums name no {wiki}-...-{_DUMP}; the dump may not be done yet")


def _read_sums(url: str) -> str:
    """Download the file of md5s that a server publishes for a dump. Raises AssetError if that fails."""
    from http.client import HTTPException  # imported here because it is slow to import
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=30) as answer:
            data: bytes = answer.read()
    except (OSError, HTTPException, ValueError) as error:  # ValueError: the URL is not valid
        if getattr(error, "code", None) == 404:
            raise AssetError(
                f"{url}: there is no such dump; Wikimedia keeps the newest few of each Wikipedia, and "
                "--server names another server that is laid out as it is"
            ) from None
        raise AssetError(f"{url}: {getattr(error, 'reason', None) or error}") from error
    return data.decode("utf-8", "replace")
