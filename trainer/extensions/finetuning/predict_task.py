"""The command ``python -m trainer predict`` with a fine-tuned model: an answer, or a label."""

import json
from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import torch

from bertdata.errors import InputError, MissingInputError, UsageError
from bertdata.io import storage
from bertdata.io.terminal import say, say_error
from trainer.config.finetuning import SQUAD
from trainer.data.single import single_sequence
from trainer.extensions.finetuning.classification.features import make_features as make_pair_features
from trainer.extensions.finetuning.classification.presets import (
    OWN_TABLE,
    ClassificationTask,
    find_classification,
)
from trainer.extensions.finetuning.classification.reading import TextPair
from trainer.extensions.finetuning.classification.task import Classification
from trainer.extensions.finetuning.labelled_text import decode_text
from trainer.extensions.finetuning.squad.answers import best_logits, predict_answers
from trainer.extensions.finetuning.squad.features import make_features
from trainer.extensions.finetuning.squad.reading import parse_squad
from trainer.extensions.finetuning.squad.task import BertForQuestionAnswering, squad_settings
from trainer.extensions.finetuning.task_files import feature_length
from trainer.run.predict_command import refuse, single_text
from trainer.run.trained_model import Trained

_THE_TEXT = "the text"


def predict_task(given: Namespace, opened: Trained, task: str) -> None:
    """Print the answer or the label. task: the name of the task."""
    given.task = SQUAD if task.lower() == SQUAD else find_classification(task).name
    if given.task == SQUAD:
        _print_answer(given, opened)
    else:
        refuse(given, ("num", "context"))
        say(_label_line(given, opened))


# --- the answer to a question about a text -----------------------------------------------------


def _print_answer(given: Namespace, opened: Trained) -> None:
    """Print the answer, or an empty line and a message where the text holds none."""
    refuse(given, ("num", "labels"))
    question = single_text(given)
    if given.context is None:
        raise UsageError(
            f"{given.model}: the task squad answers from a text: give it, or its file, by --context"
        )
    name, context = _find_context(given.context)
    if name == _THE_TEXT:
        say_error("trainer: --context names no file: it is taken as the text itself")
    line = _answer_line(opened, question, name, context, as_json=given.json)
    say(line)
    if not line:
        say_error(f"trainer: {name}: holds no answer to the question")


def _find_context(given: str) -> tuple[str, str]:
    """The name and text of a file of UTF-8, or the given text itself where it is no file's name.

    MissingInputError for one word that names no file: a misspelt name must not be answered from.
    """
    if storage.exists(given):
        return given, decode_text(storage.read_bytes(given), given, "a text in UTF-8")
    if len(given.split()) > 1:
        return _THE_TEXT, given
    raise MissingInputError(f"{given}: no such file; a text is taken as it is where it has several words")


def _answer_line(opened: Trained, question: str, name: str, context: str, *, as_json: bool) -> str:
    """The answer in one line, by the run's own settings. As JSON it has its probability among the best.

    It is empty where the run allows questions without an answer (SQuAD 2.0) and finds none.
    """
    model = BertForQuestionAnswering(opened.shape).eval()
    opened.fill(model, "qa_outputs.", "has no head for answers; fine-tune it with --task squad")
    config = opened.config.changed(task=SQUAD, lower_case=opened.lower_case)
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    entry = {"id": "question", "question": question, "answers": []}
    data = {"data": [{"paragraphs": [{"context": context, "qas": [entry]}]}]}
    asked = parse_squad(json.dumps(data).encode(), name, training=False, negatives=False)
    settings = squad_settings(config, length, training=False)
    features = make_features(asked.questions, opened.tokenizer, settings)
    if not features:
        raise InputError(f"{name}: holds no words")
    logits = np.full((len(features), length, 2), np.finfo(np.float32).min, np.float32)
    with torch.no_grad():
        for row, feature in enumerate(features):
            batch = single_sequence(feature.ids(opened.vocabulary), first_length=feature.document)
            logits[row, : feature.length] = model(batch).numpy()
    best = best_logits(logits, config.finetuning.n_best_size)
    predicted = predict_answers(asked.questions, features, best, opened.vocabulary, config.finetuning)
    found = predicted["question"]
    if not as_json:
        return found.answer
    probability = next(probability for scored, probability in found.n_best if scored.text == found.answer)
    return json.dumps({"answer": found.answer, "probability": probability}, ensure_ascii=False)


# --- the label of a text or of a pair ----------------------------------------------------------


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
    of_its_own = opened.config.finetuning.is_finetuning or given.task != OWN_TABLE
    pair = _as_pair(given.text, learned.task, is_known=of_its_own)
    model = learned.new_model(opened.shape).eval()
    opened.fill(model, learned.head, f"has no head for labels; fine-tune it with --task {given.task}")
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    (feature,) = make_pair_features([pair], [0], opened.tokenizer, length)
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
    return TextPair(texts[0], texts[1] if count == 2 else None, None, _THE_TEXT)
