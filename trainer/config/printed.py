"""The configuration of a run as JSON, for ``--print-config``, with a value for every key."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.io.terminal import say_text
from trainer.config.environment import find_environment_keys
from trainer.config.settings import Config
from trainer.config.value_sources import find_sources
from trainer.plugins import find


def print_config(
    program: str, phases: Sequence[Config], given: Sequence[Mapping[str, str]] = (), **others: Any
) -> None:
    """Print the keys of each phase, with the source of every value.

    given: for each phase, the source of each key that is set. If it is empty, no sources are printed.
    others: additional entries of the printed JSON object, such as the settings of an evaluation.
    """
    size = phases[0].workers.world_size if phases else others.pop("world_size", None)
    found = {
        "program": program,
        "world_size": size or 1,
        "phases": [resolve_keys(config) for config in phases],
    }
    if given:
        found["sources"] = [
            find_sources(config, of_phase) for config, of_phase in zip(phases, given, strict=True)
        ]
    say_text(json.dumps(found | others, indent=1) + "\n")


def resolve_keys(config: Config) -> dict[str, Any]:
    """Return all keys of a phase. A key that is not set gets its value from the optimiser, schedule or model
    file.

    An additional entry update_examples is the number of examples in an update, over all workers.
    """
    keys = config.as_json()
    keys |= {name: value for name, value in resolve_constants(config).items() if name in keys}
    described = config.model.make_printed_settings()
    keys |= {name: value for name, value in described.items() if name in keys and keys[name] is None}
    keys |= {"lr_schedule": config.schedule_name, "clipping": config.update.clipping_point}
    keys |= {name: value for name, (value, _) in find_environment_keys(keys).items()}
    workers = config.workers.world_size or 1
    whole = config.update.global_batch_size is None or config.update.batch_size is not None
    # If the key replicas is set, batch_size and accumulation depend on the number of workers, which may not
    # be known before the run.
    if whole and config.update.replicas is None:
        size, count = config.update.micro_batches(workers)
        keys |= {"batch_size": size, "accumulation": count}
    return keys | {"update_examples": _count_update_examples(config, workers)}


def resolve_constants(config: Config) -> dict[str, Any]:
    """Return the constants of optimiser and schedule. A constant that is not set has its usual value."""
    keys = config.values()
    preset = find("optimiser", config.update.optimiser)
    beta1, beta2 = preset.betas
    usual = {
        "beta1": beta1,
        "beta2": beta2,
        "optimiser_epsilon": preset.eps,
        "epsilon_in": preset.epsilon_in,
        "weight_decay": preset.weight_decay,
        "use_debiasing": preset.debias,
        "momentum": preset.momentum or None,
        **config.schedule_kind.defaults,
    }
    return {name: value if keys.get(name) is None else keys[name] for name, value in usual.items()}


def _count_update_examples(config: Config, workers: int) -> int:
    """Return the number of examples per update over all workers."""
    update = config.update
    if update.global_batch_size is not None:
        return update.global_batch_size
    if update.replicas is not None:
        return (update.batch_size or 1) * (update.accumulation or 1) * update.replicas
    return update.examples(workers)
