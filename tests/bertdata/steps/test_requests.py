"""Requests: every setting is a keyword, a flag and a key of a file, and three callers fill the same one."""

import inspect
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

import bertdata
from beam_pipelines import options as beam
from beam_pipelines import pack as beam_pack
from bertdata.cli import create, pack, segment
from bertdata.cli.common.request_flags import make_request
from bertdata.errors import MissingInputError, SettingsError
from bertdata.examples.objectives import OBJECTIVES
from bertdata.sources.settings import RecordSettings
from bertdata.steps.create_request import CreateRequest, GivenDatasetSettings
from bertdata.steps.dataset_file import DatasetFile
from bertdata.steps.pack_request import GivenPackSettings, PackRequest
from bertdata.steps.segment_request import SegmentRequest
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings

PATHS = {"abbreviations", "exclude"}
"""Settings that hold what is read from the paths which a request has."""

CONVERTED = {"eval_share", "keep_languages"}
"""Settings with a text, for which a request also takes another type."""


def type_of(kind: type[Any], name: str) -> set[Any]:
    """The types of a field, without None."""
    hint = get_type_hints(kind)[name]
    return {*(get_args(hint) or (hint,))} - {NoneType}


# --- a setting that is declared is a field of the request -------------------------------------------


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_setting_of_an_objective_is_a_keyword_of_create_of_its_type(name):
    kind = OBJECTIVES[name].settings_type
    for item in fields(kind):
        assert type_of(CreateRequest, item.name) == type_of(kind, item.name), item.name


@pytest.mark.parametrize("request_kind", [SegmentRequest, CreateRequest])
@pytest.mark.parametrize("kind", [SegmentSettings, PartSettings, RecordSettings, SelectionSettings])
def test_every_setting_of_text_is_a_keyword_of_its_type(kind, request_kind):
    known = {item.name for item in fields(request_kind)}
    declared = {item.name for item in fields(kind)} - {"records", "selection"}
    if request_kind is SegmentRequest or kind in (RecordSettings, SelectionSettings):
        assert declared <= known
    for name in (declared & known) - PATHS - {"recipe"}:
        known_types, declared_types = type_of(request_kind, name), type_of(kind, name)
        assert known_types >= declared_types, name
        assert known_types == declared_types or name in CONVERTED, name


def test_every_setting_of_a_dataset_is_a_flag_of_command_and_pipeline_and_a_key_of_its_table(tmp_path):
    words = ["--output", "o", "--vocab", "v"]
    of_command = vars(create.make_parser().parse_args(["part", *words]))
    of_pipeline = vars(beam.parse_flags(["--input", "part", *words])[0])
    for item in fields(GivenDatasetSettings):
        assert item.name in of_command
        assert item.name in of_pipeline
        if item.metadata["record"]:
            path = tmp_path / f"{item.name}.toml"
            path.write_text(f"[{item.metadata['record']}]\n{item.name} = 0.5\n")
            with pytest.raises(SettingsError, match=rf"toml:2: {item.name} is 0.5, expected"):  # known
                DatasetFile(str(path))


def test_every_setting_of_rows_is_a_flag_of_command_and_pipeline():
    names = {item.name for item in fields(GivenPackSettings)}
    assert names <= vars(pack.make_parser().parse_args(["d"])).keys()
    assert names <= vars(beam_pack.make_parser().parse_args(["d", "--output", "o"])).keys()


# --- three callers, one request ---------------------------------------------------------------------

FLAGS = ["--tokenizer=t.json", "--role", "mask=<mask>", "--recipe=nvidia", "--phase=2", "--shuffle=global"]
FLAGS += ["--num-shards=3", "--config=c.toml", "--no-lower-case", "--masked-lm-prob=0.2", "--ngram=2"]
KEYWORDS: dict[str, Any] = {
    "tokenizer": "t.json",
    "roles": {"mask": "<mask>"},
    "recipe": "nvidia",
    "phase": 2,
    "shuffle": "global",
    "num_shards": 3,
    "config": "c.toml",
    "lower_case": False,
    "masked_lm_prob": 0.2,
    "ngram": 2,
    "engine": "python",
}


def test_command_python_and_pipeline_fill_the_same_request_to_create():
    words = [*FLAGS, "--output=out", "--engine=python"]
    by_command = make_request(CreateRequest, create.make_parser(words).parse_args(["a", "b", *words]))
    by_pipeline = beam.create_request(beam.parse_flags(["--input", "a,b", *words])[0])
    assert by_command == CreateRequest(["a", "b"], "out", **KEYWORDS, own_settings={})
    assert by_pipeline == by_command


def test_command_python_and_pipeline_fill_the_same_request_to_segment(tmp_path):
    words = ["--language=de", "--books=b", "--part-size=2", "--exclude=e", "--exclude=f", "--as-is"]
    given = {"language": "de", "books": "b", "part_size": 2.0, "exclude": ("e", "f"), "as_is": True}
    by_command = make_request(SegmentRequest, segment.make_parser().parse_args(["s", "--output=t", *words]))
    assert by_command == SegmentRequest("s", "t", **given)
    of_text = ["--input-kind=articles", "--text=t", "--output=o", "--vocab=v"]
    flags, _ = beam.parse_flags(["--input=s", *of_text, *words])
    assert flags.text_request == SegmentRequest("s", "t", input_kind="articles", **given)


