"""Names of the files that the text stages write, and which of these files are held out of training.

::

    stage     to train on                 held out
    mlperf    part-00000-of-00500, ...    eval.txt (and its md5s, eval.md5)
    nvidia    PREFIX_training_0.txt, ...  PREFIX_test_0.txt, ...
    records   part-00000.txt, ...         eval-00000.txt, ...

Shards keep the name of the text file they are made from, so the dataset reader uses these rules too.
"""

import re
from collections.abc import Sequence

from bertdata.io import storage

EVAL_TEXT = "eval.txt"
EVAL_MD5 = "eval.md5"
REMOVED = "removed.jsonl"
"""File that lists the records left out of the parts."""

# A shard's name is the part's name, the container's ending and possibly a bin number.
_SHARD_OF_NVIDIA = re.compile(r"(.*)_(training|test)_\d+(?:\..*)?")
_PART_OF_MLPERF = re.compile(r"part-\d{5}-of-\d{5}(?:\..*)?")
_PART_OF_RECORDS = re.compile(r"(part|eval)-\d{5}(?:\..*)?")


def make_mlperf_part_name(number: int) -> str:
    """Return the name of a training part: 3 -> part-00003-of-00500. The 500 never changes."""
    return f"part-{number:05d}-of-00500"


def make_record_part_name(number: int) -> str:
    """Return the name of training part ``number`` of record files, counted from 0."""
    return f"part-{number:05d}.txt"


def make_record_eval_name(number: int) -> str:
    """Return the name of held-out part ``number`` of record files, counted from 0."""
    return f"eval-{number:05d}.txt"


def find_held_out(names: Sequence[str]) -> list[str]:
    """Return the names that are held-out files, if the list also has training files of the same corpus.

    If all names are held-out files, none is returned, because a caller that lists only these wants to
    evaluate on them.
    """
    base_names = {name: storage.get_base_name(name) for name in names}
    found = {name: _SHARD_OF_NVIDIA.fullmatch(base) for name, base in base_names.items()}
    trained = {match[1] for match in found.values() if match and match[2] == "training"}
    has_parts = any(map(_PART_OF_MLPERF.fullmatch, base_names.values()))
    kinds = {
        name: match[1] for name, base in base_names.items() if (match := _PART_OF_RECORDS.fullmatch(base))
    }
    has_records = "part" in kinds.values()
    return [
        name
        for name, match in found.items()
        if (match and match[2] == "test" and match[1] in trained)
        or (has_parts and _is_of_evaluation(base_names[name]))
        or (has_records and kinds.get(name) == "eval")
    ]


def make_test_pattern(names: Sequence[str]) -> str | None:
    """Return a glob pattern for NVIDIA's test files among the names, or None if there are none."""
    found = [match[1] for match in map(_SHARD_OF_NVIDIA.fullmatch, names) if match and match[2] == "test"]
    return f"{found[0]}_test_*.txt" if found else None


def is_companion_list(name: str) -> bool:
    """Return True for ``eval.md5`` and ``removed.jsonl``, which lie next to the text but hold no text."""
    return storage.get_base_name(name) in (EVAL_MD5, REMOVED)


def _is_of_evaluation(name: str) -> bool:
    """Return True for eval.txt, its md5 file, and shards made from eval.txt, such as eval.txt.tfrecord."""
    return any(name == one or name.startswith(f"{one}.") for one in (EVAL_TEXT, EVAL_MD5))
