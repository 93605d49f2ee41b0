"""A micro-batch's part in an update: the seeds of its dropout and the divisor of its loss.

The seeds are functions of the run's seed, the update, the micro-batch and the part of the model. So dropout
is the same after a resume, for any number of workers, and however the model is split.
"""

from trainer.config.settings import Config
from trainer.data.order import numbers
from trainer.update.strategy import UpdateNumber, Worker


def seed_micro_batch(worker: Worker, at: UpdateNumber, number: int) -> None:
    """Make the model draw the dropout of this copy's micro-batch ``number`` of an update.

    The parts of the model (``Bert.seeds``) have a seed each; on devices that compile them together they
    have one for all, that of part 0.
    """
    division, device, bert = worker.division, worker.device, worker.model.bert
    micro_batch = division.copy + division.copies * number
    seeds = part_seeds(worker.config.data.seed, at, micro_batch, len(bert.encoder.layer) + 2)
    if device.seeds_parts and not device.compiles:
        bert.seeds = lambda part: device.seed(seeds[part])
    else:
        device.seed(seeds[0])


def part_seeds(seed: int, at: UpdateNumber, micro_batch: int, parts: int) -> list[int]:
    """The seed of each part's dropout in a micro-batch, by the run's seed."""
    found = numbers(parts, seed, "dropout", at.phase, at.step, micro_batch)
    return [int(number) >> 1 for number in found]


def loss_divisor(config: Config, count: int, workers: int) -> float:
    """The divisor of the loss of each of a worker's ``count`` micro-batches in an update.

    The workers' sums of gradients are averaged afterwards.
    """
    return replica_count(config, workers) / workers if config.sums_micro_batches else count


def replica_count(config: Config, there: int) -> int:
    """The number of replicas over which sums are averaged: those that batch_size and accumulation assume.

    there: the actual number, which may be another: one worker may do the work of several replicas.
    """
    return config.update.replicas or there
