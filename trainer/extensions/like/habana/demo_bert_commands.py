"""The commands that the README of Habana's PyTorch BERT prints, but for the launcher before them."""

_ALL_REDUCE = "--accumulate_gradients --allreduce_post_accumulation --allreduce_post_accumulation_fp16"
_SIZES = {"bf16": "64 8", "fp32": "32 4"}
_SQUAD_BATCHES = {"bf16": 24, "fp32": 10}


def printed_commands() -> tuple[str, ...]:
    """Each command line once, in the README's order of tasks."""
    return (*_pretraining(), *_fine_tuning())


def _pretraining() -> list[str]:
    return [
        f"pretraining --model_name_or_path large --mode {mode} --data_type {kind}{cards} "
        f"--batch_size {_SIZES[kind]} {_ALL_REDUCE}{' --dist' if cards else ''} --data_dir phase1 phase2"
        for cards in ("", " --world_size 8")
        for mode in ("graph", "lazy")
        for kind in ("bf16", "fp32")
    ]


def _fine_tuning() -> list[str]:
    rest = "--do_eval --data_dir"
    small = [
        f"finetuning --model_name_or_path {size} --mode {mode} --task_name mrpc --data_type fp32 "
        f"--num_train_epochs 3 --batch_size 32 --max_seq_length 128 --learning_rate {rate} {rest} MRPC"
        for size, mode, rate in (
            ("base", "eager", "2e-5"),
            ("large", "eager", "3e-5"),
            ("large", "graph", "3e-5"),
        )
    ]
    eager = [
        f"finetuning --model_name_or_path {size} --mode eager --task_name squad --data_type fp32 "
        f"--num_train_epochs 2 --batch_size {batch} --max_seq_length 384 --learning_rate 3e-5 {rest} Squad"
        for size, batch in (("base", 12), ("large", 10))
    ]
    large = [
        f"finetuning --model_name_or_path large --task_name squad --mode {mode} --data_type {kind} "
        f"--num_train_epochs 2{cards} --batch_size {_SQUAD_BATCHES[kind]} --max_seq_length 384 "
        f"--learning_rate 3e-5 {'--dist ' if cards else ''}{rest} Squad"
        for cards in ("", " --world_size 8")
        for mode in ("graph", "lazy")
        for kind in ("bf16", "fp32")
    ]
    return [*small, *eager, *large]
