"""Habana's command of both phases."""

from shlex import split

from tests.support.configurations import warmup_updates
from trainer.config.flags import make_configs

HABANA = split(
    "--config habana_large --mode lazy --precision bf16 --batch_size 64 8 --train-data-phase1 phase1 "
    "--train-data-phase2 phase2 --world_size 8 --dist --output-dir run"
)


def test_habanas_command_is_understood():
    first, second = make_configs(HABANA)
    for config in (first, second):
        workers = config.workers
        assert (config.run.device, config.update.precision, workers.dist, workers.world_size) == (
            "hpu",
            "bf16",
            True,
            8,
        )
        assert config.as_json()["device_options"]["mode"] == "lazy"
        assert config.run.output_dir == "run"
    found = [
        [
            c.phase,
            c.data.train_data,
            c.data.max_seq_length,
            c.data.max_predictions_per_seq,
            c.schedule.steps,
            warmup_updates(c),
        ]
        for c in (first, second)
    ]
    assert found == [[1, "phase1", 128, 20, 7038, 2000], [2, "phase2", 512, 80, 1563, 200]]
    assert [c.update.micro_batches(8) for c in (first, second)] == [(64, 128), (8, 512)]
    assert [c.schedule.base_learning_rate for c in (first, second)] == [6e-3, 4e-3]
