"""A converted dataset as the data of transformers' Trainer: one line loads it."""

from typing import Any

import pytest

from tests.support.commands import SMALL

datasets = pytest.importorskip("datasets")
pytest.importorskip("accelerate")  # which transformers' Trainer needs

pytestmark = pytest.mark.thorough


@pytest.fixture
def arrow(bertdata: Any, corpus: Any, small_vocabulary_file: Any, tmp_path: Any) -> Any:
    words = [
        "create",
        corpus[0],
        f"--output={tmp_path / 'blocks'}",
        f"--vocab={small_vocabulary_file}",
        *SMALL,
    ]
    assert bertdata(*words, "--objective=mlm", "--no-masks").status == 0
    words = ["convert", tmp_path / "blocks", tmp_path / "arrow", "--to=arrow", "--workers=1"]
    assert bertdata(*words).status == 0
    return tmp_path / "arrow"


def test_the_collator_and_the_trainer_of_transformers_take_it(arrow, tmp_path):
    import torch
    import transformers

    data = datasets.load_from_disk(str(arrow))

    tokenizer = transformers.BertTokenizerFast(vocab=str(arrow / "vocab.txt"))
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.3)
    batch = collator([data[number] for number in range(4)])
    rows = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
    for number, row in enumerate(rows):
        ids = data[number]["input_ids"]
        assert row.tolist() == ids + [tokenizer.pad_token_id] * (len(row) - len(ids))
        assert batch["attention_mask"][number].sum() == len(ids)
    assert (batch["labels"] != -100).any()

    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
    )
    torch.manual_seed(1)
    trainer = transformers.Trainer(
        model=transformers.BertForMaskedLM(config),
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path / "run"),
            max_steps=30,
            per_device_train_batch_size=8,
            learning_rate=1e-2,
            logging_steps=5,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=data,
        data_collator=collator,
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] - 0.4
