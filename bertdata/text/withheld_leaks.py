"""Count withheld texts that also occur in the training text. Texts are compared by their md5.

The recipes mlperf and nvidia withhold an article by its position, as MLPerf's and NVIDIA's programs do. If
the input contains an article twice, one copy may be withheld and the other trained on. The evaluation set
then measures memorised text.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bertdata.config.held_out_names import find_held_out, is_companion_list
from bertdata.io import storage
from bertdata.io.file_check import FileEntry

InOrder = Callable[[Callable[[str], frozenset[bytes]], Sequence[str]], Iterable[tuple[str, frozenset[bytes]]]]
"""Function that calls another function for each path, and returns pairs of path and result in the paths'
order.

``ProcessPool.in_order`` and ``map_in_threads`` are such functions.
"""


def map_in_threads(
    function: Callable[[str], frozenset[bytes]], paths: Sequence[str]
) -> Iterable[tuple[str, frozenset[bytes]]]:
    """Call the function for each path in threads of this process. Returns pairs of path and result."""
    return zip(paths, storage.map_paths(list(paths), function), strict=True)


def count_withheld_in_training(
    directory: str, files: Sequence[FileEntry], in_order: InOrder = map_in_threads
) -> int | None:
    """Count the withheld texts of a directory that are also in its training text.

    Returns None if no text is withheld.

    files: manifest entries of the directory's files.
    in_order: function that calls another function for each training file, for example in worker processes.
    """
    names = [file.name for file in files if not is_companion_list(file.name)]
    withheld = set(find_held_out(names))
    held = tuple((storage.join(directory, file.name), file.md5) for file in files if file.name in withheld)
    # Workers look for the withheld digests in the training files, and return the digests that they find. A
    # text that is withheld twice must count twice. So count here how often each digest is withheld.
    digests = Counter(digest for path, _ in held for digest in read_text_digests(path))
    if not digests:
        return None
    training = [storage.join(directory, name) for name in names if name not in withheld]
    found: set[bytes] = set()
    for _, here in in_order(_SearchWithheld(held), training):
        found |= here
    return sum(digests[digest] for digest in found)


def read_text_digests(path: str) -> Iterator[bytes]:
    """Yield the md5 of each text in a file whose texts are separated by blank lines."""
    for text in storage.read_bytes(path).split(b"\n\n"):
        if stripped := text.strip():
            yield hashlib.md5(stripped, usedforsecurity=False).digest()


@dataclass(frozen=True, slots=True)
class _SearchWithheld:
    """Function object that returns the digests of withheld texts that a training file contains.

    Workers call it.

    held: path and md5 of each file of withheld texts.
    """

    held: tuple[tuple[str, str], ...]

    def __call__(self, path: str) -> frozenset[bytes]:
        return _read_withheld_digests(self.held).intersection(read_text_digests(path))


@lru_cache(maxsize=1)
def _read_withheld_digests(held: tuple[tuple[str, str], ...]) -> frozenset[bytes]:
    """Return the digests of all withheld texts. They are read only once per process.

    held: path and md5 of each file of withheld texts. Because of the md5, the cached result is not used for a
        changed file.
    """
    return frozenset(digest for path, _ in held for digest in read_text_digests(path))
