"""The label of a text, or its score, by a model that was fine-tuned on a classification."""

import json
from collections.abc import Sequence

import torch

from bertdata.config.dialects import find_dialect
from bertdata.errors import DataError, UsageError
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.checkpoint.filling import fill_model
from trainer.data.single import single_sequence
from trainer.extensions.finetuning.classification.features import make_features
from trainer.extensions.finetuning.classification.presets import OWN_TABLE, ClassificationTask
from trainer.extensions.finetuning.classification.reading import TextPair
from trainer.extensions.finetuning.classification.task import Classification
from trainer.extensions.finetuning.task_files import feature_length
from trainer.run.trained_model import Trained

_DIALECT = "google"


def label_line(
    opened: Trained, task: str, texts: Sequence[str], *, labels: Sequence[str] | None, as_json: bool
) -> str:
    """The label of a text or of a pair of texts, and its probability; or the score, with three digits.

    task: the run's own or another. labels: in the order of their ids; None: the run's, or the task's.
    as_json: the probabilities of all labels too. UsageError for one text where the task compares two, and the
    other way round; DataError for a model without a head for labels.
    """
    config = opened.config if opened.config.finetuning.task == task else opened.config.changed(task=task)
    if labels is not None:
        config = config.changed(labels=list(labels))
    learned = Classification(config)
    of_its_own = opened.config.finetuning.is_finetuning or task != OWN_TABLE
    pair = _as_pair(texts, learned.task, is_known=of_its_own)
    model = learned.new_model(opened.shape).eval()
    missing = fill_model(model, opened.checkpoint)
    if any(name.startswith(learned.head) for name in missing):
        raise DataError(f"{opened.source}: has no head for labels; fine-tune it with --task {task}")
    tokenizer = WordPieceTokenizer(opened.vocabulary, find_dialect(_DIALECT), lower_case=opened.lower_case)
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    (feature,) = make_features([pair], [0], tokenizer, length)
    with torch.no_grad():
        logits = model(single_sequence(feature.ids, first_length=feature.first_length))[0].float()
    if learned.task.regression:
        score = float(logits[0])
        return json.dumps({"score": score}) if as_json else f"{score:.3f}"
    return _label_text(learned.task.labels or (), logits.softmax(0).tolist(), as_json=as_json)


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


def _label_text(labels: Sequence[str], shares: Sequence[float], *, as_json: bool) -> str:
    """The most probable label; shares: the probability of each."""
    best = max(range(len(shares)), key=shares.__getitem__)
    if not as_json:
        return f"{labels[best]} {shares[best]:.1%}"
    found = {
        "label": labels[best],
        "probability": shares[best],
        "probabilities": dict(zip(labels, shares, strict=True)),
    }
    return json.dumps(found, ensure_ascii=False)
