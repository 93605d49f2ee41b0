"""The classification task with its loss and metrics, and its predictions for a file or for a single text."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DataError, SettingsError, UsageError
from bertdata.examples.columns import Array
from bertdata.io.terminal import say_error
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.data.single import make_single_batch
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import HeadedBert
from trainer.tasks.classification.data import TableData, make_configured_task
from trainer.tasks.classification.features import make_features
from trainer.tasks.classification.head_fit import NONE, SIGMOID, find_head_reading
from trainer.tasks.classification.metrics import (
    METRICS,
    GuessBaseline,
    count_labels,
    format_predictions,
    score_labels,
)
from trainer.tasks.classification.presets import ClassificationTask
from trainer.tasks.classification.reading import TextPair
from trainer.tasks.evaluation import MetricTotals, TaskEvaluation, name_guess
from trainer.tasks.fine_tuning import FineTuning, get_target, make_example_weights, make_outcome
from trainer.tasks.heads import make_classifier
from trainer.tasks.prediction import Prediction, Trained, refuse_flags
from trainer.tasks.task import Columns, Outcome, TaskModel

PREDICTIONS = "predictions.tsv"


class Classification(FineTuning):
    """Task that learns a label, with cross entropy, or a score, with squared error."""

    head = "classifier."

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.task = make_configured_task(self.keys)
        self.name = self.task.name
        self.objective = "regression" if self.task.regression else "classification"
        _, scores = METRICS[self.task.metrics]
        self.metrics = ("score_loss",) if self.task.regression else ("label_loss", "label_accuracy")
        self.columns = Columns(
            training={name.replace("accuracy", "acc"): name for name in self.metrics},
            evaluation=(
                *("loss", *self.metrics, *scores),
                *(f"guess_{name}" for name in (self.metrics[0], *scores)),
            ),
            shown=self.metrics[-1],
            target=scores[-1],
        )

    def new_model(self, shape: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> HeadedBert:
        """Return a classification model with random weights.

        Raise SettingsError if the labels are not known yet.
        """
        if self.task.regression:
            return make_classifier(shape, 1, attention)
        if self.task.labels is None:
            raise SettingsError(f"task {self.name}: its labels are not known; give --labels")
        return make_classifier(shape, len(self.task.labels), attention)

    def check_head(self, missing: Sequence[str], path: str) -> None:
        """Raise DataError if the checkpoint lacks the classification head, or a layer that the
        head needs before it.
        """
        super().check_head(missing, path)
        _refuse_missing_layers(missing, path)

    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        logits, weights = model(batch).float(), make_example_weights(batch)
        outputs = None if model.training else logits
        if self.task.regression:
            return make_outcome(weights, (logits[:, 0] - read_scores(batch)) ** 2, outputs=outputs)
        labels = get_target(batch, "label_ids").long()
        losses = F.cross_entropy(logits, labels, reduction="none")
        return make_outcome(weights, losses, (logits.argmax(1) == labels).float(), outputs=outputs)

    def survey(self, data: OpenedDataset) -> dict[str, Any]:
        """Return the numbers of examples with each label, or the mean of the scores."""
        return count_labels(self.task, data).as_json()

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "ClassificationEvaluation":
        guess = GuessBaseline(task=self.task, **survey)
        return ClassificationEvaluation(self.task, data, guess, "training" if training else "evaluation")

    def prediction(self, data: OpenedDataset) -> "ClassificationEvaluation":
        return ClassificationEvaluation(self.task, data)

    @classmethod
    def predict(cls, given: Namespace, opened: Trained) -> Prediction:
        """Return the predicted label or score for the text on the command line."""
        refuse_flags(given, ("num", "context"))
        return _predict_label(given, opened)


def read_scores(batch: Batch) -> Tensor:
    """Return the scores of a batch, with shape (examples,) and type float32.

    The dataset stores the bits of each score as two 16-bit halves.
    """
    return (get_target(batch, "score_highs") << 16 | get_target(batch, "score_lows")).view(torch.float32)


class ClassificationEvaluation(TaskEvaluation):
    """Evaluation with the task's official metrics, for the model and for a baseline.

    It also makes a file of predictions.
    """

    def __init__(
        self,
        task: ClassificationTask,
        data: OpenedDataset,
        guess: GuessBaseline | None = None,
        source: str = "",
    ) -> None:
        """Prepare the evaluation.

        guess: the baseline. None for a table without labels, for which there are only predictions.
        source: the set that the baseline comes from, "training" or "evaluation".
        """
        self._task = task
        self._guess = guess
        self._source = source
        self._kept: list[list[float]] = []
        _, self._names = METRICS[task.metrics]
        self._predicted: Array = np.zeros(0)
        self.note = f"predicting {data.examples} examples of {data.name}"
        if guess:
            told = f"; in the {source} set {guess.description}"
            self.note = f"evaluating on {data.examples} examples of {data.name}{told}"

    def begin(self) -> None:
        self._kept = []

    def add(self, batch: Batch, outputs: Tensor) -> None:
        there = make_example_weights(batch).bool()
        gold = read_scores(batch) if self._task.regression else get_target(batch, "label_ids")
        guessed = outputs[:, 0] if self._task.regression else outputs.argmax(1)
        self._kept += torch.stack([guessed[there].double(), gold[there].double()], 1).tolist()

    def kept(self) -> list[list[float]]:
        return self._kept

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        found: Array = np.array([row for worker in kept for row in worker]).reshape(-1, 2)
        means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
        kind: type[Any] = float if self._task.regression else int
        self._predicted = found[:, 0].astype(kind)
        first = next(iter(means))
        if self._guess is None:
            return {"loss": means[first], **means}
        gold = found[:, 1].astype(kind)
        scores = score_labels(self._task.metrics, self._predicted, gold)
        guessed = {first: self._guess.compute_loss(gold), **self._guess.compute_scores(gold)}
        found_of_guess = {f"guess_{name}": value for name, value in guessed.items()}
        return {"loss": means[first], **means, **scores, **found_of_guess}

    def describe(self, results: Mapping[str, float]) -> str:
        if self._guess is None:
            return f"loss {results['loss']:.4f}"
        measured = ", ".join(f"{name} {results[name]:.4f}" for name in (*self._names, "loss"))
        guessed = ", ".join(f"{name} {results[f'guess_{name}']:.4f}" for name in self._names)
        what = "mean" if self._task.regression else "most frequent"
        return f"{measured} (always {name_guess(self._guess.name, self._source, what)}: {guessed})"

    def files(self) -> Mapping[str, str]:
        return {PREDICTIONS: format_predictions(self._predicted.tolist(), self._task)}


def _predict_label(given: Namespace, opened: Trained) -> Prediction:
    """Return the predicted label of a text or pair of texts with the probabilities, or the score.

    given.task: name of the task, if it is not the run's.
    given.labels: labels in the order of their ids. By default they are the head's labels, or the
    task's if it has none.
    Raises UsageError if the number of texts is not the task's.
    """
    config = opened.config
    if given.task != config.task:
        config = config.changed(task=given.task, labels=None, regression=False)
    if given.labels:
        config = config.changed(labels=given.labels.split(","), regression=False)
    learned = Classification(config)
    # fine-tuned by this trainer
    is_trained = bool(config.finetuning.task_train_file or config.finetuning.task_dir)
    pair = _make_pair(given.text, learned.task, is_known=is_trained or learned.task.is_known)
    if opened.head is None:
        raise DataError(f"{opened.source}: has no head for labels; fine-tune it with --task {given.task}")
    read = find_head_reading(learned.task, opened.head, given=bool(given.labels))
    model = make_classifier(opened.shape, opened.head.rows).eval()
    _refuse_missing_layers(opened.fill_from(model), opened.source)
    longest = opened.shape.max_position_embeddings
    length = min(TableData.choose_feature_length(config), longest) if is_trained else longest
    (feature,) = make_features([pair], [0], opened.tokenizer, length)
    opened.warn_of_length(len(feature.ids))
    if feature.whole_length > length:
        say_error(
            f"trainer: warning: the text has {feature.whole_length:,} token ids (special tokens included), "
            f"but only {length} are read"
        )
    with torch.no_grad():
        logits = model(make_single_batch(feature.ids, first_length=feature.first_length))[0].float()
    if read.function == NONE:
        return Prediction(task=given.task, score=float(logits[0]))
    shares = logits.sigmoid() if read.function == SIGMOID else logits.softmax(0)
    probabilities = shares.tolist()
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    return Prediction(
        task=given.task,
        label=read.names[best],
        probability=probabilities[best],
        probabilities=dict(zip(read.names, probabilities, strict=True)),
    )


def _refuse_missing_layers(missing: Sequence[str], path: str) -> None:
    """Raise DataError if a checkpoint lacks the layers before its classifier.

    Models that classify tokens instead of sequences lack them.
    """
    if lost := [name for name in missing if name.startswith(("bert.pooler.", "cls.", "classifier."))]:
        raise DataError(
            f"{path}: has a classifier, but lacks {lost[0]}, so that it classifies no texts (but tokens, say)"
        )


def _make_pair(texts: Sequence[str], task: ClassificationTask, *, is_known: bool) -> TextPair:
    """Return the texts on the command line as an example of the task.

    is_known: whether the task determines how many texts it needs.
    """
    count = 1 if task.columns.second is None else 2
    if not is_known and len(texts) in (1, 2):
        count = len(texts)
    if len(texts) < count:
        raise UsageError(f"the task {task.name} is about pairs of texts: give a second one")
    if len(texts) > count:
        wanted = "one text" if count == 1 else "two texts"
        raise UsageError(f"the task {task.name} takes {wanted}, found {len(texts)}; put each into quotes")
    return TextPair(texts[0], texts[1] if count == 2 else None, None, "the text")
