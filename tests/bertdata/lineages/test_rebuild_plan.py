"""The plan of a rebuild: no record chooses code to import, or a place on this machine."""

from dataclasses import replace
from typing import Any

import pytest

from bertdata.errors import ManifestError, SettingsError
from bertdata.lineages.commands.command import Places
from bertdata.lineages.commands.run_commands import make_export_command, make_run_commands
from bertdata.lineages.rebuild_plan import plan_rebuild
from bertdata.lineages.step import CREATE, EXPORT, PRETRAIN, Input, Lineage, LineageFile, Step

FILES = (LineageFile(name="model.safetensors", md5="0" * 32),)


def make_step(name: str, settings: dict[str, Any], history: tuple[dict[str, Any], ...] = ()) -> Step:
    facts = {"updates": 2, "checkpoint": 2, "started": "new", "history": history}
    return Step(name=name, record="1" * 32, settings=settings, outputs=FILES, facts=facts)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (make_step(PRETRAIN, {"optimiser": "mine.code:ADAM"}), "mine.code:ADAM"),
        (make_step(PRETRAIN, {"objective": "mine.code:TASK"}), "mine.code:TASK"),
        # import_module takes names that are no identifiers, and imports before it looks for the attribute
        (make_step(PRETRAIN, {"optimiser": "mine-code:ADAM"}), "mine-code:ADAM"),
        (make_step(PRETRAIN, {"lr_schedule": "mine:A.B"}), "mine:A.B"),
        (make_step(PRETRAIN, {"model": {"model_type": "mine:MODEL"}}), "mine:MODEL"),
        (make_step(PRETRAIN, {}, ({"until": 1, "settings": {"masking": "mine:MASKS"}},)), "mine:MASKS"),
        (make_step(CREATE, {"objective": {"name": "mine-code:TASK"}}), "mine-code:TASK"),
        (make_step(EXPORT, {"to": "huggingface", "moments": True, "task": "mine:Task"}), "mine:Task"),
    ],
)
def test_code_that_a_record_names_anywhere_is_refused(step, code):
    lineage = Lineage(path="", results=(step,))
    with pytest.raises(SettingsError, match=f"--trust {code}$"):
        plan_rebuild(lineage, [], "again", ["other:CODE"])


def test_trusted_code_is_named_again():
    step = make_step(PRETRAIN, {"steps": 2, "optimiser": "mine:ADAM", "model": {}})
    plan = plan_rebuild(Lineage(path="", results=(step,)), [], "again", ["mine:ADAM"])
    assert plan.commands[0].words[-2:] == ("--optimiser", "mine:ADAM")


@pytest.mark.parametrize(
    ("name", "settings", "lacks"),
    [(PRETRAIN, {"model": {}}, "steps"), (EXPORT, {"to": "tf1"}, "moments"), (EXPORT, {}, "to")],
)
def test_a_setting_that_a_record_lacks_is_named(name, settings, lacks):
    made = make_step(PRETRAIN, {"steps": 2, "model": {}})
    step = replace(make_step(name, settings), record="2" * 32)
    if name == EXPORT:
        step = replace(step, inputs=(Input(role="checkpoint", made_by=made),))
    with pytest.raises(ManifestError, match=f"lacks the setting {lacks}$"):
        plan_rebuild(Lineage(path="", results=(step,)), [], "again")


def test_an_interrupted_training_is_printed_as_it_goes_on():
    step = make_step(PRETRAIN, {"steps": 2, "model": {}})
    [command] = make_run_commands(step, Places({}, {}, {}), "a b")
    assert str(command) == "python -m trainer pretrain --output-dir 'a b' --steps 2"
    assert command.format_line(made=1) == f"{command} --resume"


def test_a_run_without_files_is_not_rebuilt_and_called_equal():
    step = replace(make_step(PRETRAIN, {"steps": 2, "model": {}}), outputs=())
    with pytest.raises(ManifestError, match="lists no file that it wrote"):
        plan_rebuild(Lineage(path="", results=(step,)), [], "again")


def test_only_keys_of_devices_become_flags_of_the_device_options():
    options = {"attention": "math", "config": "model/keys.json", "objective": "mine:TASK"}
    step = make_step(
        PRETRAIN, {"steps": 2, "device_options": options, "cache_dir": "/else/where", "model": {}}
    )
    [command] = make_run_commands(step, Places({}, {}, {}), "again")
    assert command.words[3:] == ("pretrain", "--output-dir", "again", "--steps", "2", "--attention", "math")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"task": "mine:Task"}, ("--task", "mine:Task")),
        ({"task": "squad"}, ("--to", "huggingface")),
        ({"lower_case": False}, ("--to", "huggingface", "--no-lower-case")),
        ({"lower_case": True}, ("--to", "huggingface", "--lower-case")),
    ],
)
def test_an_export_names_the_task_of_a_user_and_the_casing_again(setting, words):
    step = Step(
        name=EXPORT,
        record="2" * 32,
        settings={"to": "huggingface", "moments": True, **setting},
        inputs=(Input(role="checkpoint", made_by=make_step(PRETRAIN, {})),),
    )
    command = make_export_command(step, Places({"1" * 32: "run"}, {}, {}), "model")
    assert command.words[-len(words) :] == words
