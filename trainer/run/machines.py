"""Comparison of the output directories on all machines of a run, before anything is created or removed.

Machines may or may not share a directory. So the first worker of each machine (local rank 0) looks at the
output directory there. A new run needs an unused directory on every machine. A continued run takes the
configured or the newest checkpoint from any machine that has it, and copies it to the machines that do not.
Afterwards all machines have the same checkpoint, so it does not matter on which of them rank 0 runs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import md5

from bertdata.errors import DatasetError, MissingInputError, SettingsError
from trainer.checkpoints.checkpoint import find_checkpoints, get_checkpoints_folder
from trainer.checkpoints.damage import advise_on_resume, find_fault, find_newest_whole
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.resume_check import CHANGEABLE
from trainer.config.settings import Config
from trainer.errors import CheckpointError
from trainer.run.copying import copy_directory
from trainer.run.near_names import find_near_run
from trainer.run.path_check import find_run_files, make_in_use_error
from trainer.update.worker import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineOutput:
    """Contents that the first worker of a machine has found in its output directory.

    used: name of a file or folder that shows that another run used the directory, or None.
    checkpoints: for each checkpoint number a digest of weights and moments, or None if the checkpoint is
    damaged.
    faults: for each damaged checkpoint what is wrong with it.
    newest_whole: number of the newest undamaged checkpoint. It is found only if damaged checkpoints may be
        skipped.
    run: digest of model, seed and optimiser in the newest checkpoint, by which runs are told apart.
    """

    rank: int
    path: str
    used: str | None
    checkpoints: Mapping[int, str | None]
    faults: Mapping[int, str]
    newest_whole: int | None
    run: str | None

    @classmethod
    def inspect(cls, rank: int, config: Config) -> "MachineOutput":
        """Look at the configured output directory of this machine.

        If damaged checkpoints may be skipped, every byte of the checkpoints is read. Otherwise only the
        lengths of their files are checked.
        """
        output_dir, start = str(config.run.output_dir), config.start
        checkpoints, faults, run = dict[int, str | None](), dict[int, str](), None
        for number, path in find_checkpoints(output_dir).items() if start.continues_here else ():
            fault = find_fault(path)
            checkpoints[number] = None
            if fault is not None:
                faults[number] = fault
                continue
            state = read_state(path)
            checkpoints[number] = _compute_digest(state.files)
            model = {name: value for name, value in state.model.items() if name not in CHANGEABLE}
            run = _compute_digest([model, state.seed, state.optimiser])
        skips = start.continues_here and start.resume_skips_damaged
        return cls(
            rank=rank,
            path=output_dir,
            used=next(iter(find_run_files(output_dir)), None),
            checkpoints=checkpoints,
            faults=faults,
            newest_whole=find_newest_whole(output_dir) if skips else None,
            run=run,
        )


def share_checkpoint(runtime: Runtime, phases: Sequence[Config], *, may_be_new: bool = False) -> list[Config]:
    """Choose the checkpoint that the run continues from, and copy it to all machines that do not have it.

    Returns the phases. If damaged checkpoints were skipped, their resume_step is the number of the chosen
    checkpoint.
    may_be_new: True if ``--resume`` may start a new run without a warning, as in some other programs.
    Raises DatasetError if a new run's directory is in use on a machine, or if machines have different runs.
    """
    config = phases[0]
    if config.run.compile_only:
        return list(phases)
    workers = runtime.collective
    # Every worker gets the descriptions of all machines. So all workers make the same decisions below without
    # another exchange.
    mine = runtime.on_machines(lambda: asdict(MachineOutput.inspect(workers.rank, config)))
    outputs = [_parse_machine_output(found) for found in workers.gather(mine) if found is not None]
    # This is a new run: no machine may have an earlier run.
    if not config.start.continues_here:
        for output in outputs:
            if output.used is not None and not config.run.overwrite_output_dir:
                runtime.stop_all(make_in_use_error(_name_directory(output, outputs), output.used))
        return list(phases)
    # This is a continued run: any machine may have the checkpoint. If machine 0 has [100, 200] and machine 1
    # has [100], the run continues from 200, and machine 1 gets a copy of it.
    numbers = sorted({number for output in outputs for number in output.checkpoints})
    if not numbers:
        if config.start.resume and not may_be_new:
            runtime.on_rank_0(lambda: _refuse_mistyped_name(runtime, outputs))
        return list(phases)
    _check_same_run(runtime, outputs)
    if config.start.resume_skips_damaged:
        wanted = max(
            (output.newest_whole for output in outputs if output.newest_whole is not None), default=None
        )
        if wanted is None:
            runtime.stop_all(CheckpointError(f"{outputs[0].path}: none of its checkpoints is whole"))
        for number in numbers[numbers.index(wanted) + 1 :]:
            fault = next(
                (output.faults[number] for output in outputs if number in output.faults), "is damaged"
            )
            runtime.log(f"warning: checkpoint {number} is passed over: {fault}")
        phases = [one.changed(resume=True, resume_step=wanted) for one in phases]
    else:
        wanted = _choose_checkpoint_number(config, numbers)
    if wanted in numbers:
        _copy_to_all(runtime, outputs, wanted)
    elif len(outputs) > 1:
        there = "; ".join(
            f"{_name_directory(output, outputs)}: {_join_checkpoint_numbers(output.checkpoints)}"
            for output in outputs
        )
        runtime.stop_all(MissingInputError(f"no machine holds checkpoint {wanted}; there are {there}"))
    return list(phases)


def _parse_machine_output(found: Mapping[str, object]) -> MachineOutput:
    """Return the MachineOutput that another worker has sent as JSON, in which integer keys are strings."""
    numbered = {
        name: {int(number): value for number, value in found[name].items()}  # type: ignore[attr-defined]
        for name in ("checkpoints", "faults")
    }
    return MachineOutput(**{**found, **numbered})  # type: ignore[arg-type]


def _choose_checkpoint_number(config: Config, numbers: Sequence[int]) -> int:
    """Return the number of the checkpoint to continue from.

    numbers: numbers of the checkpoints on all machines, ascending.
    """
    start = config.start
    given = start.resume_step
    if given is None and not start.resume:
        given = start.phase1_end_step
    return numbers[-1] if given is None else given


def _refuse_mistyped_name(runtime: Runtime, outputs: Sequence[MachineOutput]) -> None:
    """Log that there is no run to resume.

    Raises SettingsError if a directory with nearly the same name has a run, because the name was probably
    mistyped.
    """
    path = outputs[0].path
    if any(output.used for output in outputs):
        return runtime.log(f"{path}: holds no checkpoint yet: training begins at update 0")
    if near := find_near_run(path):
        raise SettingsError(
            f"{path}: holds no run to resume, but {near} does; give --output-dir {near}, or leave out "
            "--resume to begin a new run"
        )
    runtime.log(f"warning: {path}: holds no run to resume: a new one begins at update 0")
    return None


def _check_same_run(runtime: Runtime, outputs: Sequence[MachineOutput]) -> None:
    """End all workers if two machines have checkpoints of different runs.

    Two checkpoints of the same run with the same number have the same bits. If two machines have no number in
    common, their runs must at least have the same model, seed and optimiser.
    """
    first, *others = [output for output in outputs if output.run is not None] or [outputs[0]]
    for output in others:
        digests = {
            number: (first.checkpoints[number], digest)
            for number, digest in output.checkpoints.items()
            if digest is not None and first.checkpoints.get(number) is not None
        }
        differing = [number for number, (one, other) in digests.items() if one != other]
        if differing or (not digests and output.run != first.run):
            what = f"a checkpoint {differing[0]}" if differing else "checkpoints"
            runtime.stop_all(
                DatasetError(
                    f"{_name_directory(first, outputs)} and {_name_directory(output, outputs)} hold {what} "
                    "of different runs; name the directories of one run, or empty the other ones, which a "
                    "resume fills"
                )
            )


def _copy_to_all(runtime: Runtime, outputs: Sequence[MachineOutput], number: int) -> None:
    """Copy the checkpoint to the machines that do not have it, or have a damaged copy.

    Ends all workers if no machine has an undamaged copy.
    number: number of the checkpoint.
    """
    source = next((output for output in outputs if output.checkpoints.get(number) is not None), None)
    if source is None:
        output = next(output for output in outputs if number in output.faults)
        fault = output.faults[number]
        runtime.stop_all(CheckpointError(f"{fault}; {_find_remedy(runtime, output, number)}"))
    lacking = [output.rank for output in outputs if output.checkpoints.get(number) is None]
    if not lacking:
        return
    names = ", ".join(map(str, lacking))
    runtime.log(f"checkpoint {number} is worker {source.rank}'s: giving it to worker {names}")
    path = find_checkpoints(source.path)[number] if runtime.collective.rank == source.rank else None
    folder = get_checkpoints_folder(str(runtime.config.run.output_dir))
    target = folder / f"step-{number:08d}" if runtime.collective.rank in lacking else None
    copy_directory(runtime, source.rank, path, target)


def _find_remedy(runtime: Runtime, output: MachineOutput, number: int) -> str:
    """Return what the user can do about a damaged checkpoint. All workers get the same text.

    The worker on the machine with the checkpoint finds the remedy, and sends it to the others.
    """
    found = None
    if runtime.collective.rank == output.rank:
        start = runtime.config.start
        is_phase_1 = not start.resume and start.resume_step is None
        found = advise_on_resume(output.path, number, "--phase1-end-step" if is_phase_1 else "--resume-step")
    return str(runtime.collective.gather(found)[output.rank])


def _compute_digest(value: object) -> str:
    """Return the md5 of a value, computed from its JSON."""
    return md5(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _name_directory(output: MachineOutput, outputs: Sequence[MachineOutput]) -> str:
    """Return the path of a machine's output directory. If there are several machines, add the rank of its
    worker.
    """
    return output.path if len(outputs) == 1 else f"worker {output.rank}'s {output.path}"


def _join_checkpoint_numbers(checkpoints: Mapping[int, str | None]) -> str:
    """Return the numbers of the checkpoints as text for an error message."""
    return ", ".join(map(str, checkpoints)) or "none"