def test_command_python_and_pipeline_fill_the_same_request_to_pack():
    words = ["d", "--output=o", "--layout=habana", "--num-shards=2", "--unverified", "--vocab=v"]
    given = {"layout": "habana", "num_shards": 2, "unverified": True, "vocab": "v"}
    by_command = make_request(PackRequest, pack.make_parser().parse_args(words))
    assert by_command == PackRequest("d", "o", **given)
    assert make_request(PackRequest, beam_pack.make_parser().parse_args(words)) == by_command


# --- the function of a request ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"), [("create", CreateRequest), ("segment", SegmentRequest), ("pack", PackRequest)]
)
def test_help_shows_each_keyword_with_its_type_default_and_meaning(name, kind):
    function = getattr(bertdata, name)
    shown = inspect.signature(function).parameters
    assert shown == inspect.signature(kind).parameters
    assert list(shown) == [item.name for item in fields(kind) if not item.kw_only] + [
        item.name for item in fields(kind) if item.kw_only
    ]
    for item in fields(kind):
        if "help" in item.metadata:
            assert f"\n{item.name}: {item.metadata['help'].split()[0]}" in inspect.getdoc(function)


def test_a_keyword_that_is_no_field_is_a_setting_of_ones_own_objective(monkeypatch):
    asked: list[CreateRequest] = []
    monkeypatch.setattr(
        "bertdata.steps.create.make_request_parts", lambda request, progress: asked.append(request)
    )
    for more in ({"depth": 3}, {"own_settings": {"depth": 3}}):
        with pytest.raises(AttributeError):  # there is nothing to plan
            bertdata.create("part", "out", vocab="v", **more)
    assert [request.example_settings for request in asked] == [{"depth": 3}] * 2
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: bertdata.segment("text", "parts", language_fild="lang"),
            "segment: language_fild is not a known key; the nearest known is language_field",
        ),
        (
            lambda: bertdata.pack("shards", layuot="flat"),
            "pack: layuot is not a known key; the nearest known is layout",
        ),
        (
            lambda: bertdata.train_vocab("text", "vocab.txt", size=9, text_fild="text"),
            "train_vocab: text_fild is not a known key; the nearest known is text_field",
        ),
        (
            lambda: bertdata.create("text", "shards", vocab="v", text_fild="text"),
            "create: text_fild is not a known key; the nearest known is text_field",
        ),
        (lambda: bertdata.segment("text", "parts", zzz=3), "segment: zzz is not a known key"),
        (
            lambda: bertdata.train_vocab("text", "vocab.txt"),
            "train_vocab: missing a required argument: 'size'",
        ),
    ],
)
def test_a_wrong_keyword_is_named_with_the_nearest_known(call, said):
    with pytest.raises(SettingsError) as refused:
        call()
    assert str(refused.value) == said


def test_a_setting_of_ones_own_objective_may_resemble_a_field(monkeypatch):
    asked: list[CreateRequest] = []
    monkeypatch.setattr(
        "bertdata.steps.create.make_request_parts", lambda request, progress: asked.append(request)
    )
    with pytest.raises(AttributeError):  # there is nothing to plan
        bertdata.create("part", "out", vocab="v", objective="mine:TASK", mask_shares=3)
    assert asked[0].example_settings == {"objective": "mine:TASK", "mask_shares": 3}


# --- values that Python callers pass ----------------------------------------------------------------


def test_a_number_is_a_share_and_a_list_is_a_text_with_commas():
    given = SegmentRequest("s", "t", eval_share=0.05, keep_languages=["zh", "de"])
    settings = SelectionSettings(eval_share=given.eval_share, keep_languages=given.keep_languages)
    assert settings == SelectionSettings(eval_share="5%", keep_languages="de,zh")
    for share, percent in ((0.5, "50%"), (0.001, "0.1%"), (1e-7, "0.00001%"), ("5%", "5%")):
        found = SegmentRequest("s", "t", eval_share=share).eval_share
        assert SelectionSettings(eval_share=found).eval_share == percent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"eval_share": 5}, "eval_share is 5, expected a number above 0 and below 1, or a text such as '5%'"),
        ({"eval_share": ["5%"]}, "eval_share is ['5%'], expected a text"),
        ({"keep_languages": [3]}, "keep_languages is [3], expected texts in a list, or one text with commas"),
        ({"keep_languages": []}, "keep_languages is [], expected texts in a list, or one text with commas"),
        ({"text_field": ["text"]}, "text_field is ['text'], expected a text"),
        ({"id_field": 3}, "id_field is 3, expected a text"),
        ({"separator": 3}, "separator is 3, expected a text"),
    ],
)
def test_a_value_of_another_type_is_named_with_what_is_expected(given, said, tmp_path):
    with pytest.raises(SettingsError) as refused:
        bertdata.segment([{"text": "Ein Satz."}], tmp_path / "parts", **given)
    assert str(refused.value) == said
    assert not (tmp_path / "parts").exists()


def test_a_kind_of_another_type_is_named_with_the_known_kinds(tmp_path):
    with pytest.raises(SettingsError, match=r"^input_kind is 3, expected one of articles, text, blocks, "):
        bertdata.segment("text", tmp_path / "parts", input_kind=3)


def test_no_source_is_named_as_such(tmp_path):
    for call, name in (
        (lambda: bertdata.segment([], tmp_path), "sources"),
        (lambda: bertdata.segment((row for row in ()), tmp_path), "sources"),
        (lambda: bertdata.create([], tmp_path, vocab="v"), "parts"),
        (lambda: bertdata.train_vocab([], tmp_path / "v.txt", size=9), "texts"),
    ):
        with pytest.raises(MissingInputError, match=f"^no {name} given$"):
            call()
