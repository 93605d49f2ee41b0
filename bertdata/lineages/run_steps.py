"""Steps that trained a model: the state of a checkpoint becomes a step, with data and start as its inputs.

A state names the manifests of its datasets by md5. States of earlier versions do not. Their datasets are then
looked for where the configuration says that they were, and the digest of the shards in the state decides
whether they are the same. Only directories on this machine and in the run itself are looked into. A store may
be slow, closed to the reader, or someone else's by now.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bertdata.dataset.discover import find_datasets
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.mixture.weights import split_paths
from bertdata.errors import BertDataError, ManifestError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.lineages.documents import RecordDocuments, add_manifest
from bertdata.lineages.exported_model import LINEAGE_NAME
from bertdata.lineages.recorded_inputs import check_flag_inputs, make_file_input
from bertdata.lineages.run_state import EVAL_DATA, START, TRAIN_DATA, parse_run_state
from bertdata.lineages.step import EXPORT, FINETUNE, PRETRAIN, Input, LineageFile, Step
from bertdata.lineages.weights_record import make_weights_input

Follow = Callable[[bytes, str], Step]
"""Function that returns the step of a record, whose arguments are the record and its path."""

_ROLES = {TRAIN_DATA: "training data", EVAL_DATA: "evaluation data"}
"""The role of each configuration key that names datasets."""


def make_run_step(
    data: bytes, where: str, documents: RecordDocuments, follow: Follow, directory: str = "", run: str = ""
) -> Step:
    """Return the step that wrote a checkpoint, with all steps before it.

    data: the checkpoint's state.
    where: path of the state, for error messages.
    documents: the records that are at hand. Manifests of data that are still in place are added.
    directory: the checkpoint's directory. Empty if only a copy of its state is at hand.
    run: the run's directory. Empty if it is not known.

    Raises ManifestError if the state cannot be read.
    """
    state = parse_run_state(data, where)
    # Earlier versions did not record the flags.
    named = state.get("inputs", ())
    check_flag_inputs(named, where)
    config = state["config"]
    is_named = state.get("sources") is not None
    if not is_named and _is_converted(state):
        return _make_conversion_step(data, state, directory)
    if not is_named:
        state["sources"] = {key: _find_data_in_place(state, key, documents, run) for key in _ROLES}
    inputs = [
        one for key in _ROLES for one in _make_data_inputs(state, key, documents, follow, is_named, run)
    ]
    inputs += _make_start_inputs(state, documents, follow, is_named)
    inputs += [make_file_input(entry, documents, follow) for entry in named]
    step, phase = state.get("step", 0), state.get("phase", 1)
    facts: dict[str, Any] = {"updates": step, "phase": phase, "checkpoint": _find_number(state)}
    for name in ("started", "workers", "threads", "trained", "best", "history"):
        if state.get(name):
            facts[name] = state[name]
    if unchecked := len(state.get("unchecked_files", ())):
        facts["data files not compared with their md5s"] = unchecked
    is_pretraining = config.get("task", "pretraining") == "pretraining"
    return Step(
        name=PRETRAIN if is_pretraining else FINETUNE,
        path=directory,
        record=compute_md5(data),
        settings={**config, "model": state.get("model", {})},
        versions=dict(_split_versions(state)),
        inputs=tuple(inputs),
        outputs=tuple(LineageFile(name=name, md5=md5) for name, md5 in state["files"].items()),
        facts=facts,
    )


def _is_converted(state: Mapping[str, Any]) -> bool:
    """Return True for a state without any trace of training data, as the trainer's ``convert`` writes it.

    A run stores at least the digest of its data, or that it generated them.
    """
    config = state["config"]
    return not (state.get("data") or config.get("train_data") or config.get("generated_data"))


def _make_conversion_step(data: bytes, state: Mapping[str, Any], directory: str) -> Step:
    """Return the step that converted a checkpoint to this trainer's format, from its state alone.

    Nothing is known about the checkpoint that was converted: its name and md5s are in the file lineage.json,
    which is missing, or which an earlier version did not write.
    """
    remark = f"the converted checkpoint is not known: no {LINEAGE_NAME} names it"
    return Step(
        name=EXPORT,
        path=directory,
        record=compute_md5(data),
        settings={"model": state.get("model", {})},
        versions=dict(_split_versions(state)),
        inputs=(Input(role="checkpoint", remark=remark),),
        outputs=tuple(LineageFile(name=name, md5=md5) for name, md5 in state["files"].items()),
        facts={"updates": state.get("step", 0)},
    )


def _split_versions(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the version of each package that a state lists, such as ("torch", "2.9.1")."""
    for told in state.get("versions", ()):
        name, _, version = str(told).partition(" ")
        yield name, version


