"""The answer to one question about a text, by a model that was fine-tuned on SQuAD."""

import json

import numpy as np
import torch

from bertdata.config.dialects import find_dialect
from bertdata.errors import DataError, InputError
from bertdata.io import storage
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.data.single import single_sequence
from trainer.model.checkpoints.filling import fill_model
from trainer.model.finetuning import BertForQuestionAnswering
from trainer.run.trained import open_trained
from trainer.tasks.squad.answers import AnswerSettings, predict_answers
from trainer.tasks.squad.features import make_features
from trainer.tasks.squad.reading import parse_squad
from trainer.tasks.squad.settings import SquadSettings

_DIALECT = "google"
_HEAD = "qa_outputs."


def answer_line(
    source: str,
    question: str,
    context: str,
    *,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
    as_json: bool,
) -> str:
    """The answer in one line; as JSON with its probability among the 20 best.

    context: a file of UTF-8 text. DataError for a model without SQuAD's head.
    """
    opened = open_trained(source, vocabulary=vocabulary, train_data=train_data, lower_case=lower_case)
    model = BertForQuestionAnswering(opened.shape).eval()
    missing = fill_model(model, opened.checkpoint)
    if any(name.startswith(_HEAD) for name in missing):
        raise DataError(f"{source}: has no head for answers; fine-tune it with --task squad")
    settings = SquadSettings(
        max_seq_length=min(SquadSettings().max_seq_length, opened.shape.max_position_embeddings),
        lower_case=opened.lower_case,
    )
    questions = parse_squad(_as_squad(question, context), context, training=False, negatives=False).questions
    tokenizer = WordPieceTokenizer(opened.vocabulary, find_dialect(_DIALECT), lower_case=opened.lower_case)
    features = make_features(questions, tokenizer, settings)
    if not features:
        raise InputError(f"{context}: holds no words")
    logits = np.full((len(features), settings.max_seq_length, 2), np.finfo(np.float32).min, np.float32)
    with torch.no_grad():
        for row, feature in enumerate(features):
            batch = single_sequence(feature.ids(opened.vocabulary), first_length=feature.document)
            logits[row, : feature.length] = model(batch).numpy()
    found = predict_answers(
        questions,
        features,
        logits[:, :, 0],
        logits[:, :, 1],
        opened.vocabulary,
        AnswerSettings(lower_case=opened.lower_case),
    )[questions[0].id]
    if as_json:
        answer = {"answer": found.answer, "probability": found.n_best[0][1]}
        return json.dumps(answer, ensure_ascii=False)
    return found.answer


def _as_squad(question: str, context: str) -> bytes:
    """SQuAD's JSON of one question about the text of a file."""
    data = storage.read_bytes(context)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(context, data, error.start, "save it as UTF-8") from None
    entry = {"id": "question", "question": question, "answers": []}
    return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": [entry]}]}]}).encode()
