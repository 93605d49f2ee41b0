"""The label that a fine-tuned model gives to one text or pair of texts."""

import json
from argparse import Namespace
from collections.abc import Sequence

import torch

from bertdata.errors import UsageError
from bertdata.io.terminal import say
from trainer.data.single import single_sequence
from trainer.extensions.finetuning.classification.features import make_features
from trainer.extensions.finetuning.classification.presets import ClassificationTask, find_classification
from trainer.extensions.finetuning.classification.reading import TextPair
from trainer.extensions.finetuning.classification.task import Classification
from trainer.extensions.finetuning.task_files import feature_length
from trainer.run.predict_command import refuse
from trainer.run.trained_model import Trained


def print_label(given: Namespace, opened: Trained) -> None:
    """Print the label."""
    refuse(given, ("num", "context"))
    say(_label_line(given, opened))


def _label_line(given: Namespace, opened: Trained) -> str:
    """The label of a text or of a pair of texts, and its probability, or the score with three digits.

    given: the task may be the run's own or another; its labels, in the order of their ids, are the run's or
    the task's unless they are given; json: the probabilities of all labels too. UsageError for one text where
    the task compares two, and the other way round.
    """
    config = opened.config
    config = config if config.finetuning.task == given.task else config.changed(task=given.task)
    if given.labels:
        config = config.changed(labels=given.labels.split(","))
    learned = Classification(config)
    of_its_own = opened.config.is_finetuning or find_classification(given.task).is_known
    pair = _as_pair(given.text, learned.task, is_known=of_its_own)
    model = learned.new_model(opened.shape).eval()
    opened.fill(model, learned.head, f"has no head for labels; fine-tune it with --task {given.task}")
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    (feature,) = make_features([pair], [0], opened.tokenizer, length)
    with torch.no_grad():
        logits = model(single_sequence(feature.ids, first_length=feature.first_length))[0].float()
    if learned.task.regression:
        score = float(logits[0])
        return json.dumps({"score": score}) if given.json else f"{score:.3f}"
    labels, probabilities = learned.task.labels or (), logits.softmax(0).tolist()
    best = max(range(len(labels)), key=probabilities.__getitem__)
    if not given.json:
        return f"{labels[best]} {probabilities[best]:.1%}"
    found = {
        "label": labels[best],
        "probability": probabilities[best],
        "probabilities": dict(zip(labels, probabilities, strict=True)),
    }
    return json.dumps(found, ensure_ascii=False)


def _as_pair(texts: Sequence[str], task: ClassificationTask, *, is_known: bool) -> TextPair:
    """The texts as an example of the task. is_known: the task says how many texts it takes."""
    count = 1 if task.columns.second is None else 2
    if not is_known and len(texts) in (1, 2):
        count = len(texts)
    if len(texts) < count:
        raise UsageError(f"the task {task.name} is about pairs of texts: give a second one")
    if len(texts) > count:
        wanted = "one text" if count == 1 else "two texts"
        raise UsageError(f"the task {task.name} takes {wanted}, found {len(texts)}; put each into quotes")
    return TextPair(texts[0], texts[1] if count == 2 else None, None, "the text")
