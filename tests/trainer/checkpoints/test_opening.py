"""The line about a checkpoint that a run starts from names each part of the model once."""

import pytest

from trainer.checkpoints.opening import name_parts

HEAD = ["cls.predictions.transform.dense.weight", "cls.predictions.transform.LayerNorm.weight"]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (
            [["bert.encoder.a.weight", "bert.encoder.b.weight"], ["bert.pooler.bias"]],
            ["bert.encoder", "bert.pooler"],
        ),
        (
            [["bert.encoder.layer.0.weight"], ["bert.encoder.layer.1.weight"]],
            ["bert.encoder.layer.0", "bert.encoder.layer.1"],
        ),
        # a classifier of ModernBERT takes the transform of the head and leaves out the rest
        (
            [HEAD, ["classifier.weight"], ["cls.predictions.bias"]],
            ["cls.predictions.transform", "classifier.weight", "cls.predictions.bias"],
        ),
        ([["a.weight"], ["a.weight"]], ["a.weight", "a.weight"]),
        ([["a"], []], ["a", ""]),
    ],
)
def test_a_part_is_divided_if_its_tensors_are_in_several_groups(groups, expected):
    assert name_parts(*groups) == expected
