"""The flags that NVIDIA's run_pretraining.py for TensorFlow and Habana's, which follows it, read alike."""

from bertdata.cli.common.absl_flags import integer
from bertdata.cli.common.program_flags import SWITCH, Flag

COMMON = [
    Flag("--max_seq_length", integer, 512, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", integer, 80, "masked ids of an example", key="max_predictions_per_seq"),
    Flag("--do_train", SWITCH, meaning="train", key="do_train"),
    Flag("--do_eval", SWITCH, meaning="evaluate at the end"),
    Flag("--train_batch_size", integer, 32, "examples of a micro-batch of one worker", key="batch_size"),
    Flag("--eval_batch_size", integer, 8, "examples of an evaluation batch", key="eval_batch_size"),
    Flag("--learning_rate", float, 5e-5, "learning rate of one worker", key="base_learning_rate"),
    Flag("--num_train_steps", integer, 100000, "updates", key="steps"),
    Flag("--num_warmup_steps", integer, 10000, "updates of warm-up", key="warmup"),
    Flag("--save_checkpoints_steps", integer, 1000, "updates between checkpoints", key="checkpoint_every"),
    Flag("--display_loss_steps", integer, 10, "updates between two log lines", key="log_every"),
    Flag("--iterations_per_loop", integer, 1000, idle=True, meaning="of the host only"),
    Flag("--max_eval_steps", integer, 100, "most batches of an evaluation"),
    Flag("--num_accumulation_steps", integer, 1, "micro-batches of an update", key="accumulation"),
    Flag("--allreduce_post_accumulation", SWITCH, key="allreduce_post_accumulation",
         meaning="all-reduce once an update, not once a micro-batch"),
    Flag("--verbose_logging", SWITCH, idle=True),
    Flag("--report_loss", SWITCH, True, idle=True, meaning="losses are always logged"),
    Flag("--horovod", SWITCH, meaning="train on all workers that the launcher has started"),
]  # fmt: skip
