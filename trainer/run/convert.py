"""Conversion of checkpoints to Hugging Face form and back."""

from pathlib import Path

from bertdata.errors import DatasetError, MissingInputError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.model.bert import new_model
from trainer.model.huggingface import export_model, import_weights, read_config
from trainer.run.checkpoint import STATE, choose_checkpoint, new_state, read_state, write_checkpoint
from trainer.run.runtime import read_weights_into


def convert(source: str, target: str) -> str:
    """Convert a checkpoint, or a run's newest, to Hugging Face form, or the reverse; returns a message."""
    if Path(target).exists() and any(Path(target).iterdir()):
        raise DatasetError(f"{target}: is in use; name a directory that does not exist yet")
    if (Path(source) / "checkpoints").is_dir():
        source = str(choose_checkpoint(source))
    if (Path(source) / STATE).is_file():
        model = new_model(ModelConfig.from_dict(read_state(Path(source)).model, source))
        read_weights_into(model, source)
        export_model(model, target)
        return f"{target}: update {read_state(Path(source)).number} in Hugging Face form"
    if not (Path(source) / "config.json").is_file():
        raise MissingInputError(f"{source}: holds neither {STATE} (a checkpoint) nor config.json")
    model = new_model(read_config(source))
    missing = import_weights(model, source)
    write_checkpoint(Path(target), new_state(Config.of(), model.config), model.state_dict(), {})
    lacks = f", without {len(missing)} tensors of the heads, which keep random values" if missing else ""
    return f"{target}: weights to start from (--start-from-ckpt){lacks}"
