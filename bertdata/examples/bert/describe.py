"""One of BERT's examples as a person reads it."""

from bertdata.examples.bert.batch import BertExample
from bertdata.examples.mask_report import describe_masks
from bertdata.examples.objective import text_of
from bertdata.records import ShardLayout


def describe(example: BertExample, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
    """Both segments in words, then each mask: position, what it became, the label.

    ::

        12 ids and 116 of padding, next sentence random, 2 masks
          A  [CLS] a lighthouse [MASK] a tower [SEP]
          B  its keeper kept bees [SEP]
          3   [MASK]  is
          9   random  kept -> stone
    """
    padding = layout.max_seq_length - len(example.ids)
    next_sentence = "random" if example.next_label else "follows"
    lines = [
        f"{len(example.ids)} ids and {padding} of padding, next sentence {next_sentence}, "
        f"{len(example.positions)} masks",
        f"  A  {text_of(example.ids[: example.first_length], words)}",
        f"  B  {text_of(example.ids[example.first_length :], words)}",
        *describe_masks(example.ids, example.positions, example.labels, words, mask_id),
    ]
    return "\n".join(lines) + "\n"
