"""Finding keys without an effect: the user has set them, but the run does not use them. The run's log warns
of them.
"""

from collections.abc import Iterable

from trainer.config.sections.section import Section
from trainer.config.settings import DEVICE_OPTIONS, SECTIONS, Config, get_device_key_schemas, get_key_schemas


def find_idle_keys(config: Config, device: str, idle_there: Iterable[str] = ()) -> list[str]:
    """Return the keys that have no effect in this run, although their values are not the defaults.

    device: name of the device that the run uses.
    idle_there: keys of all devices that this device does not use.
    """
    keys, declared, known = config.values(), get_key_schemas(), get_device_key_schemas()
    idle = [
        name
        for name in keys[DEVICE_OPTIONS]
        if device not in known[name]["devices"] and "everywhere" not in known[name]
    ]
    names = [*idle_there]
    for name in SECTIONS:
        if name != "masking" or not config.is_finetuning:
            section: Section = getattr(config, name)
            names += section.list_idle_keys()
    # The files of a task are read once. Generated data have no files.
    if config.is_finetuning or config.data.generated_data:
        names += ["cache_dir", "cache_size"]
    idle += [name for name in names if keys[name] != declared[name].get("default")]
    if config.data.generated_data and config.data.train_data:
        idle.append("train_data")
    return sorted(set(idle))
