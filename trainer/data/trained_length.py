"""The length of the longest sequence that a model was trained on, in ids.

A run's state stores it (``State.longest``), and an export for Hugging Face as ``model_max_length`` in
tokenizer_config.json. Longer sequences use positions whose embeddings were never trained.
"""

from bertdata.dataset.reader import OpenedDataset


def choose_longer(known: int | None, ids: int | None) -> int | None:
    """Return the length of the longest sequence that a model has been trained on, after further training.

    None, as an argument or as the result, means that the length is unknown. Then no length is warned of.
    known: length of the longest sequence in the earlier training.
    ids: length of the longest sequence in the further training.
    """
    return None if known is None or ids is None else max(known, ids)


def find_longest_feature(data: OpenedDataset) -> int:
    """Return the number of ids in the longest feature (example for fine-tuning), without padding."""
    if not data.has_lengths:
        return data.layout.max_seq_length
    return max((max(data.lengths(shard), default=0) for shard in data.shards if shard.examples), default=0)


def find_length_warnings(where: str, ids: int, source: str, known: int | None) -> list[str]:
    """Return a list with a warning if sequences are longer than those that the model was trained on, else [].

    where: name of the data.
    ids: number of ids in the longest sequence of the data.
    source: name of the model.
    known: number of ids in the longest sequence that the model was trained on, or None if unknown.
    """
    if known is None or ids <= known:
        return []
    return [
        f"{where}: sequences of {ids} ids, {source} was trained on at most {known}: its positions from "
        f"{known} on were never trained; use shorter sequences, or train on longer ones"
    ]
