"""Mosaic's Streaming library as a check of MDS directories.

It runs in a separate environment without our packages.

::

    python streaming_judge.py read DIR OUT         write the ids of LocalDataset and StreamingDataset as JSON
    python streaming_judge.py write SAMPLES DIR    write MDS. SAMPLES: JSON of columns, settings, samples
    python streaming_judge.py train DIR            train with transformers' Trainer and print the losses
"""

import json
import sys
from decimal import Decimal
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

for name in ("torchvision", "torchvision.datasets", "torchvision.transforms"):  # for images, which we lack
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__spec__ = ModuleSpec(name, None)
sys.modules["torchvision.transforms.functional"] = ModuleType("torchvision.transforms.functional")
sys.modules["torchvision.datasets"].VisionDataset = object
sys.modules["torchvision.transforms.functional"].to_tensor = None

from streaming import LocalDataset, MDSWriter, StreamingDataset  # noqa: E402

for name in [name for name in sys.modules if name.startswith("torchvision")]:
    del sys.modules[name]


def read(directory: str, out: str) -> None:
    streamed = StreamingDataset(local=directory, batch_size=1, shuffle=False)  # decompresses for the other
    found = {"streamed": list(map(plain, streamed)), "local": list(map(plain, LocalDataset(local=directory)))}
    Path(out).write_text(json.dumps(found))


def plain(row):
    return [row["id"], row["input_ids"].tolist(), int(row.get("len", -1))]


def write(samples: str, directory: str) -> None:
    given = json.loads(Path(samples).read_text())
    with MDSWriter(out=directory, columns=given["columns"], **given["settings"]) as writer:
        for sample in given["samples"]:
            writer.write(
                {name: value_of(kind, sample[name], sample) for name, kind in given["columns"].items()}
            )


def value_of(kind: str, value, sample):
    """Return a value of types.json in the form that MDSWriter takes."""
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "str_decimal":
        return Decimal(value)
    if kind.startswith("ndarray"):
        return np.array(value, kind.split(":")[1] if ":" in kind else sample["d_dtype"])
    return value


def train(directory: str) -> None:
    class Rows(torch.utils.data.Dataset):
        """ModernBERT's columns as a dataset of model inputs."""

        def __init__(self):
            self.samples = LocalDataset(local=directory)

        def __len__(self):
            return len(self.samples)

        def __getitem__(self, index):
            return {"input_ids": self.samples[index]["input_ids"].astype(np.int64).tolist()}

    tokenizer = BertTokenizer(str(Path(directory) / "vocab.txt"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainer = Trainer(
        model=BertForMaskedLM(config),
        args=TrainingArguments(
            output_dir=str(Path(directory).parent / "run"),
            max_steps=20,
            per_device_train_batch_size=8,
            learning_rate=5e-3,
            logging_steps=5,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        ),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.3),
        train_dataset=Rows(),
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(json.dumps([float(loss) for loss in losses]))


if __name__ == "__main__":
    {"read": read, "write": write, "train": train}[sys.argv[1]](*sys.argv[2:])
