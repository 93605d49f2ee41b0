"""An example as a person reads it."""

from bertdata.records import Example, ShardLayout


def mask_kind(example: Example, mask: int, mask_id: int | None) -> str:
    """What stands at the example's mask number ``mask``: "[MASK]", "kept" or "random".

    Where the id of [MASK] is not known, the first and the last are "changed".
    """
    shown = example.ids[example.positions[mask]]
    if mask_id is None:
        return "kept" if shown == example.labels[mask] else "changed"
    if shown == mask_id:
        return "[MASK]"
    return "kept" if shown == example.labels[mask] else "random"


def describe(example: Example, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
    """Both segments in words, then each mask: position, what it became, the label.

    ::

        12 ids and 116 of padding, next sentence random, 2 masks
          A  [CLS] a lighthouse [MASK] a tower [SEP]
          B  its keeper kept bees [SEP]
          3   [MASK]  is
          9   random  kept -> stone
    """

    def text(ids: list[int]) -> str:
        return " ".join(words[i] if i < len(words) else f"<{i}>" for i in ids)

    padding = layout.max_seq_length - len(example.ids)
    next_sentence = "random" if example.next_label else "follows"
    lines = [
        f"{len(example.ids)} ids and {padding} of padding, next sentence {next_sentence}, "
        f"{len(example.positions)} masks",
        f"  A  {text(example.ids[: example.first_length])}",
        f"  B  {text(example.ids[example.first_length :])}",
    ]
    for mask, (position, label) in enumerate(zip(example.positions, example.labels, strict=True)):
        kind = mask_kind(example, mask, mask_id)
        became = f" -> {text([example.ids[position]])}" if kind in ("random", "changed") else ""
        lines.append(f"  {position:<4}{kind:<8}{text([label])}{became}")
    return "\n".join(lines) + "\n"
