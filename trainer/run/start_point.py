"""The start point of a run, from the settings and the content of the output directory."""

from typing import Any

from bertdata.errors import DatasetError, MissingInputError, SettingsError
from trainer.checkpoint.state import State, choose_checkpoint, find_checkpoints, read_state
from trainer.config.settings import Config
from trainer.run.path_check import find_used, in_use


def find_start_point(config: Config, fresh: State) -> tuple[str, str]:
    """(kind, path): kind is "new" (without a path), "weights", "phase 2" or "resumed".

    An error where the output directory does not fit the settings. Nothing is changed yet.
    """
    output_dir = str(config.run.output_dir)
    there = find_checkpoints(output_dir)
    if config.run.start_moments and not config.run.start_from_ckpt:
        raise SettingsError("start_moments is given, but no start_from_ckpt to take them from")
    resuming = config.run.resume or config.run.resume_step is not None
    if resuming and (there or config.run.resume_step is not None):
        path = choose_checkpoint(output_dir, config.run.resume_step)
        state = read_state(path)
        if state.phase == fresh.phase:
            from trainer.checkpoint.resume_check import check_fits, check_position

            check_fits(path, state, fresh, "data", "order", "seed", "open_files", "optimiser")
            check_position(path, state, config)
            return "resumed", str(path)
        if state.phase > fresh.phase:
            raise SettingsError(f"{path}: is a checkpoint of phase 2; give --phase2 to resume it")
    if config.run.phase2 and config.run.start_from_ckpt is None:
        try:
            path = choose_checkpoint(output_dir, config.run.phase1_end_step)
        except MissingInputError as error:
            raise MissingInputError(f"--phase2 continues from phase 1: {error}") from None
        state = read_state(path)
        if state.phase != 1:
            raise DatasetError(f"{path}: is in use: phase 2 has begun; give --resume to continue it")
        from trainer.checkpoint.resume_check import check_fits

        check_fits(path, state, fresh, "optimiser")
        return "phase 2", str(path)
    follows = bool(config.run.phase2 and there) and read_state(there[max(there)]).phase == 1
    if follows and config.run.start_from_ckpt:
        return "weights", config.run.start_from_ckpt
    used = find_used(output_dir)
    if there or (used and not resuming):
        raise in_use(output_dir, used[0])
    return ("weights", config.run.start_from_ckpt) if config.run.start_from_ckpt else ("new", "")


def find_start_shape(config: Config) -> dict[str, Any] | None:
    """The model of the checkpoint that a run starts from, for keys that are not given; None without one.

    A run that goes on after such a start takes its own checkpoint's, as the other may be gone.
    """
    run = config.run
    there = find_checkpoints(str(run.output_dir)) if run.resume or run.phase2 or run.resume_step else {}
    if there and not (run.phase2 and run.start_from_ckpt):
        first, last = (read_state(there[number]) for number in (min(there), max(there)))
        began_elsewhere = any(state.config.get("start_from_ckpt") for state in (first, last))
        return last.model if began_elsewhere else None
    if run.start_from_ckpt is None:
        return None
    from trainer.checkpoint.source import open_checkpoint

    found = open_checkpoint(run.start_from_ckpt, with_moments=False).config
    return found.as_json() if found else None


def is_phase_over(config: Config) -> bool:
    """True if the checkpoint to resume from belongs to a later phase than the configuration's."""
    output_dir = str(config.run.output_dir)
    if not (config.run.resume and find_checkpoints(output_dir)) and config.run.resume_step is None:
        return False
    return read_state(choose_checkpoint(output_dir, config.run.resume_step)).phase > (
        2 if config.run.phase2 else 1
    )
