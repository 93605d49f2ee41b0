"""Division of the text parts into training parts and test parts.

NVIDIA's recipe holds some text back as test shards. Both groups of parts become separate datasets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.shard_task import Target
from bertdata.config.held_out_names import find_held_out
from bertdata.errors import SettingsError
from bertdata.steps.create_plan import CreatePlan
from bertdata.steps.values import convert_path
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSet:
    """A group of text parts, and the datasets to make from them: one dataset for each training phase.

    label: text that is added to the names of the pipeline's stages for this group.
    num_shards: number of shards if the documents are shuffled over the whole corpus. None if they are not, so
        that each part becomes one shard.
    """

    label: str
    parts: list[str]
    targets: tuple[Target, ...]
    num_shards: int | None

    @property
    def shards(self) -> int:
        """Number of shards in all datasets together."""
        return (self.num_shards or len(self.parts)) * len(self.targets)


def plan_part_sets(
    plan: CreatePlan,
    tokenizer: TokenizerFile,
    parts: Sequence[str],
    *,
    has_test_shards: bool,
) -> tuple[PartSet, ...]:
    """Return the group of training parts and, if there are test shards, the group of test parts.

    Test shards are written to the dataset OUTPUT.test. They are not shuffled, since no model is trained on
    them.
    """
    if any(given.files_of_run for given in plan.settings.values()):
        raise SettingsError("--as-original: one process deals the examples to files; use bertdata create")
    test_parts = find_held_out(parts) if has_test_shards else []
    training_parts = sorted(set(parts) - set(test_parts))

    def make_part_set(label: str, output: str, chosen: list[str], num_shards: int | None) -> PartSet:
        """Return the set of these parts, with the datasets that are made from them in the directory
        ``output``.
        """
        targets = plan.targets(chosen, tokenizer, output=output, num_shards=num_shards)
        return PartSet(label=label, parts=chosen, targets=targets, num_shards=num_shards)

    output = convert_path(plan.request.output)
    training = make_part_set("", output, training_parts, plan.request.num_shards)
    if not has_test_shards:
        return (training,)
    return training, make_part_set(" of test text", name_test_directory(output), test_parts, None)


def name_test_directory(output: str) -> str:
    """Return the directory of the test shards' dataset: the output directory's name with ``.test`` added."""
    return f"{output.rstrip('/')}.test" if output else output
