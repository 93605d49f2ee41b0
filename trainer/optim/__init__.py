"""Optimisers and learning-rate schedules by name, each with the habits of the program it comes from."""

from trainer.optim.clipping import clip_
from trainer.optim.lamb import Lamb
from trainer.optim.presets import PRESETS, find_preset, make_optimiser
from trainer.optim.schedules import Schedule, make_schedule

__all__ = ["PRESETS", "Lamb", "Schedule", "clip_", "find_preset", "make_optimiser", "make_schedule"]
