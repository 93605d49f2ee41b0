"""Pieces of a model: the layers of one stage of a pipeline, under the names of the whole."""

from torch import nn

from trainer.model.bert import HeadedBert
from trainer.model.layers import Absent


def keep_layers(model: HeadedBert, layers: range) -> None:
    """Keep only these layers in the model. The others have no weights any more.

    With layer 0 stay the embeddings; with the last layer the pooler and the heads, and the word embeddings
    too if the heads use them. Names of weights stay as they are.
    """
    bert = model.bert
    count = len(bert.encoder.layer)
    is_first, is_last = layers.start == 0, layers.stop == count
    for number in set(range(count)) - set(layers):
        bert.encoder.layer[number] = Absent()
    if not is_first:
        kept = "word_embeddings" if is_last and model.ties_words else None
        _take_out(bert.embeddings, *(name for name, _ in bert.embeddings.named_children() if name != kept))
    if not is_last:
        _take_out(bert, "pooler")
        _take_out(model, *(name for name, _ in model.named_children() if name != "bert"))


def _take_out(module: nn.Module, *names: str) -> None:
    for name in names:
        setattr(module, name, Absent())
