"""MLPerf's log of a run, in the format that the compliance checker of mlperf-logging reads (training
1.0.0).
"""

import logging
from pathlib import Path
from typing import Any

from bertdata.io.json_text import parse_json_text
from trainer.config.printed import resolve_constants
from trainer.config.settings import Config
from trainer.errors import name_missing_extra
from trainer.logs.reporter import Logger, Values, flush_log
from trainer.logs.resumed_lines import Record, drop_later_lines
from trainer.tasks.task import Columns

_BENCHMARK = "bert"
_TARGET_ACCURACY = 0.72
"""MLPerf's target for the accuracy on masked words, used if no other target is configured."""

_KINDS = ("start", "stop")
_PREFIX = ":::MLLOG "


class Mllog(Logger):
    """Logger that appends MLPerf's events to a file, through the package mlperf-logging.

    The event ``epoch_num`` has a number of examples, as in submissions. ``step_num`` has a number of steps,
    as in the reference program. The run's status is success if an evaluation has reached the target,
    otherwise aborted. This trainer does not clear the machine's caches, and ``cache_clear`` says so.
    resume_step: step after which the run resumes. Events of later steps are removed from the file. None: a
    new run.
    """

    def __init__(self, path: Path, config: Config, columns: Columns, resume_step: int | None = None) -> None:
        self._config = config
        self._columns = columns
        target = config.evaluation.target_accuracy
        self._target = (0.0 if config.is_finetuning else _TARGET_ACCURACY) if target is None else target
        self._reached = config.is_finetuning and target is None
        # number of examples and of steps when the current block or evaluation began
        self._trained, self._step = 0, 0
        self._block_examples = 1
        with name_missing_extra("mlperf-logging", "mllog"):
            from mlperf_logging.mllog import mllog
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and path.exists():
            drop_later_lines(path, resume_step, _parse_event, _begins_run, _find_step)
        self._path = path
        self._file = logging.FileHandler(path, encoding="utf-8")
        # Not registered with the root logger, so that no other handler prints the lines of this logger.
        logger = logging.Logger(f"mllog {path}", logging.INFO)
        logger.addHandler(self._file)
        self._mllog = mllog.MLLogger(logger)

    def flush(self) -> None:
        flush_log(self._path)

    def event(self, name: str, value: Any, time: float) -> None:
        subject, _, kind = name.rpartition("_")
        if name == "checkpoint":
            for kind in _KINDS:
                self._write(f"checkpoint_{kind}", None, time, step_num=value)
        elif name == "run_stop":
            self._write(name, None, time, status=value if self._reached else "aborted")
        elif subject == "block":
            numbers = {"first_epoch_num": self._trained, "first_step_num": self._step + 1}
            counts = {"epoch_count": self._block_examples} if kind == "start" else {}
            self._write(name, None, time, **numbers, **counts)
        elif subject == "eval":
            self._write(name, None, time, epoch_num=self._trained, step_num=self._step)
        else:
            self._write(name, None if kind in _KINDS else value, time)

    def plan(self, values: Values, time: float) -> None:
        """Write the events that describe the submitter and the settings of the run."""
        config, unit = self._config, self._config.steps_of_update
        self._trained, self._step = values["trained"], values["step"]
        examples = config.schedule.steps * values["update_examples"]
        self._block_examples = values["interval"] or max(1, examples - self._trained)
        loggers, known = config.loggers, resolve_constants(config)
        warmup = config.find_warmup(config.schedule.steps).updates * unit
        is_lamb = config.update.optimiser.startswith("lamb")
        betas = {f"opt_{'lamb' if is_lamb else 'adamw'}_beta_{one}": known[f"beta{one}"] for one in (1, 2)}
        settings = {
            "submission_benchmark": _BENCHMARK,
            "submission_org": loggers.mllog_org,
            "submission_division": loggers.mllog_division,
            "submission_status": loggers.mllog_status,
            "submission_platform": loggers.mllog_platform,
            "cache_clear": False,
            "seed": config.data.seed,
            "global_batch_size": values["update_examples"] // unit,
            "gradient_accumulation_steps": values["accumulation"],
            "max_sequence_length": values["sequence_length"],
            "max_prediction_per_seq": config.data.max_predictions_per_seq,
            "opt_name": "lamb" if is_lamb else config.update.optimiser,
            "opt_base_learning_rate": config.schedule.base_learning_rate,
            "opt_epsilon": known["optimiser_epsilon"],
            "opt_weight_decay": known["weight_decay"],
            **betas,
            "opt_learning_rate_warmup_steps": warmup,
            "num_warmup_steps": warmup,
            "start_warmup_step": config.formula.start_warmup_step * unit,
            "opt_learning_rate_training_steps": config.schedule.steps * unit,
            "train_samples": examples,
            "eval_samples": values["eval_examples"],
        }
        if is_lamb:
            settings["opt_lamb_weight_decay_rate"] = known["weight_decay"]
            settings["opt_lamb_epsilon"] = known["optimiser_epsilon"]
        if "power" in known:
            settings["opt_lamb_learning_rate_decay_poly_power"] = known["power"]
        for name, value in settings.items():
            self._write(name, value, time)

    def reach(self, step: int, trained: int, time: float) -> None:
        self._step, self._trained = step, trained

    def evaluation(self, values: Values, text: str, time: float) -> None:
        accuracy = values[self._columns.target]
        self._reached = self._reached or accuracy >= self._target * self._columns.whole
        place = {"epoch_num": values["trained"], "step_num": values["step"]}
        self._write("eval_accuracy", accuracy, time, **place)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._file.close()

    def _write(self, key: str, value: Any, time: float, **metadata: Any) -> None:
        kind = key.rpartition("_")[2] if value is None else ""
        write = {"start": self._mllog.start, "stop": self._mllog.end}.get(kind, self._mllog.event)
        write(key=key, value=value, metadata=metadata, time_ms=int(time * 1000))


def _parse_event(line: str) -> Record:
    """Return the event of a line of the file, or {} for a line that another program wrote."""
    try:
        record = parse_json_text(line.removeprefix(_PREFIX)) if line.startswith(_PREFIX) else None
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("metadata"), dict) else {}


def _begins_run(record: Record) -> bool:
    """Return True for the event that begins the first block of a run at step 0."""
    return record.get("key") == "block_start" and record["metadata"].get("first_step_num") == 1


def _find_step(record: Record) -> int | None:
    """Return the step that an event reports for an evaluation, a checkpoint or the start of a block, or
    None.
    """
    metadata = record.get("metadata", {})
    step = metadata.get("step_num", metadata.get("first_step_num"))
    return step if isinstance(step, int) and not isinstance(step, bool) else None
