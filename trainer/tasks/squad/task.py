"""The SQuAD task with its loss and metrics, and its predictions for a file or for a single question."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertdata.config.settings import require
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import InputError, MissingInputError, UsageError
from bertdata.io import storage
from bertdata.io.terminal import say_error
from bertdata.records import Vocabulary
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.data.single import make_single_batch
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import HeadedBert
from trainer.tasks.data_file import read_file
from trainer.tasks.evaluation import MetricTotals, TaskEvaluation
from trainer.tasks.fine_tuning import (
    FineTuning,
    get_target,
    load_configured_tokenizer,
    make_example_weights,
    make_outcome,
)
from trainer.tasks.heads import make_answerer, split_into_sequences
from trainer.tasks.prediction import Prediction, Trained, get_single_text, refuse_flags
from trainer.tasks.squad.answers import (
    PredictedAnswer,
    format_prediction_files,
    predict_answers,
    select_best_logits,
)
from trainer.tasks.squad.data import SquadData, make_squad_settings
from trainer.tasks.squad.features import make_features
from trainer.tasks.squad.metrics import (
    score_answers,
    score_answers_or_none,
    score_no_answers,
)
from trainer.tasks.squad.reading import Question, read_squad, split_context
from trainer.tasks.task import Columns, Outcome, TaskModel

_THE_TEXT = "the text"


class Squad(FineTuning):
    """Task that learns the first and the last token of the answer to a question.

    The loss is the mean of two cross entropies over the tokens of a sequence: for the first and for the last
    token of the answer. If answers_over_padding is set, the softmax in training also includes positions of
    padding, as in the original programs.
    """

    name = "squad"
    objective = "squad"
    metrics = ("answer_loss", "answer_accuracy")
    head = "qa_outputs."
    columns = Columns(
        training={"answer_loss": "answer_loss", "answer_acc": "answer_accuracy"},
        evaluation=("exact_match", "f1"),
        shown="answer_accuracy",
        target="f1",
        whole=100.0,
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if self.keys.answers_over_padding:
            loading = config.loading
            require(loading.rows, "answers_over_padding: flat batches have no padding: give --rows too")
            require(
                not loading.pack_on_load, "answers_over_padding: rows of pack_on_load hold several sequences"
            )
        if self.keys.version_2_with_negative:
            names = self.columns.evaluation
            of_guess = (f"guess_{name}" for name in names)
            self.columns = replace(self.columns, evaluation=(*names, *of_guess))

    def new_model(self, shape: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> HeadedBert:
        model = make_answerer(shape, attention)
        if not self.keys.padding_learns:
            model.bert.embeddings.word_embeddings.padding_idx = shape.pad_token_id
        return model

    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        logits = model(batch).float()
        if self.keys.answers_over_padding and model.training:
            logits = pad_logits(logits, batch)
        else:
            logits = split_logits_by_sequence(logits, batch)
        logs = logits.log_softmax(1)
        places = torch.stack([get_target(batch, "answer_starts"), get_target(batch, "answer_ends")], 1).long()
        losses = -logs.gather(1, places[:, None]).squeeze(1).mean(1)
        right = (logits.argmax(1) == places).all(1).float()
        return make_outcome(
            make_example_weights(batch), losses, right, outputs=None if model.training else logits
        )

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "SquadEvaluation":
        return SquadEvaluation(self._config, str(self.keys.task_eval_file), data)

    def prediction(self, data: OpenedDataset) -> "SquadEvaluation":
        return SquadEvaluation(self._config, str(self.keys.task_predict_file), data, scored=False)

    @classmethod
    def predict(cls, given: Namespace, opened: Trained) -> Prediction:
        """Return the answer to a question.

        If the text contains none, the answer is empty, and without --json a message is printed.
        """
        refuse_flags(given, ("num", "labels"))
        question = get_single_text(given)
        if given.context is None:
            raise UsageError(
                f"{given.model}: the task squad answers from a text: give it, or its file, by --context"
            )
        name, context = _find_context(given.context)
        if name == _THE_TEXT:
            say_error("trainer: --context names no file: it is taken as the text itself")
        found = _find_answer(given, opened, question, name, context)
        if not (found.answer or given.json):
            say_error(f"trainer: {name}: holds no answer to the question")
        return found


def split_logits_by_sequence(logits: Tensor, batch: Batch) -> Tensor:
    """Return the logits of each sequence, with shape (sequences, longest, 2).

    They are -inf after a sequence's end.

    A sequence that only fills up the batch keeps one position, because a softmax over no
    position is not finite.
    logits: logits of all tokens in the batch's order, with shape (tokens, 2).
    """
    used, found = split_into_sequences(logits, batch)
    first = torch.arange(used.shape[1], device=used.device) == 0
    return found.masked_fill(~(used | first)[:, :, None], -torch.inf)


def pad_logits(logits: Tensor, batch: Batch) -> Tensor:
    """Return the logits of whole rows including their padding, with shape (rows, S, 2).

    logits: logits of a batch of padded rows, with shape (rows x S, 2).
    """
    return logits.view(len(batch), -1, 2)


class SquadEvaluation(TaskEvaluation):
    """Evaluation with exact match and F1 for the questions of a file. It also makes files of predictions.

    For version 2.0, the scores of a baseline that never answers are reported too. Version 1.1 has no such
    baseline, because a guess would need the text. There is no loss, because a question has several answers,
    and spans without any. For each feature only the logits of the best positions and of position 0 are kept.
    """

    def __init__(self, config: Config, path: str, data: OpenedDataset, *, scored: bool = True) -> None:
        """Read the questions and make their features again.

        path: path of the file with the questions.
        data: dataset of these features.
        scored: False for a file without answers, for which there are only predictions.
        """
        self._settings = config.finetuning
        tokenizer = load_configured_tokenizer(config)
        settings = make_squad_settings(
            self._settings, data.layout.max_seq_length, tokenizer.vocabulary, training=False
        )
        self._vocabulary: Vocabulary = tokenizer.vocabulary
        self._questions = read_squad(read_file(path), negatives=settings.version_2_with_negative).questions
        self._features = make_features(self._questions, tokenizer, settings)
        self._scored = scored
        self._best: list[list[list[float]]] = []
        self._predictions: dict[str, PredictedAnswer] = {}
        verb = "evaluating on" if scored else "predicting"
        self.note = f"{verb} {len(self._questions)} questions of {path}, {data.examples} features"

    def begin(self) -> None:
        self._best = []

    def add(self, batch: Batch, outputs: Tensor) -> None:
        there = make_example_weights(batch).bool()
        self._best += select_best_logits(outputs[there].numpy(), self._settings.n_best_size).tolist()

    def kept(self) -> list[list[list[float]]]:
        return self._best

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        rows = [row for worker in kept for row in worker]
        features, best = self._features[: len(rows)], np.array(rows, np.float64)
        self._predictions = predict_answers(self._questions, features, best, self._vocabulary, self._settings)
        if not self._scored:
            return {"exact_match": 0.0, "f1": 0.0}
        answers = {name: one.answer for name, one in self._predictions.items()}
        if self._settings.version_2_with_negative:
            found = score_answers_or_none(self._questions, answers)
            guess = score_no_answers(self._questions)
            of_guess = {"guess_exact_match": guess["exact"], "guess_f1": guess["f1"]}
            return {"exact_match": found["exact"], "f1": found["f1"], **of_guess}
        return score_answers(self._questions, answers)

    def describe(self, results: Mapping[str, float]) -> str:
        line = "exact_match {exact_match:.2f}, f1 {f1:.2f}"
        if "guess_f1" in results:
            line += " (always no answer: exact_match {guess_exact_match:.2f}, f1 {guess_f1:.2f})"
        return line.format(**results)

    def files(self) -> Mapping[str, str]:
        return format_prediction_files(self._predictions, negatives=self._settings.version_2_with_negative)


def _find_context(given: str) -> tuple[str, str]:
    """Return the name and the text of the context on the command line.

    given: path of a file, or the text itself if it has several words.
    Raises MissingInputError for a single word that names no file, because it is probably a misspelt name.
    """
    if storage.exists(given):
        return given, read_file(given).text("a text in UTF-8")
    if len(given.split()) > 1:
        return _THE_TEXT, given
    raise MissingInputError(f"{given}: no such file; a text is taken as it is where it has several words")


def _find_answer(given: Namespace, opened: Trained, question: str, name: str, context: str) -> Prediction:
    """Return the model's answer to a question about a text, with its probability.

    The settings of features and of the search are those with which the model was trained. If the model was
    trained with unanswerable questions (SQuAD 2.0) and finds no answer, the answer is empty.
    name: name of the text, for messages.
    """
    model = make_answerer(opened.shape).eval()
    opened.fill(model, "qa_outputs.", "has no head for answers; fine-tune it with --task squad")
    config = opened.config.changed(task=given.task, lower_case=opened.lower_case)
    length = min(SquadData.choose_feature_length(config), opened.shape.max_position_embeddings)
    questions = [Question(id="question", text=question, context=split_context(context))]
    keys = config.finetuning
    settings = make_squad_settings(keys, length, opened.vocabulary, training=False)
    features = make_features(questions, opened.tokenizer, settings)
    if not features:
        raise InputError(f"{name}: holds no words")
    opened.warn_of_length(max(len(feature.ids(opened.vocabulary)) for feature in features))
    logits = np.full((len(features), length, 2), np.finfo(np.float32).min, np.float32)
    with torch.no_grad():
        for row, feature in enumerate(features):
            ids = feature.ids(opened.vocabulary)
            logits[row, : len(ids)] = model(make_single_batch(ids, first_length=feature.document)).numpy()
    best = select_best_logits(logits, keys.n_best_size)
    found = predict_answers(questions, features, best, opened.vocabulary, keys)["question"]
    listed = (probability for scored, probability in found.n_best if scored.text == found.answer)
    probability = next(listed, None)
    return Prediction(task=given.task, answer=found.answer, probability=probability)
