"""Evaluation over all workers, each example once."""

from contextlib import suppress

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.io import storage
from trainer.data.evaluation import evaluation_batches
from trainer.errors import StopRequested
from trainer.model.evaluation import TaskEvaluation
from trainer.report.log_records import EvaluationRecord
from trainer.run.runtime import Runtime
from trainer.strategies.strategy import Inference, Strategy


class Evaluation:
    """The task's evaluation on one dataset, over all workers."""

    def __init__(
        self, runtime: Runtime, data: OpenedDataset, evaluation: TaskEvaluation, folder: str | None = None
    ) -> None:
        """folder: of the task's files; None: output_dir."""
        self._runtime, self._data, self._evaluation = runtime, data, evaluation
        self._folder = str(runtime.config.run.output_dir) if folder is None else folder
        if evaluation.note:
            runtime.log(evaluation.note)

    @classmethod
    def of(cls, runtime: Runtime, data: OpenedDataset, training: OpenedDataset | None = None) -> "Evaluation":
        """The evaluation on a dataset with answers; training: the training set, where there is one."""
        survey = runtime.share(lambda: runtime.task.survey(training or data))
        return cls(runtime, data, runtime.task.evaluation(data, survey, training))

    def measure(self, strategy: Strategy | Inference, *, step: int, trained: int) -> EvaluationRecord:
        """The results over all workers' shares, each example once. StopRequested abandons it."""
        config, device, workers = self._runtime.config, self._runtime.device, self._runtime.workers
        division = self._runtime.division
        examples = min(self._data.examples, config.run.eval_examples or self._data.examples)
        batch_size = config.run.eval_batch_size or config.update.batch_size or 32
        batches = evaluation_batches(
            self._data,
            form=self._runtime.evaluation_form(self._data, batch_size),
            batch_size=batch_size,
            workers=division.copies,
            rank=division.copy,
            limit=examples,
        )
        names = (*self._runtime.task.metrics, *self._evaluation.metrics)
        sums = [torch.zeros(2 * len(names))]
        self._evaluation.begin()
        # A second check, below, raises StopRequested again, outside of the device's context.
        inference = strategy if isinstance(strategy, Inference) else strategy.inference
        with strategy.evaluating() as measure, suppress(StopRequested):
            for batch in batches:
                workers.stopping.check(exchanges=inference.exchanges)
                found = measure(batch)
                if not division.is_last_stage:
                    continue  # the batch counts once
                of_model = device.to_host(found.sums).float()
                sums.append(torch.cat([of_model, self._evaluation.host_sums(batch)]))
                if found.outputs is not None:
                    self._evaluation.add(batch, device.to_host(found.outputs).float())
        workers.stopping.check(exchanges=True)
        totals = workers.sum_numbers(torch.stack(sums).double().sum(0).tolist())
        pairs = zip(totals[::2], totals[1::2], strict=True)
        kept = workers.gather(self._evaluation.kept())[-division.copies :]  # the last stage's
        results = self._evaluation.results(dict(zip(names, pairs, strict=True)), kept)
        self._write_files()
        return EvaluationRecord(
            step=step,
            trained=trained,
            examples=examples,
            results=results,
            text=self._evaluation.describe(results),
        )

    def _write_files(self) -> None:
        """Write the task's files, on rank 0."""
        files = self._evaluation.files()
        if self._runtime.workers.rank == 0 and files:
            storage.make_directory(self._folder)
            for name, text in files.items():
                with storage.open_output(storage.join(self._folder, name)) as file:
                    file.write(text.encode())

    def reached(self, record: EvaluationRecord) -> bool:
        """True if there is a target accuracy and the record reaches it."""
        target, columns = self._runtime.config.run.target_accuracy, self._runtime.task.columns
        return target is not None and record.results[columns.target] >= target * columns.whole
