"""Settings of a run that are shown to readers."""

from bertdata.lineages.shown_settings import list_changed_keys


def test_paths_of_the_machine_and_logs_are_no_settings_of_the_training():
    config = {
        "seed": 1,
        "batch_size": 8,
        "masked_lm_prob": 0.15,  # the default
        "output_dir": "/home/somebody/run",
        "cache_dir": "/home/somebody/cache",
        "json_summary": "/home/somebody/run.json",
        "mllog_file": "/home/somebody/mllog",
        "wandb_project": "secret",
        "checkpoint_every": 10,
    }
    assert list_changed_keys(config) == {"seed": 1, "batch_size": 8}
