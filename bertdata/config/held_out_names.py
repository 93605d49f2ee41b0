"""Names of the text files that ``bertdata segment`` writes, and which of them are held out for evaluation.

The names depend on the recipe, or on whether the input is records (such as lines of JSON)::

    kind      to train on                 held out
    mlperf    part-00000-of-00500, ...    eval.txt (and its md5s, eval.md5)
    nvidia    PREFIX_training_0.txt, ...  PREFIX_test_0.txt, ...
    records   part-00000.txt, ...         eval-00000.txt, ...

The name of a shard begins with the name of the text file that it was made from. These rules therefore also
recognise shards.
"""

import re
from collections.abc import Sequence

from bertdata.io import storage

EVAL_TEXT = "eval.txt"
EVAL_MD5 = "eval.md5"
REMOVED = "removed.jsonl"
"""Name of the file that lists the records that were left out of the text files."""

# A shard's name consists of the text file's name, the ending of its file format and possibly the number of a
# length bin.
_SHARD_OF_NVIDIA = re.compile(r"(.*)_(training|test)_\d+(?:\..*)?")
_PART_OF_MLPERF = re.compile(r"part-\d{5}-of-\d{5}(?:\..*)?")
_PART_OF_RECORDS = re.compile(r"(part|eval)-\d{5}(?:\..*)?")


def make_mlperf_part_name(number: int) -> str:
    """Return the name of training file ``number``.

    For example, 3 gives part-00003-of-00500. The 500 never changes.
    """
    return f"part-{number:05d}-of-00500"


def make_record_part_name(number: int) -> str:
    """Return the name of training file ``number`` made from records. Numbers begin at 0."""
    return f"part-{number:05d}.txt"


def make_record_eval_name(number: int) -> str:
    """Return the name of held-out file ``number`` made from records. Numbers begin at 0."""
    return f"eval-{number:05d}.txt"


def find_held_out(names: Sequence[str]) -> list[str]:
    """Return the names of held-out files, if the list also has the names of training files of the same text.

    If all names are held-out files, the result is empty. A caller that lists only held-out files wants to
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
        or (has_parts and _is_mlperf_eval_file(base_names[name]))
        or (has_records and kinds.get(name) == "eval")
    ]


def make_test_pattern(names: Sequence[str]) -> str | None:
    """Return a glob pattern that matches NVIDIA's test files among these names.

    Returns None if there are no such files.
    """
    found = [match[1] for match in map(_SHARD_OF_NVIDIA.fullmatch, names) if match and match[2] == "test"]
    return f"{found[0]}_test_*.txt" if found else None


def is_companion_list(name: str) -> bool:
    """Return True for ``eval.md5`` and ``removed.jsonl``, which are in the directory of the text but contain
    no text.
    """
    return storage.get_base_name(name) in (EVAL_MD5, REMOVED)


def _is_mlperf_eval_file(name: str) -> bool:
    """Return True for eval.txt, for its md5 file, and for shards made from it, such as eval.txt.tfrecord."""
    return any(name == one or name.startswith(f"{one}.") for one in (EVAL_TEXT, EVAL_MD5))
