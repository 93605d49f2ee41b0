"""Optimisers of PyTorch with PyTorch's defaults."""

from trainer.config.schedules.form import Preset

ADAMW = Preset(kind="adamw", eps=1e-8, trust="none")

MOMENTUM = Preset(kind="sgd", weight_decay=0.0, momentum=0.9, trust="none")

SGD = Preset(kind="sgd", weight_decay=0.0, trust="none")
