"""Stand-in for the card's random generator. It uses the CPU's generator."""

import torch
from recording import record

__all__ = ["manual_seed", "manual_seed_all"]


def manual_seed(seed: int) -> torch.Generator:
    record("hpu.random.manual_seed(int)")
    return torch.default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)
