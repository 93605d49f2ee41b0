"""Converting checkpoints between this trainer's format and other programs'."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from bertdata.errors import BertDataError, DatasetError, MissingInputError, SettingsError, StorageError
from bertdata.io import storage
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.terminal import say_error
from bertdata.io.whole_directory import open_directory
from bertdata.lineages.exported_model import LINEAGE_NAME
from bertdata.tokens.files import TokenizerFile, TokenizerJson
from bertdata.tokens.kept_files import CONFIGURATION_NAME, make_tokenizer_files
from bertdata.tokens.load import vocabulary_of
from trainer.checkpoints.any_checkpoint import HEADS, OURS, Checkpoint, StoredTensor
from trainer.checkpoints.checkpoint import MOMENTS, STATE, WEIGHTS, make_initial_state, write_checkpoint
from trainer.checkpoints.filling import match_moments, match_weights
from trainer.checkpoints.formats.absent_parts import describe_changes
from trainer.checkpoints.formats.config_file import BERT_EPSILON
from trainer.checkpoints.formats.conversion_record import make_conversion_record
from trainer.checkpoints.formats.huggingface_tokenizer import export_tokenizer, set_special_token_ids
from trainer.checkpoints.formats.kinds import WRITERS, is_recognised
from trainer.checkpoints.formats.model_card import write_model_card
from trainer.checkpoints.formats.tensorflow2 import write_tensors_and_graph
from trainer.checkpoints.learned_task import make_learned_task_config, read_run_labels
from trainer.checkpoints.source import find_trainer_checkpoint, open_checkpoint
from trainer.checkpoints.tokenizer import find_tokenizer
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig
from trainer.config.settings import Config
from trainer.data.named_tokenizer import find_vocabulary_warnings
from trainer.model.bert import PAIR_HEAD, WORD_HEAD
from trainer.model.headed import BertForMaskedLM, BertForPreTraining, HeadedBert
from trainer.tasks.choice import find_task_class
from trainer.tasks.task import Task

_REMEDY = "give --vocab, and --train-data where the data has moved"
_ANSWER_OUTPUTS = 2  # rows of SQuAD's head: start and end of the answer
_MOST_LABELS = 1 << 24  # most rows of a classification head, since a damaged file may claim any number
_PROGRAMS = {"tf1": "TensorFlow 1's", "tf2": "TensorFlow 2's", "nvidia": "NVIDIA's"}


def convert(
    source: str,
    target: str,
    *,
    kind: str | None = None,
    to: str | None = None,
    model_config: str | None = None,
    vocab: str | None = None,
    train_data: str | None = None,
    lower_case: bool | None = None,
    moments: bool = True,
    task: str | None = None,
    overwrite: bool = False,
) -> str:
    """Convert a checkpoint of any program to another format. Return a message that says what was written.

    The tokeniser is converted too. The first tokeniser that exists is taken, in this order: ``vocab``, the
    tokeniser next to the weights or in the run's directory, the training data's copy, or a known vocabulary
    with the same md5.

    source: a checkpoint, or a run, which means the run's newest checkpoint.
    target: directory to write, or its URL. Files for a URL are first written in TMPDIR.
    kind: the source's format, or None to recognise it from its files.
    to: format to write. None: Hugging Face's for checkpoints of this trainer, this trainer's for all others.
    model_config: model file, if there is none next to the weights.
    vocab: a vocabulary or its name, a tokenizer.json, or a model's directory.
    train_data: where the training data is now. None: where it was during training.
    lower_case: whether the tokeniser of a vocabulary lower-cases text. None: as for the training data.
    moments: False leaves out the optimiser's moments.
    task: the user's task class that the run has learned. It must be named here, because no checkpoint may
    choose code to import.
    overwrite: replace the files of an earlier conversion. A directory with other files is refused.
    """
    # 1. Refuse a target that is an input or in use, and a source that is not a checkpoint.
    refuse_input_as_output(target, [source, model_config, vocab, train_data])
    if not overwrite and _is_in_use(target):
        raise DatasetError(
            f"{target}: is in use; give --overwrite to replace an earlier conversion, or name a directory "
            "that does not exist yet"
        )
    if not Path(source).exists() and not is_recognised(source):
        raise MissingInputError(f"{source}: no such file or directory")
    if kind is None and find_trainer_checkpoint(source) is None and not is_recognised(source):
        others = "a TensorFlow index, a .pt file nor model.safetensors"
        raise MissingInputError(f"{source}: holds neither {STATE} (a checkpoint) nor config.json, {others}")
    # 2. Open the source under this trainer's names. No tensor is read until it is written.
    checkpoint = open_checkpoint(source, kind, model_config, with_moments=moments)
    warnings = (*checkpoint.warnings, *find_vocabulary_warnings(vocab))
    if checkpoint.choice:
        say_error(f"trainer: {checkpoint.choice}")
    say_error(*(f"trainer: warning: {warning}" for warning in warnings))
    if not moments:
        checkpoint = replace(checkpoint, moments={})
    shape = checkpoint.expect_config()
    to = to or ("huggingface" if checkpoint.kind == OURS else OURS)
    make_record = partial(
        make_conversion_record,
        checkpoint,
        to,
        kind=kind,
        moments=moments,
        lower_case=lower_case,
        vocab=vocab,
        model_config=model_config,
        train_data=train_data,
    )
    # 3. If the target is a checkpoint of this trainer, add missing heads. The tokeniser may be missing.
    if to == OURS:
        found = _find_available_tokenizer(checkpoint, shape, vocab, train_data, lower_case)
        record = make_record()
        return _write_trainer_checkpoint(checkpoint, shape, target, found, record)
    # 4. For all other formats, keep only tensors that belong to the model, let the task rename its head, and
    # write.
    found = find_tokenizer(checkpoint, shape, vocab, train_data, lower_case)
    checkpoint = _keep_model_tensors(checkpoint, shape)
    if (learned := _find_task(checkpoint, task)) is not None:
        weights = learned.exported(checkpoint.weights, to)
        checkpoint = replace(checkpoint, weights=weights, architecture=learned.architecture)
    if found is not None and to == "huggingface":
        checkpoint = set_special_token_ids(checkpoint, found)
    what = "weights" if checkpoint.updates is None else f"update {checkpoint.updates}"
    kept = " with moments" if checkpoint.moments and to != "huggingface" else ""
    lacks = f", without a tokeniser: the vocabulary is not at hand; {_REMEDY}"
    record = make_record()
    with _open_target(target) as directory:
        WRITERS[to](checkpoint, directory)
        if found is not None:
            if to == "huggingface":
                export_tokenizer(
                    found,
                    directory,
                    longest=min(
                        checkpoint.longest or shape.max_position_embeddings, shape.max_position_embeddings
                    ),
                    needs_json=isinstance(shape, ModernBertConfig),
                    has_segments=shape.type_vocab_size > 1,
                )
            else:
                _write_tokenizer_files(found, directory)
            lacks = ""
        lineage = record(directory)
        with storage.open_output(storage.join(directory, LINEAGE_NAME)) as file:
            file.write(lineage)
        if to == "huggingface":
            write_model_card(directory, target, checkpoint)
    form = f"{what}{kept} in {_PROGRAMS.get(to, 'Hugging Face')} form"
    unnamed = _describe_unused_ids(shape, found)
    return (
        f"{target}: {form}{describe_changes(checkpoint, to)}{_warn_of_bert_form(shape, to)}{unnamed}{lacks}"
    )


def _find_available_tokenizer(
    checkpoint: Checkpoint,
    shape: ModelConfig,
    vocab: str | None,
    train_data: str | None,
    lower_case: bool | None,
) -> TokenizerFile | None:
    """Return the tokeniser to store in a checkpoint of this trainer.

    If none is found, warn and return None, since the checkpoint can be used without it.

    An unreadable tokeniser next to the weights gives a warning too. An unreadable ``vocab`` is an error.
    """
    try:
        found = find_tokenizer(checkpoint, shape, vocab, train_data, lower_case)
        lacks = f"{checkpoint.path}: no tokeniser is at hand that could go along; {_REMEDY}"
    except BertDataError as error:
        if vocab is not None or train_data is not None:
            raise
        found, lacks = None, f"its tokeniser does not go along: {error}"
    if found is None:
        say_error(f"trainer: warning: {lacks}")
    return found


def _warn_of_bert_form(shape: ModelConfig, to: str) -> str:
    """Return the end of a message, which warns if the target's program will read a RoBERTa as a BERT.

    Return "" if it will not.
    """
    if to == "huggingface" or not isinstance(shape, RobertaConfig):
        return ""
    epsilon = ""
    if shape.layer_norm_eps != BERT_EPSILON:
        epsilon = f", with layer_norm_eps {BERT_EPSILON:g} in place of {shape.layer_norm_eps:g}"
    return f", a RoBERTa that its program takes for a BERT{epsilon}; read here it is a RoBERTa again"


def _describe_unused_ids(shape: ModelConfig, file: TokenizerFile | None) -> str:
    """Return the end of a message, which says how many rows of the word embeddings belong to no token.

    Return "" if there are no such rows.
    """
    rows = 0 if file is None else shape.vocab_size - vocabulary_of(file).tokens
    return f"; {rows} of its {shape.vocab_size} ids have no token" if rows else ""


def convert_to_prefix(source: str, prefix: str, model_config: str | None) -> str:
    """Convert a checkpoint's weights to the TensorFlow 2 files PREFIX.index and PREFIX.data-00000-of-00001.

    Return a message. No other file is written, as by the converter of TensorFlow's model garden.
    """
    if storage.exists(f"{prefix}.index"):
        raise DatasetError(f"{prefix}.index: is there already; name a checkpoint that does not exist yet")
    refuse_input_as_output(prefix, [source, model_config])
    checkpoint = replace(open_checkpoint(source, None, model_config, with_moments=False), moments={})
    write_tensors_and_graph(_keep_model_tensors(checkpoint, checkpoint.expect_config()), prefix)
    return f"{prefix}: weights in TensorFlow 2's form; it is read with --model-config"


def _write_tokenizer_files(file: TokenizerFile, directory: str) -> None:
    """Write the tokeniser next to converted weights: a vocabulary, or a tokenizer.json with its special
    tokens.

    The casing of a vocabulary is not stored, because other programs have flags for it.
    """
    for name, data in make_tokenizer_files(file).items():
        if name != CONFIGURATION_NAME or isinstance(file, TokenizerJson):
            with storage.open_output(storage.join(directory, name)) as output:
                output.write(data)


def _find_task(checkpoint: Checkpoint, given: str | None) -> type[Task] | None:
    """Return the class of the task that the checkpoint's run has learned, or None if unknown.

    SettingsError, with a remedy, for a user's task class that is not imported yet. A checkpoint file may name
    the class, but must not cause its import, which would run code.
    """
    name = checkpoint.task or given
    if given not in (None, name):
        raise SettingsError(f"{checkpoint.path}: has learned the task {name}, task is {given}")
    if name is None:
        return None
    module, colon, _ = name.partition(":")
    if colon and given is None and module not in sys.modules:
        raise SettingsError(
            f"{checkpoint.path}: has learned the task {name}, and no file may choose code to import; "
            f"if you trust that code, give --task {name}"
        )
    return find_task_class(name)


@contextmanager
def _open_target(target: str) -> Iterator[str]:
    """Yield a temporary directory to write to. At the end it becomes the target, by renaming or uploading.

    Raises DatasetError, and changes nothing, if the target has files that were not written here.
    """
    if storage.is_remote(target):
        with _open_remote_target(target) as directory:
            yield directory
        return
    with open_directory(Path(target.removeprefix("file://"))) as growing:
        try:
            yield str(growing)
            _refuse_other_files(target, [path.name for path in growing.iterdir()])
        except StorageError as error:  # its message names the temporary directory, not the target
            raise StorageError(str(error).replace(str(growing), target)) from None


@contextmanager
def _open_remote_target(target: str, replaced: Collection[str] = ()) -> Iterator[str]:
    """Yield a temporary directory on this machine, in TMPDIR, whose files are uploaded at the end.

    Only when all files are written is it known which files of the target they would replace, so nothing is
    uploaded before. The files that name the others by md5 come last, so that a killed upload shows.

    replaced: names of files that an earlier conversion may have written to the target. Those that this one
        does not write are removed.

    Raises DatasetError, and changes nothing, if the target has other files.
    """
    storage.exists(target)  # fail now if the store cannot be reached, and not after the conversion
    with TemporaryDirectory(prefix="bertdata-") as folder:
        growing = Path(folder) / "model"
        growing.mkdir()
        try:
            yield str(growing)
        except StorageError as error:  # a full disk, for example
            raise StorageError(
                str(error).replace(str(growing), f"{target}: its copy on this machine, {growing}")
            ) from None
        names = storage.list_files(str(growing))
        _refuse_other_files(target, {*names, *replaced})
        storage.make_directory(target)
        for name in sorted(names, key=lambda name: (name == LINEAGE_NAME, name == STATE, name)):
            storage.upload_copy(str(growing / name), storage.join(target, name))
        for name in set(replaced) - set(names):
            storage.remove(storage.join(target, name), missing_ok=True)


def _is_in_use(target: str) -> bool:
    """Return True if the target is a file, or a directory that is not empty."""
    if storage.is_remote(target):
        return bool(storage.list_files(target))
    path = Path(target.removeprefix("file://"))
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _refuse_other_files(target: str, written: Collection[str]) -> None:
    """Raise DatasetError if the target is a directory with files that the conversion does not write.

    A conversion with --overwrite replaces the whole directory, so such files would be lost.
    written: names of the files that the conversion writes.
    """
    others = sorted(set(storage.list_files(target)) - set(written))
    if others:
        raise DatasetError(
            f"{target}: holds {others[0]}, which this conversion does not write, so that it would be lost; "
            "name another directory"
        )


def _make_model(checkpoint: Checkpoint, shape: ModelConfig) -> HeadedBert:
    """Return a model with the heads that the checkpoint's weights need.

    This is a masked-word model if the weights have only a masked-word head, and for a ModernBERT. For all
    other weights it is a pre-training model, with both heads and a pooler.
    """
    above = (WORD_HEAD, *HEADS[1:], PAIR_HEAD, "bert.pooler.")
    starts = {start for start in above if any(name.startswith(start) for name in checkpoint.weights)}
    has_no_pairs = starts == {WORD_HEAD} or isinstance(shape, ModernBertConfig)
    return BertForMaskedLM(shape) if has_no_pairs else BertForPreTraining(shape)


def _make_expected_tensors(checkpoint: Checkpoint, shape: ModelConfig) -> dict[str, Tensor]:
    """Return the tensors that a model of this shape with the checkpoint's heads has, by name.

    The tensors have shapes but no values. They are compared with the checkpoint's tensors.
    """
    # The number of rows of a head. That of a classification head, one per label, is added from the
    # checkpoint.
    outputs = {HEADS[1]: _ANSWER_OUTPUTS}
    with torch.device("meta"):
        own = dict(_make_model(checkpoint, shape).state_dict())
        for name, tensor in checkpoint.weights.items():
            head = next((head for head in HEADS[1:] if name.startswith(head)), None)
            # A task class of the user may have tensors of any name and shape, so they are accepted as they
            # are.
            if checkpoint.kind == OURS and not name.startswith(("bert.", *HEADS)):
                own[name] = torch.empty(tensor.shape)
            if head is None:
                continue
            count = outputs.setdefault(head, min(tensor.shape[0] if tensor.shape else 1, _MOST_LABELS))
            sizes = {f"{head}weight": (count, shape.hidden_size), f"{head}bias": (count,)}
            if name in sizes:
                own[name] = torch.empty(sizes[name])
    return own


def _keep_model_tensors(checkpoint: Checkpoint, shape: ModelConfig) -> Checkpoint:
    """Remove tensors that do not belong to the checkpoint's model. Return the changed checkpoint.

    DataError if the remaining tensors do not have the shapes of the model.
    """
    own = _make_expected_tensors(checkpoint, shape)
    weights, _ = match_weights(own, shape, checkpoint)
    moments = match_moments(own, shape, checkpoint)
    return replace(
        checkpoint,
        weights={name: tensor for name, tensor in checkpoint.weights.items() if name in weights},
        moments={key: tensor for key, tensor in checkpoint.moments.items() if key in moments},
    )


def _write_trainer_checkpoint(
    checkpoint: Checkpoint,
    shape: ModelConfig,
    target: str,
    tokenizer: TokenizerFile | None,
    record: Callable[[str], bytes],
) -> str:
    """Write the checkpoint in this trainer's format. Return a message that says what was written.

    If pre-training heads are missing, they are added with random values.
    tokenizer: the tokeniser to write with it, or None.
    record: function that makes the file lineage.json, for ``write_checkpoint``.
    """
    own = _make_expected_tensors(checkpoint, shape)
    weights, missing = match_weights(own, shape, checkpoint)
    weights = {name: weights[name] for name in own if name in weights}
    lacks = ""
    if missing and not any(name.startswith(HEADS[1:]) for name in weights):
        with torch.device("meta"):
            model = _make_model(checkpoint, shape)
        first = {name: StoredTensor.of(values) for name, values in model.first_weights() if name in missing}
        weights |= first
        lacks = f", without {len(missing)} tensors of the heads, which keep random values"
    moments = match_moments(own, shape, checkpoint)
    updates = checkpoint.updates or 0
    config = make_learned_task_config(checkpoint)
    learned = checkpoint.task
    if config.is_finetuning:  # predict and evaluate need the labels
        learned = learned or config.task
    else:
        config = Config.of()
    state = replace(make_initial_state(config, shape, longest=checkpoint.longest), task=learned)
    state = replace(state, step=updates, applied=updates, optimiser=checkpoint.optimiser or state.optimiser)
    others = {} if tokenizer is None else make_tokenizer_files(tokenizer)
    names = [STATE, WEIGHTS, MOMENTS, LINEAGE_NAME, *others]
    _refuse_other_files(target, names)
    if storage.is_remote(target):
        with _open_remote_target(target, names) as directory:
            write_checkpoint(Path(directory), state, weights, moments, others, record)
    else:
        write_checkpoint(Path(target.removeprefix("file://")), state, weights, moments, others, record)
    what = f"weights and moments of update {updates}" if moments else "weights"
    if checkpoint.problem not in (None, read_run_labels(config.as_json()).problem):
        lacks += f", without problem_type {checkpoint.problem}, which runs here do not have"
    return f"{target}: {what} to start from (--start-from-ckpt){lacks}"
