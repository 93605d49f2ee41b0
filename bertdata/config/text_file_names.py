"""Names of the files that the text stages write, and which of them are held out of training.

::

    stage     to train on                 held out
    mlperf    part-00000-of-00500, ...    eval.txt (and its md5s, eval.md5)
    nvidia    PREFIX_training_0.txt, ...  PREFIX_test_0.txt, ...
    records   part-00000.txt, ...         eval-00000.txt, ...

The names stay with the shards that are made of the files, so reading a dataset asks here too.
"""

import re
from collections.abc import Sequence

from bertdata.io import storage

EVAL_TEXT = "eval.txt"
EVAL_MD5 = "eval.md5"
REMOVED = "removed.jsonl"
"""The list of records left out of the parts."""

# Shards have the ending of their container, and the number of a bin, behind the part's name.
_SHARD_OF_NVIDIA = re.compile(r"(.*)_(training|test)_\d+(?:\..*)?")
_PART_OF_MLPERF = re.compile(r"part-\d{5}-of-\d{5}(?:\..*)?")
_PART_OF_RECORDS = re.compile(r"(part|eval)-\d{5}(?:\..*)?")


def mlperf_part_name(number: int) -> str:
    """Return part-00000-of-00500 and so on. The 500 is a label, whatever the number of parts."""
    return f"part-{number:05d}-of-00500"


def record_part_name(number: int) -> str:
    """Return the name of a part of records, from its number from 0."""
    return f"part-{number:05d}.txt"


def record_eval_name(number: int) -> str:
    """Return the name of a part of records held out, from its number from 0."""
    return f"eval-{number:05d}.txt"


def held_out(names: Sequence[str]) -> list[str]:
    """Return the names held out of training, where files to train on of the same corpus are among them.

    Alone they are no fault: an evaluation set is made of them.
    """
    base_names = {name: storage.base_name(name) for name in names}
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


def pattern_of_test_shards(names: Sequence[str]) -> str | None:
    """Return the pattern of NVIDIA's test shards among the names. None where there are none."""
    found = [match[1] for match in map(_SHARD_OF_NVIDIA.fullmatch, names) if match and match[2] == "test"]
    return f"{found[0]}_test_*.txt" if found else None


def is_list(name: str) -> bool:
    """Return True for ``eval.md5`` and ``removed.jsonl``, which lie among the text."""
    return storage.base_name(name) in (EVAL_MD5, REMOVED)


def _is_of_evaluation(name: str) -> bool:
    """Return True for eval.txt, its md5s, and a shard that is made of it: eval.txt.tfrecord."""
    return any(name == one or name.startswith(f"{one}.") for one in (EVAL_TEXT, EVAL_MD5))
