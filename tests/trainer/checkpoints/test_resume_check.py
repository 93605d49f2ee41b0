"""Settings of a checkpoint that count as changed when a run resumes from it."""

from dataclasses import replace

from trainer.checkpoints.checkpoint import make_initial_state
from trainer.checkpoints.resume_check import find_changed_settings
from trainer.config.model import ModelConfig
from trainer.config.settings import Config


def test_a_cache_elsewhere_changes_no_weights(tmp_path):
    before = Config.of(cache_dir=str(tmp_path / "a"), cache_size=1.0, base_learning_rate=0.5)
    state = make_initial_state(before, ModelConfig())
    now = Config.of(cache_dir=str(tmp_path / "b"), cache_size=2.0, base_learning_rate=0.25)
    assert find_changed_settings(state, now) == {"base_learning_rate": 0.5}
    assert find_changed_settings(replace(state, config=now.as_json()), now) == {}
