"""What the command predict asks a task for: the opened model, and the words of the command line."""

from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertdata.errors import DataError, UsageError
from bertdata.io.terminal import say_error
from bertdata.records import Vocabulary
from bertdata.tokens.tokenizer import Tokenizer
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.trained_length import length_warnings

if TYPE_CHECKING:
    from trainer.model.headed import HeadedBert
    from trainer.tasks.classification.head_labels import HeadLabels


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """A checkpoint, its tensors not read yet, and the tokeniser that its model was trained with.

    source: the path that was given. fill_from: fills a model from the checkpoint and returns the names of
    the weights that the checkpoint lacks. longest: ids of the longest sequence that the model was trained on;
    None: not known. lower_case: of a vocabulary; None: a tokenizer.json says itself
    how text is read. config: the task that a run of this trainer has learned, with the settings of its
    features, or that another program's head tells; the rest are defaults. head: what a classification's
    head has learned, if there is one.
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
        """Fill the model from the checkpoint. DataError that says ``missing`` where that lacks the head."""
        if any(name.startswith(head) for name in self.fill_from(model)):
            raise DataError(f"{self.source}: {missing}")

    def warn_of_length(self, ids: int) -> None:
        """Print a warning where a sequence is longer than those that the model was trained on."""
        for warning in length_warnings("the text", ids, self.source, self.longest):
            say_error(f"trainer: warning: {warning}")


def single_text(given: Namespace) -> str:
    """The text of a task that takes only one."""
    if len(given.text) > 1:
        raise UsageError(f"the task {given.task} takes one text, found {len(given.text)}; put it into quotes")
    text: str = given.text[0]
    return text


def refuse(given: Namespace, names: Iterable[str]) -> None:
    """UsageError for a flag that the task does not have."""
    for name in names:
        value = getattr(given, name, None)
        if value is not None and value is not False:  # 0 is a value
            raise UsageError(f"--{name.replace('_', '-')}: the task {given.task} has no such setting")
