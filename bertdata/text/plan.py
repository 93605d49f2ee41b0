"""What the text stage will write: names, and what goes where."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bertdata.errors import DatasetError
from bertdata.io import storage
from bertdata.text.nvidia_sharding import distribute
from bertdata.text.parts import part_name, plan_parts
from bertdata.text.settings import SegmentSettings

EVAL_TEXT = "eval.txt"
EVAL_MD5 = "eval.md5"
_OUTPUT_NAMES = re.compile(r"part-\d+-of-\d+|eval\.txt|eval\.md5|[^/]+_(training|test)_\d+\.txt")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPlan:
    """What the text stage writes, as far as names and sizes of the extracted files tell.

    names: of the parts, or of the training and then the test shards; part_of: for each file the index
    of its part among them, empty for nvidia, where each article goes its own way.
    """

    names: list[str]
    part_of: list[int]

    def refuse_leftovers(self, directory: str) -> None:
        """DatasetError for parts or shards in the directory that this plan will not replace."""
        planned = {*self.names, *((EVAL_TEXT, EVAL_MD5) if self.part_of else ())}
        names = storage.list_files(directory)
        left = [name for name in names if _OUTPUT_NAMES.fullmatch(name) and name not in planned]
        if left:
            raise DatasetError(
                f"{directory}: holds {left[0]}{' and others' if left[1:] else ''}, which these inputs "
                "and settings do not make; remove the files of the other run, or choose another directory"
            )

    def lines(self, files: Sequence[str], directory: str, settings: SegmentSettings) -> list[str]:
        """What a run on these files would write, for a person; DatasetError as from refuse_leftovers."""
        self.refuse_leftovers(directory)
        given = ", ".join(f"{name} {value}" for name, value in asdict(settings).items())
        written = [*self.names, *((EVAL_TEXT, EVAL_MD5) if self.part_of else ())]
        there = set(storage.list_files(directory))
        return [
            f"{directory}: text: {given}",
            *(f"  read  {path} ({storage.size(path)} bytes)" for path in files),
            f"{directory}: {len(written)} text files to write, {len(there & set(written))} of them in place "
            "of one that is there",
            *(f"  make  {name}" for name in written),
        ]


def plan_text(files: Sequence[str], settings: SegmentSettings) -> TextPlan:
    """The plan for these files; InputError for a first file that is larger than a block (mlperf)."""
    if settings.recipe == "nvidia":
        return TextPlan(names=shard_names(settings), part_of=[])
    part_of = plan_parts(storage.each(files, storage.size), settings.block_size, files)
    return TextPlan(names=[part_name(number) for number in range(max(part_of) + 1)], part_of=part_of)


def shard_names(settings: SegmentSettings) -> list[str]:
    """NVIDIA's text shards: those for training, then those for testing."""
    kinds = {"training": settings.training_shards, "test": settings.test_shards}
    return [
        f"{settings.prefix}_{kind}_{index}.txt" for kind, shards in kinds.items() for index in range(shards)
    ]


def deal_out(sentences: Sequence[int], settings: SegmentSettings) -> list[list[int]]:
    """The numbers of the articles in each shard of shard_names; ``sentences``: how many each article has."""
    shards = distribute(
        sentences,
        training_shards=settings.training_shards,
        test_shards=settings.test_shards,
        test_fraction=settings.test_fraction,
    )
    return shards.training + shards.test
