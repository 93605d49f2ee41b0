"""The model together with its loss, as one module."""

from collections.abc import Callable
from typing import Any

from torch import nn

from trainer.data.batches import Batch
from trainer.model.compiled_parts import CompilePart, compile_encoder
from trainer.model.headed import HeadedBert
from trainer.model.layers import EncoderOutput, LayerOutput
from trainer.tasks.task import Outcome
from trainer.update.worker import Worker


class ResumedModel:
    """Stand-in for the model that a task calls if the first layers have already run.

    It does not start at the embeddings, but continues with the tensors that the last of these layers has
    returned.
    """

    def __init__(self, model: HeadedBert, carried: LayerOutput | None) -> None:
        self.training = model.training
        self._model, self._carried = model, carried

    def __call__(self, batch: Batch, /) -> Any:
        return self._model(batch, self._carried)


class Learner(nn.Module):
    """The model together with its loss as one module.

    It can be compiled as a whole, or by its parts: the embeddings, the layers, and the heads with the loss.
    """

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.model = worker.model
        self._task = worker.task
        self._is_split = worker.model_share.is_split
        self._compiled_end: Callable[[Batch, EncoderOutput], Outcome] | None = None

    def forward(self, batch: Batch) -> Outcome:
        if self._compiled_end is None:
            return self._task.outcome(self.model, batch)
        return self._compiled_end(batch, self.model.bert.encode_seeded(batch))

    def compile_parts(self, compile_part: CompilePart) -> None:
        """Compile the parts of the model.

        The heads of a divided model are not compiled. FSDP2 gathers their weights when the whole model is
        called, and the last stage of a pipeline calls the heads itself.
        compile_part: function that takes a function and returns it compiled.
        """
        compile_encoder(self.model.bert, compile_part)
        if not self._is_split:
            self._compiled_end = compile_part(self._compute_end)

    def _compute_end(self, batch: Batch, encoded: EncoderOutput) -> Outcome:
        """Return the outcome of a batch whose layers have run.

        encoded: output of the last layer.
        """
        return self._task.outcome(ResumedModel(self.model, encoded), batch)
