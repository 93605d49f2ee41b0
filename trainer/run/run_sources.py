"""What a run is trained on and started from: the records that its checkpoints name and its directory keeps.

A checkpoint's state names the manifests of the run's datasets, and the record of the checkpoint that the run
started from, by md5. The run's directory keeps copies of them in the folder ``sources/``, with the md5 as the
name. So ``bertdata lineage`` can follow the steps from the model back to the dump after the data have moved.

Another program's weights may lie without their model file and tokeniser. Then the state also has the md5s of
the files that ``--model-config`` and ``--vocab`` named, as lineage.json has those of an export.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from bertdata import __version__
from bertdata.dataset.reader import OpenedDataset
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.lineages.documents import SOURCES, RecordDocuments, add_manifest
from bertdata.lineages.flag_files import make_input_json, make_model_input, make_tokenizer_input
from bertdata.lineages.run_state import EVAL_DATA, FROM_PHASE_1, FROM_WEIGHTS, START, TRAIN_DATA
from bertdata.lineages.step import Input
from trainer.checkpoints.checkpoint import State
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.records import add_checkpoint_record, find_run_directory
from trainer.checkpoints.resume_check import find_changed_settings
from trainer.checkpoints.source import find_trainer_checkpoint
from trainer.run.training_state import Training
from trainer.update.worker import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSources:
    """The records that a run keeps in its directory.

    texts: the records by their md5.
    """

    texts: Mapping[str, str]

    def write(self, output_dir: str) -> None:
        """Write the records to the folder ``sources/`` of the run's directory. Existing ones are kept."""
        folder = storage.join(output_dir, SOURCES)
        if self.texts:
            storage.make_directory(folder)
        for md5, text in self.texts.items():
            path = storage.join(folder, f"{md5}.json")
            if storage.read_if_present(path) != text.encode():
                with storage.open_output(path) as file:
                    file.write(text.encode())


def note_sources(training: Training, data: OpenedDataset, held_out: OpenedDataset | None) -> RunSources:
    """Note in the training's state what it is trained on and started from. Return the records to keep.

    All workers call this. Rank 0 reads the manifests, so that all workers have the same state.
    data: the training data.
    held_out: the evaluation data, or None.
    """
    runtime = training.runtime
    noted, texts = runtime.on_rank_0(lambda: _collect(training, data, held_out))
    training.state = replace(training.state, **noted)
    return RunSources(texts=texts)


def _collect(
    training: Training, data: OpenedDataset, held_out: OpenedDataset | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of the state that say where the run comes from, and the records to keep by md5."""
    state, runtime = training.state, training.runtime
    documents = RecordDocuments()
    sources = {TRAIN_DATA: _add_manifests(data, documents)}
    if held_out is not None:
        sources[EVAL_DATA] = _add_manifests(held_out, documents)
    kind, path = training.start_kind, training.start_path
    noted: dict[str, Any] = {"started": kind, "history": []}
    if kind in (FROM_WEIGHTS, FROM_PHASE_1):
        sources[START] = [add_checkpoint_record(path, documents)]
        # A checkpoint of this trainer says itself what model it is. A resumed run keeps the inputs in its
        # state, which are those of its first start.
        if find_trainer_checkpoint(path) is None:
            noted["inputs"] = [make_input_json(one) for one in _list_flag_inputs(runtime, documents)]
    elif training.is_resumed:
        # Its start is that of the first run of the phase, whose records lie with the checkpoint.
        documents.add_directory(str(find_run_directory(Path(path))))
        noted["started"] = state.started
        if state.sources is not None and START in state.sources:
            sources[START] = state.sources[START]
        noted["history"] = _continue_history(read_state(Path(path)), runtime)
    noted |= {"sources": sources, **_describe_machine(runtime)}
    return noted, documents.as_texts()


def _list_flag_inputs(runtime: Runtime, documents: RecordDocuments) -> Iterator[Input]:
    """Yield what --vocab and --model-config named for another program's weights, with the md5s of the files.

    documents: the records of the run, to which the manifest of the vocabulary is added.
    """
    config = runtime.config
    vocab = runtime.task_vocab
    # Pre-training reads the flag's vocabulary only to draw masks.
    if not config.is_finetuning and "vocab" not in config.masking.list_idle_keys():
        vocab = config.masking.vocab
    if vocab is not None:
        yield make_tokenizer_input(vocab, documents)
    if config.model.model_config is not None:
        yield make_model_input(config.model.model_config)


def _describe_machine(runtime: Runtime) -> dict[str, Any]:
    """Return the fields of the state about programs and machine, on which the last bits may depend."""
    is_processor = runtime.device.torch_device.type == "cpu"
    return {
        "versions": (f"bertdata {__version__}", f"torch {torch.__version__}"),
        "workers": runtime.collective.size,
        "threads": torch.get_num_threads() if is_processor else 0,
    }


def _continue_history(saved: State, runtime: Runtime) -> list[dict[str, Any]]:
    """Return the history of a resumed run: for each earlier part what was different, up to which update.

    A part that nothing distinguishes from the next one gets no entry, because its updates are the same.
    saved: the state of the checkpoint to resume from.
    """
    now = _describe_machine(runtime)
    changed: dict[str, Any] = {}
    if settings := find_changed_settings(saved, runtime.config):
        changed["settings"] = settings
    for name in ("versions", "workers", "threads"):
        before = getattr(saved, name)
        if before and _list_values(before) != _list_values(now[name]):
            changed[name] = before
    return [*saved.history, {"until": saved.step, **changed}] if changed else list(saved.history)


def _list_values(value: Any) -> Any:
    """Return a tuple as a list, and any other value unchanged, as JSON stores it."""
    return list(value) if isinstance(value, tuple) else value


def _add_manifests(data: OpenedDataset, documents: RecordDocuments) -> list[str]:
    """Add the manifests of a dataset's directories to the documents. Return their md5s, in reading order.

    Files without a manifest, which the user has accepted by --unverified, are left out.
    """
    directories = dict.fromkeys(storage.get_parent(one.path) for one in data.shards if one.md5 is not None)
    found = []
    for directory in directories:
        if storage.exists(storage.join(directory, MANIFEST_NAME)):
            found.append(add_manifest(directory, documents))
    return found
