"""The function ``trainer.predict``."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertdata.errors import UsageError
from bertdata.steps.values import AnyPath, check_positive_integer, convert_optional_path, convert_path
from trainer.errors import name_missing_extra

if TYPE_CHECKING:
    from trainer.tasks.prediction import Prediction


def predict(
    model: AnyPath,
    *texts: str,
    task: str | None = None,
    context: AnyPath | None = None,
    labels: Sequence[str] | None = None,
    num: int | None = None,
    model_config: AnyPath | None = None,
    vocab: AnyPath | None = None,
    train_data: AnyPath | None = None,
    lower_case: bool | None = None,
) -> "Prediction":
    """Return the prediction of a trained model for a text, as ``python -m trainer predict`` does.

    After pre-training these are the most probable words for each mask of the text, after fine-tuning a label,
    a score or an answer. ``print`` shows a prediction as the command prints it.

    model: directory of a run, or a checkpoint of this trainer or of another program.
    texts: a text with a mask for each missing word, a question, or one or two texts to classify.
    task: "words", or the name of a fine-tuning task. None: the task that the model was trained on.
    context: for SQuAD, the text that contains the answer, or a file with the text.
    labels: the labels in the order of their ids. None: the labels in the checkpoint.
    num: number of words for each mask. None: 5.
    model_config: bert_config.json of another program's checkpoint. None: the file next to the weights.
    vocab: vocabulary, tokenizer.json, or a directory with one of them. None: the copy that the run keeps.
    train_data: the run's training data, if they have moved.
    lower_case: whether the tokeniser of a vocabulary lower-cases text. None: as for the training data.

    Raises UsageError (or a subclass) if an argument is wrong, and DataError (or a subclass) if the checkpoint
    is at fault.
    """
    if not texts:
        raise UsageError("no text given to predict from")
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(
                f"a text is of type {type(text).__name__}, expected a str; give each text by itself"
            )
    given = Namespace(
        model=convert_path(model),
        text=list(texts),
        task=task,
        context=convert_optional_path(context),
        labels=None if labels is None else labels if isinstance(labels, str) else ",".join(labels),
        json=True,  # no message is printed beside the result
        num=None if num is None else check_positive_integer("num", num),
        model_config=convert_optional_path(model_config),
        vocab=convert_optional_path(vocab),
        train_data=convert_optional_path(train_data),
        lower_case=lower_case,
    )
    with name_missing_extra("torch", "train"):
        from trainer.run.predict import predict_text

        return predict_text(given)
