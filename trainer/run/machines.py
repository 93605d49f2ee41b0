"""The output directories of a run's machines, looked at by one rule before anything is made or removed.

The first worker of each machine (local rank 0) looks at its directory, which other machines may share. A new
run needs all of them free. A run that goes on takes the checkpoint that is asked for, or the newest, from
whichever machine holds it, and gives it to those that lack it: after that every machine holds what rank 0
reads, and the order of the machines has no meaning.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import md5

from bertdata.errors import DatasetError, MissingInputError, SettingsError
from trainer.checkpoints.checkpoint import checkpoints_folder, find_checkpoints
from trainer.checkpoints.damage import find_fault, find_newest_whole, remedy
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.resume_check import CHANGEABLE
from trainer.config.settings import Config
from trainer.errors import CheckpointError
from trainer.run.giving import give_directory
from trainer.run.near_names import find_near_run
from trainer.run.path_check import find_used, in_use
from trainer.update.worker import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What the first worker of a machine finds in its output directory.

    used: the name of what tells of a run. checkpoints: by number the digest of the weights and moments;
    None: damaged. faults: of those. model: a digest of the newest one's model, seed and optimiser.
    """

    rank: int
    path: str
    used: str | None
    checkpoints: Mapping[int, str | None]
    faults: Mapping[int, str]
    newest_whole: int | None
    run: str | None

    @classmethod
    def at(cls, rank: int, config: Config) -> "Look":
        """The findings in the configured output directory. Every byte is read where damage is passed over."""
        output_dir, start = str(config.run.output_dir), config.start
        checkpoints, faults, run = dict[int, str | None](), dict[int, str](), None
        for number, path in find_checkpoints(output_dir).items() if start.continues_here else ():
            fault = find_fault(path)
            checkpoints[number] = None
            if fault is not None:
                faults[number] = fault
                continue
            state = read_state(path)
            checkpoints[number] = _digest(state.files)
            model = {name: value for name, value in state.model.items() if name not in CHANGEABLE}
            run = _digest([model, state.seed, state.optimiser])
        skips = start.continues_here and start.resume_skips_damaged
        return cls(
            rank=rank,
            path=output_dir,
            used=next(iter(find_used(output_dir)), None),
            checkpoints=checkpoints,
            faults=faults,
            newest_whole=find_newest_whole(output_dir) if skips else None,
            run=run,
        )


def take_up(runtime: Runtime, phases: Sequence[Config], *, may_be_new: bool = False) -> list[Config]:
    """Look at all machines' directories, and bring the checkpoint to go on from to all of them.

    Returns the phases, with the checkpoint's number where damaged ones are passed over. DatasetError where a
    new run's directory is in use on any machine, or where machines hold different runs.
    may_be_new: --resume without a run begins a new one without a word, as other programs do.
    """
    config = phases[0]
    if config.run.compile_only:
        return list(phases)
    workers = runtime.workers
    mine = runtime.on_machines(lambda: asdict(Look.at(workers.rank, config)))
    looks = [_look_of(found) for found in workers.gather(mine) if found is not None]
    if not config.start.continues_here:
        for look in looks:
            if look.used is not None and not config.run.overwrite_output_dir:
                runtime.stop_all(in_use(_where(look, looks), look.used))
        return list(phases)
    numbers = sorted({number for look in looks for number in look.checkpoints})
    if not numbers:
        if config.start.resume and not may_be_new:
            runtime.on_rank_0(lambda: _refuse_near_name(runtime, looks))
        return list(phases)
    _check_one_run(runtime, looks)
    if config.start.resume_skips_damaged:
        wanted = max((look.newest_whole for look in looks if look.newest_whole is not None), default=None)
        if wanted is None:
            runtime.stop_all(CheckpointError(f"{looks[0].path}: none of its checkpoints is whole"))
        for number in numbers[numbers.index(wanted) + 1 :]:
            fault = next((look.faults[number] for look in looks if number in look.faults), "is damaged")
            runtime.log(f"warning: checkpoint {number} is passed over: {fault}")
        phases = [one.changed(resume=True, resume_step=wanted) for one in phases]
    else:
        wanted = _wanted(config, numbers)
    if wanted in numbers:
        _give_to_all(runtime, looks, wanted)
    elif len(looks) > 1:
        there = "; ".join(f"{_where(look, looks)}: {_listed(look.checkpoints)}" for look in looks)
        runtime.stop_all(MissingInputError(f"no machine holds checkpoint {wanted}; there are {there}"))
    return list(phases)


