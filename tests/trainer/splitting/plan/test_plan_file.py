"""Files of plans: written, read, refused in one line."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from bertdata.errors import MissingInputError, SettingsError
from schemas import load_schema
from tests.support.plans import make_plan
from trainer.config.model_kinds import read_model_config
from trainer.model.headed import BertForMaskedLM, BertForPreTraining
from trainer.splitting.plan.parts import count_weights
from trainer.splitting.plan.plan import Memory, Plan, StagePlan, read_plan, write_plan
from trainer.tasks.heads import BertForQuestionAnswering


def test_a_plan_that_is_written_is_read_again(tmp_path):
    path = str(tmp_path / "plan.json")
    write_plan(path, plan := make_plan())
    assert read_plan(path) == plan


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("masked words and next sentence", BertForPreTraining),
        ("masked words", BertForMaskedLM),
        ("a small layer", BertForQuestionAnswering),
        (None, BertForPreTraining),
    ],
)
def test_a_plan_says_its_head_whose_weights_it_counts(tmp_path, head, kind):
    path = str(tmp_path / "plan.json")
    plan = replace(make_plan(), head=head)
    write_plan(path, plan)
    assert read_plan(path) == plan
    assert ("head" in plan.as_json()) == (head is not None)
    assert count_weights(plan) == kind(read_model_config(plan.model)).count_weights()


def test_the_schema_has_the_fields_of_the_records():
    schema = load_schema("plan")
    stage = schema["properties"]["stages"]["items"]
    for item, record, more in (
        (schema, Plan, {"format"}),
        (stage, StagePlan, set()),
        (stage["properties"]["memory"], Memory, set()),
    ):
        names = {field.name for field in fields(record)} | more
        assert set(item["properties"]) == names
        assert names - set(item["required"]) == {"head"} & names


def changed(**values: Any) -> str:
    return json.dumps(make_plan().as_json() | values)


def changed_stage(**values: Any) -> str:
    stages = make_plan().as_json()["stages"]
    return changed(stages=[stages[0] | values, *stages[1:]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        (make_plan().text()[:200], "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"hidden_size": 2048}', "is no plan: there is no format, expected 'bertdata plan 1'"),
        (changed(format="bertdata plan 9"), "is no plan: its format is 'bertdata plan 9'"),
        ('{"format": "bertdata plan 1"}', "plan: 'model' is a required property"),
        (changed(copies=0), "plan.copies is 0, expected 1 or more"),
        (changed(copies="two"), "plan.copies is 'two', expected an integer"),
        (changed(precision="int8"), "plan.precision is 'int8', expected one of fp32, bf16, fp16"),
        (changed(colour="red"), "'colour'"),
        (changed(stages=[]), "plan.stages"),
        (changed(stages=make_plan().as_json()["stages"][1:]), "do not follow one another"),
        (changed_stage(last=3), "its stages do not follow one another through the layers"),
        (changed_stage(forward=-1), "plan.stages.0.forward is -1, expected 1e-12 or more"),
        (changed_stage(memory={"weights": 1}), "plan.stages.0.memory: 'gradients' is a required property"),
        (changed(model={"hidden_size": 30}), "model: hidden_size is 30, no multiple of num_attention_heads"),
        (changed(model={"hiden_size": 30}), "model: hiden_size is not a known key"),
    ],
)
def test_a_file_that_is_no_sound_plan_is_refused_in_one_line(tmp_path, text, words):
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_plan(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_a_missing_plan_is_named():
    with pytest.raises(MissingInputError, match=r"nowhere\.json"):
        read_plan("nowhere.json")
