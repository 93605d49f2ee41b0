"""The trainer's core needs none of the extensions."""

from pathlib import Path

import pytest

from tests.support.core_runs import EXTENSIONS, Ended, extensions, run_commands
from tests.support.house import Sources, draw, read_sources
from tests.support.paths import ROOT
from trainer.registry import CORE, find, names
from trainer.registry.extensions import NAMES
from trainer.run.usage import COMMANDS

SOURCES = read_sources(ROOT)
NEEDED = {
    "finetuning": ("finetune", "--task=mrpc"),
    "formats": ("convert", "a", "b"),
    "launchers": ("pretrain", "--generated-data", "--output-dir={place}/new", "--dist", "--world-size=2"),
    "like": ("like", "--help"),
    "loading": ("pretrain", "--train-data={data}", "--output-dir={place}/new", "--device=cpu", "--bins=4"),
    "loggers": ("pretrain", "--generated-data", "--output-dir={place}/new", "--device=cpu", "--mllog"),
    "recipe": (
        "pretrain",
        "--generated-data",
        "--optimiser=stableadamw",
        "--output-dir={place}/new",
        "--device=cpu",
    ),
    "run_report": ("report", "{place}/run"),
    "splitting": ("pretrain", "--generated-data", "--output-dir={place}/new", "--strategy=sharded"),
    "tasks": ("pretrain", "--generated-data", "--objective=span", "--output-dir={place}/new", "--device=cpu"),
    "vendors": ("pretrain", "--generated-data", "--output-dir={place}/new", "--device=hpu"),
}
"""For each extension a command that needs it."""


def upward(sources: Sources) -> list[str]:
    """Each import of an extension by the core."""
    return [
        f"{module} imports {name}"
        for module, found in sorted(draw(sources).items())
        if module.split(".")[0] == "trainer" and not module.startswith(EXTENSIONS)
        for name in sorted(found)
        if name.startswith(EXTENSIONS)
    ]


def test_the_core_imports_no_extension():
    assert upward(SOURCES) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import {}",
        "def late():\n    from {} import x\n    return x",
        "if TYPE_CHECKING:\n    from {} import x",
    ],
)
def test_a_planted_import_of_an_extension_is_found(statement):
    name = f"{EXTENSIONS}.loading.bins"
    planted = SOURCES | {"trainer.data.loader": SOURCES["trainer.data.loader"] + statement.format(name)}
    assert upward(planted) == [f"trainer.data.loader imports {name}"]


@pytest.fixture(scope="module")
def runs(training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """A plain run, resumed, evaluated and asked, without any extension; then for each what needs it."""
    place = tmp_path_factory.mktemp("core")
    run, shape = f"{place}/run", ("--hidden-size=16", "--num-hidden-layers=1", "--num-attention-heads=2")
    plain = ("pretrain", f"--train-data={training_set}", f"--output-dir={run}", "--steps=3", *shape)
    plain = (*plain, "--batch-size=4", "--device=cpu", "--no-progress-bar")
    held_out = f"--eval-data={training_set}"
    every = extensions()
    commands = {
        "plain": (every, (*plain, "--steps-this-run=2")),
        "resumed": (every, (*plain, "--resume", held_out)),
        "evaluated": (every, ("evaluate", held_out, f"--output-dir={run}", "--device=cpu")),
        "asked": (every, ("predict", run, "A [MASK].")),
    }
    given = {"data": training_set, "place": place}
    for name, words in NEEDED.items():
        commands[name] = ([name], tuple(word.format(**given) for word in words))
    return dict(zip(commands, run_commands(*commands.values()), strict=True))


@pytest.mark.parametrize("name", ["plain", "resumed", "evaluated", "asked"])
def test_the_core_works_without_any_extension(runs, name):
    assert runs[name].status == 0, runs[name].errors


@pytest.mark.parametrize("name", NEEDED)
def test_a_setting_whose_extension_is_left_out_gives_one_line(runs, name):
    errors = [line for line in runs[name].errors.splitlines() if "error" in line.lower()]
    assert runs[name].status == 2, runs[name].errors
    assert len(errors) == 1, runs[name].errors
    assert f"trainer/extensions/{name} is not there; install the whole of bertdata" in errors[0]


def test_a_launcher_whose_extension_is_left_out_gives_one_line(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    (ended,) = run_commands((["launchers"], ("pretrain", "--generated-data", "--output-dir=none")))
    assert ended.status == 2
    found = (
        "launcher mpirun or srun: trainer/extensions/launchers is not there; install the whole of bertdata"
    )
    assert ended.errors.splitlines() == [f"trainer: error: {found}"]


def test_every_extension_has_a_setting_that_needs_it():
    assert sorted(NEEDED) == extensions()


@pytest.mark.parametrize("words", ["--help", "pretrain --help", "evaluate --help", "predict --help"])
def test_help_imports_neither_torch_nor_an_extension(words):
    (ended,) = run_commands(((), words.split()))
    assert ended.status == 0
    assert [name for name in ended.modules if name.startswith(("torch", EXTENSIONS))] == []


def test_every_name_of_the_registry_can_be_found():
    for kind in {**CORE, **NAMES}:
        for name in names(kind):
            assert find(kind, name) is not None


def test_every_extension_is_named_by_the_registry():
    named = {target.split(".")[2] for targets in NAMES.values() for target in targets.values()}
    assert sorted(named) == extensions()


def test_every_command_has_its_summary_and_its_function():
    assert sorted(COMMANDS) == sorted(names("command"))