def _look_of(found: Mapping[str, object]) -> Look:
    """The look as it was before it was JSON, whose names are texts."""
    numbered = {
        name: {int(number): value for number, value in found[name].items()}  # type: ignore[attr-defined]
        for name in ("checkpoints", "faults")
    }
    return Look(**{**found, **numbered})  # type: ignore[arg-type]


def _wanted(config: Config, numbers: Sequence[int]) -> int:
    """The number of the checkpoint to go on from, out of those that any machine holds."""
    start = config.start
    given = start.resume_step
    if given is None and not start.resume:
        given = start.phase1_end_step
    return numbers[-1] if given is None else given


def _refuse_near_name(runtime: Runtime, looks: Sequence[Look]) -> None:
    """Say that there is no run to resume. SettingsError where one beside it has nearly the same name."""
    path = looks[0].path
    if any(look.used for look in looks):
        return runtime.log(f"{path}: holds no checkpoint yet: training begins at update 0")
    if near := find_near_run(path):
        found = f"{path}: holds no run to resume, but {near} does"
        raise SettingsError(f"{found}; give --output-dir {near}, or leave out --resume to begin a new run")
    runtime.log(f"warning: {path}: holds no run to resume: a new one begins at update 0")
    return None


def _check_one_run(runtime: Runtime, looks: Sequence[Look]) -> None:
    """End all workers where two machines hold checkpoints of different runs.

    Of the same run, checkpoints of one number have the same bits. Where no number is on both machines, model,
    seed and optimiser must be the same at least.
    """
    first, *others = [look for look in looks if look.run is not None] or [looks[0]]
    for look in others:
        digests = {
            number: (first.checkpoints[number], digest)
            for number, digest in look.checkpoints.items()
            if digest is not None and first.checkpoints.get(number) is not None
        }
        differing = [number for number, (one, other) in digests.items() if one != other]
        if differing or (not digests and look.run != first.run):
            what = f"a checkpoint {differing[0]}" if differing else "checkpoints"
            found = f"{_where(first, looks)} and {_where(look, looks)} hold {what} of different runs"
            remedy = "name the directories of one run, or empty the other ones, which a resume fills"
            runtime.stop_all(DatasetError(f"{found}; {remedy}"))


def _give_to_all(runtime: Runtime, looks: Sequence[Look], number: int) -> None:
    """Give the checkpoint to the machines that lack it, or hold a damaged one. An error if none is whole."""
    source = next((look for look in looks if look.checkpoints.get(number) is not None), None)
    if source is None:
        look = next(look for look in looks if number in look.faults)
        fault = look.faults[number]
        runtime.stop_all(CheckpointError(f"{fault}; {_remedy_of(runtime, look, number)}"))
    lacking = [look.rank for look in looks if look.checkpoints.get(number) is None]
    if not lacking:
        return
    names = ", ".join(map(str, lacking))
    runtime.log(f"checkpoint {number} is worker {source.rank}'s: giving it to worker {names}")
    path = find_checkpoints(source.path)[number] if runtime.workers.rank == source.rank else None
    folder = checkpoints_folder(str(runtime.config.run.output_dir))
    target = folder / f"step-{number:08d}" if runtime.workers.rank in lacking else None
    give_directory(runtime, source.rank, path, target)


def _remedy_of(runtime: Runtime, look: Look, number: int) -> str:
    """The remedy that the machine finds which has the damaged checkpoint."""
    found = None
    if runtime.workers.rank == look.rank:
        start = runtime.config.start
        is_phase_1 = not start.resume and start.resume_step is None
        found = remedy(look.path, number, "--phase1-end-step" if is_phase_1 else "--resume-step")
    return str(runtime.workers.gather(found)[look.rank])


def _digest(value: object) -> str:
    return md5(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _where(look: Look, looks: Sequence[Look]) -> str:
    """The directory of a look, with its worker where there are several machines."""
    return look.path if len(looks) == 1 else f"worker {look.rank}'s {look.path}"


def _listed(checkpoints: Mapping[int, str | None]) -> str:
    return ", ".join(map(str, checkpoints)) or "none"
