"""The given form of GELU goes before that of the checkpoint that a run starts from."""

import pytest

from trainer.config.settings import Config
from trainer.run.configured_shape import override_stored_settings


@pytest.mark.parametrize("stored", ["gelu", "gelu_new", "gelu_pytorch_tanh"])
@pytest.mark.parametrize(("gelu", "is_tanh"), [("exact", False), ("tanh", True)])
def test_a_given_form_goes_before_the_checkpoints(stored, gelu, is_tanh):
    found = override_stored_settings(Config.of(gelu=gelu), {"hidden_act": stored})["hidden_act"]
    assert (found in ("gelu_new", "gelu_pytorch_tanh")) == is_tanh


@pytest.mark.parametrize("stored", ["gelu", "gelu_new", "relu"])
def test_without_one_the_checkpoints_form_stays(stored):
    assert override_stored_settings(Config.of(), {"hidden_act": stored})["hidden_act"] == stored
    assert override_stored_settings(Config.of(gelu="tanh"), {"hidden_act": "relu"})["hidden_act"] == "relu"
