"""The reduction over micro-batches: the divisor of each one's loss, whose gradients are added up."""

from trainer.config.settings import Config


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
