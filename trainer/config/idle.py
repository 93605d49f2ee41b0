"""The given keys that have no effect in a run, for one line of its log."""

from collections.abc import Iterable

from trainer.config.settings import DEVICE_OPTIONS, Config, device_properties, properties


def idle_keys(config: Config, device: str, idle_there: Iterable[str] = ()) -> list[str]:
    """The given keys that have no effect on the device.

    idle_there: keys that have an effect on other devices only.
    """
    keys, declared, known = config.keys, properties(), device_properties()
    idle = [
        name
        for name in keys[DEVICE_OPTIONS]
        if device not in known[name]["devices"] and "everywhere" not in known[name]
    ]
    names = [*idle_there]
    for name, section in config.others.items():
        if name != "masking" or not config.is_finetuning:
            names += section.idle()
    idle += [name for name in names if keys[name] != declared[name].get("default")]
    return sorted(idle + ["train_data"] * bool(config.data.generated_data and config.data.train_data))
