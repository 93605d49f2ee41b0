"""Evaluation by all workers together. Each example is measured exactly once."""

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.io import storage
from trainer.checkpoints.checkpoint import State
from trainer.data.cache.shard_cache import ShardCache
from trainer.data.evaluation import load_evaluation_batches, make_evaluation_form
from trainer.errors import StopRequested
from trainer.logs.evaluation_results import is_evaluated, read_evaluated_value
from trainer.logs.reporter import Reporter
from trainer.run.planned_updates import PlannedUpdates, crosses_multiple
from trainer.run.processor_threads import suit_threads
from trainer.run.strategies import find_inference
from trainer.tasks.evaluation import TaskEvaluation
from trainer.update.inference import Inference
from trainer.update.strategy import Strategy
from trainer.update.worker import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRecord:
    """Results of an evaluation.

    step: number of the update after which the model was evaluated.
    trained: number of examples that the model was trained on by then.
    examples: number of examples that were evaluated.
    text: the results as one line for people.
    """

    step: int
    trained: int
    examples: int
    results: dict[str, float]
    text: str

    def values(self) -> dict[str, Any]:
        """Return step, examples and results by name, in the order of evaluation.csv's columns."""
        return {"step": self.step, "trained": self.trained, "examples": self.examples, **self.results}


class Evaluation:
    """The evaluation of the configured task on one dataset, which all workers do together."""

    def __init__(
        self, runtime: Runtime, data: OpenedDataset, evaluation: TaskEvaluation, folder: str | None = None
    ) -> None:
        """Prepare the evaluation.

        data: the dataset with the right answers.
        evaluation: the task's measures.
        folder: directory for the task's result files. None: output_dir.
        """
        self._runtime, self.data, self._evaluation = runtime, data, evaluation
        self._folder = str(runtime.config.run.output_dir) if folder is None else folder
        self.note = evaluation.note
        if self.note:
            runtime.log(self.note)

    @classmethod
    def of(cls, runtime: Runtime, data: OpenedDataset, training: OpenedDataset | None = None) -> "Evaluation":
        """Return the task's evaluation on a dataset that has the right answers.

        training: the training set, or None if it is not known. The number of examples with each label in it
        gives the score of a baseline that always guesses the most frequent label.
        """
        survey = runtime.on_rank_0(lambda: runtime.task.survey(training or data))
        return cls(runtime, data, runtime.task.evaluation(data, survey, training))

    @property
    def examples(self) -> int:
        """The number of examples that are evaluated."""
        return min(self.data.examples, self._runtime.config.evaluation.eval_examples or self.data.examples)

    def keep_copies(self) -> AbstractContextManager[None]:
        """Return a context manager that keeps copies of remote data in the cache, if one is configured.

        All evaluations read the same files. Without this, training would drop the copies first.
        """
        copies = self.data.copies
        return copies.keep_all() if isinstance(copies, ShardCache) else nullcontext()

    def measure(self, strategy: Strategy | Inference, *, step: int, trained: int) -> EvaluationRecord:
        """Evaluate the model on this worker's part of the data, and return the results of all workers
        together.

        strategy: computes the model's outputs.
        step: number of the last update.
        trained: number of examples that the model was trained on.
        Raises StopRequested on every worker if a signal asks to stop. An evaluation that was stopped has no
        results.
        """
        config, device, workers = self._runtime.config, self._runtime.device, self._runtime.collective
        share, keys = self._runtime.model_share, config.evaluation
        examples = self.examples
        batch_size = keys.eval_batch_size or config.update.batch_size or 32
        form = make_evaluation_form(
            self.data,
            batch_size=batch_size,
            padded=self._runtime.has_rows,
            token_budget=config.data.token_budget,
            multiple=config.update.token_multiple,
        )
        batches = load_evaluation_batches(
            self.data,
            form=form,
            batch_size=batch_size,
            workers=share.copies,
            rank=share.copy,
            limit=examples,
        )
        names = (*self._runtime.task.metrics, *self._evaluation.metrics)
        sums = [torch.zeros(2 * len(names))]
        self._evaluation.begin()
        # A request to stop only ends the loop here, so that the device's context closes normally. The check
        # after the loop raises StopRequested again.
        inference = find_inference(strategy.worker, strategy) if isinstance(strategy, Strategy) else strategy
        threads = suit_threads(device, inference.shape, batch_size, self.data.layout.max_seq_length)
        with threads, inference.evaluating() as measure, suppress(StopRequested):
            for batch in batches:
                workers.stopping.check(exchanges=inference.exchanges)
                found = measure(batch)
                if not share.is_last_stage:
                    # all stages of a divided model get this batch, but only the last stage counts its results
                    continue
                of_model = device.to_host(found.sums).float()
                sums.append(torch.cat([of_model, self._evaluation.host_sums(batch)]))
                if found.outputs is not None:
                    self._evaluation.add(batch, device.to_host(found.outputs).float())
        workers.stopping.check(exchanges=True)
        # Add the ranks' sums in Python floats, which have 64 bits whatever the device is. All workers add in
        # the order of the ranks, so all get the same bits.
        of_ranks = workers.gather(torch.stack(sums).double().sum(0).tolist())
        totals = [sum(column) for column in zip(*of_ranks, strict=True)]
        pairs = zip(totals[::2], totals[1::2], strict=True)
        # If the model is divided, only the workers of the last stage have results. They have the highest
        # ranks.
        kept = workers.gather(self._evaluation.kept())[-share.copies :]
        results = self._evaluation.results(dict(zip(names, pairs, strict=True)), kept)
        self._write_files()
        return EvaluationRecord(
            step=step,
            trained=trained,
            examples=examples,
            results=results,
            text=self._evaluation.describe(results),
        )

    def evaluate(self, strategy: Strategy, state: State, report: Reporter) -> EvaluationRecord:
        """Evaluate the model after its newest update, log the results, and return them."""
        report.describe(evaluation=self.note)
        report.begin_evaluation(state.step, state.trained)
        record = self.measure(strategy, step=state.step, trained=state.trained)
        report.evaluation(record.values(), record.text)
        return record

    def is_evaluation_missing(self, state: State, planned: PlannedUpdates) -> bool:
        """Return True if the resumed checkpoint should have been evaluated but was not.

        This happens if the run was killed, or failed, after it had saved the checkpoint and before it had
        evaluated it.
        """
        is_last = state.step == self._runtime.config.schedule.steps
        if not is_last and not crosses_multiple(
            planned.interval, state.trained - planned.count_examples(state.step - 1), state.trained
        ):
            return False
        folder = str(self._runtime.config.run.output_dir)
        evaluated: bool = self._runtime.on_rank_0(lambda: is_evaluated(folder, state.logged_step))
        return not evaluated

    def has_reached_target(self, state: State) -> bool:
        """Return True if the resumed checkpoint was evaluated already and reached the target accuracy."""
        columns = self._runtime.task.columns
        target = self._runtime.config.evaluation.target_accuracy
        if target is None:
            return False
        folder = str(self._runtime.config.run.output_dir)
        found: float | None = self._runtime.on_rank_0(
            lambda: read_evaluated_value(folder, state.logged_step, columns.target)
        )
        return found is not None and found >= target * columns.whole

    def _write_files(self) -> None:
        """Write the files with the task's results, on rank 0 only."""
        files = self._evaluation.files()
        if self._runtime.collective.rank == 0 and files:
            storage.make_directory(self._folder)
            for name, text in files.items():
                with storage.open_output(storage.join(self._folder, name)) as file:
                    file.write(text.encode())

    def reaches_target(self, record: EvaluationRecord) -> bool:
        """Return True if the results reach the configured target accuracy, and False if none is
        configured.
        """
        columns = self._runtime.task.columns
        target = self._runtime.config.evaluation.target_accuracy
        return target is not None and record.results[columns.target] >= target * columns.whole
