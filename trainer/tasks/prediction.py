"""The opened model that ``python -m trainer predict`` passes to a task, and checks of the command line."""

from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bertdata.errors import DataError, UsageError
from bertdata.io.terminal import say_error
from bertdata.records import Vocabulary
from bertdata.tokens.tokenizer import Tokenizer
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.trained_length import find_length_warnings

if TYPE_CHECKING:
    from trainer.model.headed import HeadedBert
    from trainer.tasks.classification.head_labels import HeadLabels


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """A checkpoint that is opened for predictions, with its tokeniser. Its tensors have not been read yet.

    source: path on the command line.
    fill_from: function that fills a model from the checkpoint and returns the names of missing weights.
    longest: number of ids in the longest sequence of its training. None if unknown.
    lower_case: whether a vocabulary is lower-cased. None for a tokenizer.json, which contains the casing.
    config: the task and the settings of features. They are those of the run that trained the model, or follow
        from the head of another program's model. Other keys have their defaults.
    head: labels of the classification head. None if there is no such head.
    """

    source: str
    fill_from: "Callable[[HeadedBert], list[str]]"
    shape: ModelConfig
    longest: int | None
    tokenizer: Tokenizer
    lower_case: bool | None
    config: Config
    head: "HeadLabels | None" = None

    @property
    def vocabulary(self) -> Vocabulary:
        return self.tokenizer.vocabulary

    def fill(self, model: "HeadedBert", head: str, missing: str) -> None:
        """Fill the model from the checkpoint.

        head: beginning of the names of the head's weights.
        missing: message of the DataError that is raised if the checkpoint lacks the head.
        """
        if any(name.startswith(head) for name in self.fill_from(model)):
            raise DataError(f"{self.source}: {missing}")

    def warn_of_length(self, ids: int) -> None:
        """Print a warning if a sequence of ``ids`` ids is longer than the sequences that the
        model was trained on.
        """
        for warning in find_length_warnings("the text", ids, self.source, self.longest):
            say_error(f"trainer: warning: {warning}")


class WordGuess(NamedTuple):
    """A word that may replace a mask, with its probability.

    A word of BPE or Unigram begins with a blank if a blank precedes it in the text.
    """

    word: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """The prediction of a model for a text. Fields that do not belong to the model's task are None or empty.

    As a string, a prediction is what the command ``predict`` prints.

    task: "words" for masked words, or the name of the task that the model was fine-tuned on.
    words: for each mask of the text the most probable words, best first.
    label: the most probable label.
    probability: probability of the label, or of the answer.
    probabilities: the probability of every label.
    score: the score, for a task with scores instead of labels.
    answer: the answer to a question. It is empty if the text contains no answer.
    """

    task: str
    words: tuple[tuple[WordGuess, ...], ...] = ()
    label: str | None = None
    probability: float | None = None
    probabilities: dict[str, float] = field(default_factory=dict)
    score: float | None = None
    answer: str | None = None

    def __str__(self) -> str:
        if self.score is not None:
            return f"{self.score:.3f}"
        if self.label is not None:
            return f"{self.label} {self.probability:.1%}"
        if self.answer is not None:
            return self.answer
        return "\n".join(
            ", ".join(f"{guess.word.strip() or guess.word} {guess.probability:.1%}" for guess in guesses)
            for guesses in self.words
        )

    def as_json(self) -> Any:
        """Return the values that ``predict --json`` prints."""
        if self.score is not None:
            return {"score": self.score}
        if self.label is not None:
            return {
                "label": self.label,
                "probability": self.probability,
                "probabilities": self.probabilities,
            }
        if self.answer is not None:
            return {"answer": self.answer, "probability": self.probability}
        return self.words


def get_single_text(given: Namespace) -> str:
    """Return the text on the command line, for a task that takes only one.

    Raise UsageError if there are several.
    """
    if len(given.text) > 1:
        raise UsageError(f"the task {given.task} takes one text, found {len(given.text)}; put it into quotes")
    text: str = given.text[0]
    return text


def refuse_flags(given: Namespace, names: Iterable[str]) -> None:
    """Raise UsageError if one of these flags is set. The task does not have them.

    names: names of the flags.
    """
    for name in names:
        value = getattr(given, name, None)
        if value is not None and value is not False:  # a flag with the value 0 counts as set
            raise UsageError(f"--{name.replace('_', '-')}: the task {given.task} has no such setting")