def _find_number(state: Mapping[str, Any]) -> int:
    """Return the number in the checkpoint's name: its steps over both phases."""
    per_update = int(state["config"].get("steps_per_update") or 1)
    return int(state.get("phase_start", 0)) + int(state.get("step", 0)) * per_update


def _make_data_inputs(
    state: Mapping[str, Any],
    key: str,
    documents: RecordDocuments,
    follow: Follow,
    is_named: bool,
    run: str,
) -> Iterator[Input]:
    """Yield the datasets that a configuration key names, each with the step that made it.

    is_named: True if the state itself names the manifests. False if they were found in place.
    run: the run's directory. Empty if it is not known.
    """
    config, role = state["config"], _ROLES[key]
    if key == TRAIN_DATA and config.get("generated_data"):
        yield Input(role=role, remark="random examples that the trainer generated (generated_data)")
        return
    if not config.get(key):
        if key == TRAIN_DATA and state.get("data"):
            yield Input(
                role=role, remark=f"the settings name no data; digest of their shards {state['data']}"
            )
        return
    records = state["sources"].get(key, [])
    if not records:
        reason = "had no manifest when the run began"
        if not is_named:
            reason = _explain_unknown_data(str(config[key]), run)
        digest = (
            f"; digest of their shards {state['data']}" if key == TRAIN_DATA and state.get("data") else ""
        )
        yield Input(role=role, remark=f"the data {config[key]} {reason}{digest}")
    for record in records:
        yield _follow_record(role, record, "the dataset's manifest", documents, follow)


def _make_start_inputs(
    state: Mapping[str, Any], documents: RecordDocuments, follow: Follow, is_named: bool
) -> Iterator[Input]:
    """Yield the checkpoint whose weights the phase started from, if there is one."""
    config = state["config"]
    for record in state["sources"].get(START, ()):
        data = documents.find(record)
        found = None if data is None else make_weights_input(data, record)
        yield found or _follow_record(
            START, record, "the record of the checkpoint that the run started from", documents, follow
        )
    if is_named:
        return
    if config.get("phase2") or config.get("start_from_ckpt"):
        told = config.get("start_from_ckpt") or "the end of phase 1"
        yield Input(role=START, remark=f"started from {told}; an earlier version did not record its digest")


def _follow_record(role: str, record: str, what: str, documents: RecordDocuments, follow: Follow) -> Input:
    """Return an input whose record is cited, with the step that wrote it if the record is at hand."""
    data = documents.find(record)
    if data is None:
        remark, is_fault = documents.explain_absence(record, what)
        return Input(role=role, record=record, remark=remark, is_fault=is_fault)
    try:
        step = follow(data, documents.paths[record] or what)
    except ManifestError as error:
        return Input(role=role, record=record, remark=str(error), is_fault=True)
    return Input(role=role, files=step.outputs, record=record, made_by=step)


def _find_data_in_place(
    state: Mapping[str, Any], key: str, documents: RecordDocuments, run: str
) -> list[str]:
    """Return the md5s of the manifests of the datasets that a key names, if they are still in place.

    Training data count only if their shards have the digest in the state. The manifests are added to the
    documents. The result is empty if a dataset is missing, has no manifest or has changed, and also if it is
    at a URL outside of the run, which is not opened.
    run: the run's directory, in which the features of a fine-tuned run are looked for too.
    """
    paths, config = state["config"].get(key), state["config"]
    if not isinstance(paths, str) or _are_elsewhere(paths, run):
        return []
    try:
        found = [_find_features(path, run) for path in split_paths(paths)]
        if key == TRAIN_DATA and found == split_paths(paths):
            digest = open_weighted(paths, unverified=bool(config.get("unverified")), split="training").digest
            if digest != state.get("data"):
                return []
        directories = [dataset.path for path in found for dataset in find_datasets(path)]
        return [add_manifest(directory, documents) for directory in directories]
    except BertDataError:
        return []


def _are_elsewhere(paths: str, run: str) -> bool:
    """Return True if one of a key's paths is a URL outside of the run's directory.

    The paths are split without asking a store which of them exist, as ``split_paths`` does.
    """
    inside = storage.join(run, "") if run else None
    found = (path.strip() for path in re.split("[,+]", paths))
    return any(storage.is_remote(path) and not (inside and path.startswith(inside)) for path in found)


def _explain_unknown_data(paths: str, run: str) -> str:
    """Return why the data of a state that names no manifests are not known."""
    if _are_elsewhere(paths, run):
        return "are not known: an earlier version did not record their manifests, and URLs are not opened"
    return "are no longer in place, or changed"


def _find_features(path: str, run: str) -> str:
    """Return the path of features in the run's directory, if ``path`` names them from another directory."""
    own = storage.join(storage.join(run, "features"), storage.get_base_name(path)) if run else path
    return own if "/features/" in path and not storage.exists(path) and storage.exists(own) else path
