"""The length that a model knows: ids of the longest sequence that it was trained on.

A run's state holds it (``State.longest``), an export in Hugging Face's form has it as ``model_max_length`` of
tokenizer_config.json. Longer sequences reach positions that are as they were drawn.
"""

from bertdata.dataset.reader import OpenedDataset


def longer_of(known: int | None, ids: int | None) -> int | None:
    """Return the length known to a model after training on sequences of so many ids; None: of any."""
    return None if known is None or ids is None else max(known, ids)


def longest_feature(data: OpenedDataset) -> int:
    """Return the ids of the longest feature of fine-tuning, which is shorter than what it is padded to."""
    if not data.has_lengths:
        return data.layout.max_seq_length
    return max((max(data.lengths(shard), default=0) for shard in data.shards if shard.examples), default=0)


def length_warnings(where: str, ids: int, source: str, known: int | None) -> list[str]:
    """Return a warning where sequences are longer than those that the source's model was trained on.

    where: what has the sequences.
    """
    if known is None or ids <= known:
        return []
    return [
        f"{where}: sequences of {ids} ids, {source} was trained on at most {known}: its positions from "
        f"{known} on were never trained; use shorter sequences, or train on longer ones"
    ]
