"""Updates by PyTorch's optimisers, and by those of programs in PyTorch, with their defaults."""

from dataclasses import replace

from trainer.config.presets.form import Preset

ADAMW = Preset(kind="adamw", eps=1e-8, trust="none")

ADAMW_TRANSFORMERS = replace(ADAMW, eps=1e-6, weight_decay=0.0, epsilon_in="uncorrected")
"""The AdamW of transformers before version 5 (adamw_hf)."""

ADAM_FAIRSEQ = replace(ADAMW, weight_decay=0.0, epsilon_in="uncorrected")
"""fairseq's adam, whose weight decay is AdamW's."""

MOMENTUM = Preset(kind="sgd", weight_decay=0.0, momentum=0.9, trust="none")

SGD = Preset(kind="sgd", weight_decay=0.0, trust="none")
