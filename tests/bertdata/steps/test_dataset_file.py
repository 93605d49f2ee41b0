"""create --config and segment --config: a recipe there and back, flags over files, faults by their line."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import bertdata
from beam_pipelines.prepare import main as beam
from bertdata.build.recipe_toml import format_recipe
from bertdata.cli.main import main
from bertdata.config.recipes import RECIPES
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective
from bertdata.io.toml_text import TomlFile
from bertdata.sources.settings import RecordSettings
from bertdata.steps.dataset_file import DatasetFile
from bertdata.steps.record_source import make_part_settings
from bertdata.steps.segment import make_segment_settings, open_text_settings
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings
from tests.support.paths import ROOT
from tests.support.record_files import as_json_lines, make_documents

VOCABULARY = ROOT / "golden" / "vocab.txt"


def written(place: Path, text: str) -> Path:
    path = place / "dataset.toml"
    path.write_text(text, encoding="utf-8")
    return path


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def text_settings(config: Path, **flags: Any) -> SegmentSettings:
    """The settings of the text stage as segment --config has them."""
    with open_text_settings(str(config), flags) as given:
        return make_segment_settings(given)


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_printed_as_toml_makes_the_recipes_bytes(name, corpus, tmp_path, capsys):
    assert main(["recipes", name, "--as", "toml"]) == 0
    config = written(tmp_path, capsys.readouterr().out)
    small = ["--vocab", str(VOCABULARY), "--workers", "1"]
    if "dupe_factor" in find_objective(RECIPES[name].objective).settings_type.__dataclass_fields__:
        small += ["--dupe-factor", "1"]
    assert main(["create", str(corpus[0]), "--output", str(tmp_path / "a"), "--recipe", name, *small]) == 0
    assert (
        main(["create", str(corpus[0]), "--output", str(tmp_path / "b"), "--config", str(config), *small])
        == 0
    )
    found = files(tmp_path / "b")
    assert found == files(tmp_path / "a")
    assert sum(path.endswith("manifest.json") for path in found) == len(RECIPES[name].phases)


@pytest.mark.parametrize("name", RECIPES)
def test_the_text_of_a_recipe_printed_as_toml_has_the_settings_of_its_text_stage(name, tmp_path):
    config = written(tmp_path, format_recipe(RECIPES[name]))
    wanted = SegmentSettings(recipe="nvidia" if name in ("nvidia", "habana") else "mlperf")
    assert text_settings(config) == wanted
    assert text_settings(config, language="de").prefix == "wikicorpus_de"


FILE = """\
[text]
eval_articles = 3

[tokenizer]
vocab = "{vocab}"
lower_case = false

[objective]
name = "mlm"
max_seq_length = 32
max_predictions_per_seq = 5
masked_lm_prob = 0.2

[container]
format = "hdf5"
shuffle = "global"
num_shards = 2
"""


def test_a_file_holds_all_that_flags_do(corpus, tmp_path):
    config = written(tmp_path, FILE.format(vocab=VOCABULARY))
    flags = {"vocab": VOCABULARY, "lower_case": False, "objective": "mlm", "max_seq_length": 32}
    flags |= {"max_predictions_per_seq": 5, "masked_lm_prob": 0.2, "format": "hdf5", "shuffle": "global"}
    bertdata.create(corpus, tmp_path / "a", **flags, num_shards=2, workers=1)
    bertdata.create(corpus, tmp_path / "b", config=config, workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_flags_win_over_the_file(corpus, tmp_path):
    config = written(tmp_path, FILE.format(vocab="not there"))
    given = {"vocab": VOCABULARY, "format": "tfrecord", "masked_lm_prob": 0.3, "shuffle": "none"}
    bertdata.create(corpus[:1], tmp_path / "a", config=config, **given, workers=1)
    others = {"objective": "mlm", "max_seq_length": 32, "max_predictions_per_seq": 5, "lower_case": False}
    bertdata.create(corpus[:1], tmp_path / "b", **given, **others, workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_a_phase_has_settings_of_its_own_under_those_of_flags(corpus, tmp_path):
    config = written(
        tmp_path,
        'recipe = "nvidia"\n[objective]\ndupe_factor = 1\n'
        "[phase1.objective]\nrandom_seed = 1\n[phase2.objective]\nrandom_seed = 2\nmax_seq_length = 256\n",
    )
    small = {"config": config, "vocab": VOCABULARY, "workers": 1}

    def seeds(output: Path, **flags: Any) -> list[tuple[int, int]]:
        made = bertdata.create(corpus[:1], output, **small, **flags)
        of_each = [one.manifest.plan.settings.objective for one in made.datasets]
        return [(one["random_seed"], one["max_seq_length"]) for one in of_each]

    assert seeds(tmp_path / "both") == [(1, 128), (2, 256)]
    assert seeds(tmp_path / "second", phase=2) == [(2, 256)]
    assert seeds(tmp_path / "flag", random_seed=3) == [(3, 128), (3, 256)]


def test_segment_reads_its_table_of_the_file(tmp_path):
    config = written(tmp_path, FILE.format(vocab="v"))
    assert text_settings(config).eval_articles == 3
    assert text_settings(config, eval_articles=4).eval_articles == 4


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "[objective]\n# a comment\ndupe_facto = 3\n",
            3,
            "dupe_facto is not a known key; the nearest known is dupe_factor",
        ),
        ("[objective]\ndupe_factor = 'x'\n", 2, "dupe_factor is 'x', expected an integer"),
        ("[objective]\ndupe_factor = true\n", 2, "dupe_factor is True, expected an integer"),
        (
            "\n[objective]\nrandom_seed = 1\nmasked_lm_prob = [\n  1,\n]\n",
            4,
            "masked_lm_prob is [1], expected a number",
        ),
        ("[objective]\nmax_seq_length = 3\n", 2, "max_seq_length is 3, expected 5 to 65535"),
        ("[objective]\nmasked_lm_prob = inf\n", 2, "masked_lm_prob is inf, expected "),
        (
            "[container]\nformat = 'tfrecords'\n",
            2,
            "format is 'tfrecords', expected one of tfrecord, hdf5, parquet",
        ),
        ("[container]\ndupe_factor = 3\n", 2, r"dupe_factor belongs in the table [objective]"),
        ("[container]\nshuffle = 'global'\n", 2, "--shuffle global needs --num-shards N"),
        ("[container]\nnum_shards = 0\n", 2, "num_shards is 0, expected 1 or more"),
        ("recipe = 'bert'\n", 1, "recipe is 'bert', expected one of mlperf, google"),
        ("recipe = 'mlperf'\n[phase2.objective]\nrandom_seed = 1\n", 1, "recipe mlperf has one phase"),
        ("recipe = 'nvidia'\n[phase2.text]\npunkt = '3.4.5'\n", 2, "text is not a known key"),
        ("objective = 'bert'\n", 1, "expected a table, [objective]"),
        ("phase1 = 3\n", 1, "expected a table, [phase1]"),
        ("[objective]\nname = 'mypackage.plain:PLAIN'\n", 2, "no file may choose code to import"),
        ("[objective]\nname = ['mlm']\n", 2, "name is ['mlm'], expected one of bert, "),
        ("[tokenizer]\ndialect = ['x']\n", 2, "dialect is ['x'], expected one of mlperf"),
        ("[objective]\ndupe_factor = 9007199254740992\n", 2, "expected at most 9007199254740991"),
        ("[tokenizer]\nroles = {mask = 1}\n", 2, "roles.mask is 1, expected a text"),
        ("[text]\neval_articles = 0.5\n", 2, "eval_articles is 0.5, expected an integer"),
        ("[objective\n", 1, "is not TOML: Expected ']'"),
        ("a = 1\na = 2\n", 2, "is not TOML: Cannot overwrite"),
        ("[objective]\nkept_share = 1.5\n", 2, "kept_share is 1.5"),
    ],
)
def test_a_fault_is_one_line_with_file_and_line(text, line, message, corpus, tmp_path, capsys):
    config = written(tmp_path, text)
    arguments = [str(corpus[0]), "--output", str(tmp_path / "out"), "--vocab", str(VOCABULARY)]
    assert main(["create", *arguments, "--config", str(config)]) == 2
    found = capsys.readouterr().err
    assert found.startswith(f"bertdata: error: {config}:{line}: "), found
    assert message in found
    assert found.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_fault_of_the_text_stage_is_named_by_its_line(tmp_path):
    config = written(tmp_path, "[text]\nrecipe = 'mlperf'\ntest_fraction = 2\n")
    with pytest.raises(SettingsError, match=f"{config}:3: test_fraction is 2.0, expected 0 to 1"):
        text_settings(config)


def test_a_fault_that_a_flag_makes_is_not_laid_on_the_file(corpus, tmp_path):
    config = written(tmp_path, "[objective]\nmax_seq_length = 128\nmax_predictions_per_seq = 20\n")
    with pytest.raises(SettingsError, match="^max_seq_length is 3"):
        bertdata.create(corpus[:1], tmp_path / "out", vocab=VOCABULARY, config=config, max_seq_length=3)


def test_roles_in_the_file_go_with_its_tokenizer(corpus, tmp_path):
    roles = "roles = {mask = '[MASK]'}"
    config = written(tmp_path, f"[tokenizer]\nvocab = '{VOCABULARY}'\n{roles}\n")
    with pytest.raises(SettingsError, match=f"^{config}:3: roles goes with tokenizer"):
        bertdata.create(corpus[:1], tmp_path / "out", config=config)
    file = DatasetFile(str(written(tmp_path, f"[tokenizer]\ntokenizer = 'here'\n{roles}\n")))
    assert file.merge_given({})["roles"] == {"mask": "[MASK]"}
    assert "roles" not in file.merge_given({"vocab": "mine"})


def test_without_vocabulary_in_file_or_flags_the_flag_is_asked_for(corpus, tmp_path, capsys):
    config = written(tmp_path, "[objective]\nrandom_seed = 1\n")
    assert main(["create", str(corpus[0]), "--output", str(tmp_path / "out"), "--config", str(config)]) == 2
    assert "give --vocab FILE|NAME" in capsys.readouterr().err


def test_an_objective_of_ones_own_is_configured_when_the_command_line_names_it(tmp_path):
    own = "tests.support.plain_objective:PLAIN"
    config = written(tmp_path, f'[objective]\nname = "{own}"\nmax_seq_length = 16\n')
    assert DatasetFile(str(config), own).text == {}
    with pytest.raises(SettingsError, match="no file may choose code to import"):
        DatasetFile(str(config))


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(
        SettingsError, match="bytes.toml: is not TOML: line 1: byte 0xff at offset 0 is not UTF-8"
    ):
        TomlFile(str(tmp_path / "bytes.toml"))
    with pytest.raises(bertdata.errors.MissingInputError, match="missing.toml"):
        TomlFile(str(tmp_path / "missing.toml"))


def test_keys_are_found_by_line_in_every_form_of_toml(tmp_path):
    text = '# c\na.b = 1\n[t]\n  "x" = """\ny = 1\n"""\nz = [\n 1,\n]\n[[u]]\n[v.w]\n'
    file = TomlFile(str(written(tmp_path, text)))
    lines = [
        file.where(keys).rpartition(":")[2]
        for keys in (("a", "b"), ("t", "x"), ("t", "z"), ("u",), ("v", "w"))
    ]
    assert lines == ["2", "4", "7", "10", "11"]
    assert file.where(("t", "y")) == file.path


# --- sources of records and Beam ------------------------------------------------------------------


def with_records(place: Path, recipe: str = "mlperf") -> Path:
    """The recipe as it is printed, with settings of records, whose lines are comments, in use."""
    text = format_recipe(RECIPES[recipe])
    for comment, line in {
        "# dedup = ": 'dedup = "exact"',
        "# part_size = ": "part_size = 0.01",
        "# sentences = ": 'sentences = "lines"',
    }.items():
        (found,) = [one for one in text.splitlines() if one.startswith(comment)]
        text = text.replace(found, line)
    return written(place, text)


RECORDS = {"dedup": "exact", "part_size": 0.01, "sentences": "lines"}


@pytest.fixture
def source(tmp_path) -> Path:
    documents = make_documents(60)
    (tmp_path / "a.jsonl").write_bytes(as_json_lines([*documents, *documents[:9]]))
    return tmp_path / "a.jsonl"


def test_every_setting_of_text_is_printed_and_known_to_the_file(tmp_path):
    lines = format_recipe(RECIPES["modernbert"]).split("[text]")[1].split("[tokenizer]")[0].splitlines()
    uncommented = [line.removeprefix("# ") for line in lines if " = " in line]
    found = DatasetFile(str(written(tmp_path, "\n".join(["[text]", *uncommented])))).text
    own = {item.name for kind in (SegmentSettings, PartSettings) for item in fields(kind)}
    own |= {item.name for kind in (RecordSettings, SelectionSettings) for item in fields(kind)}
    of_nvidia = {"training_shards", "test_shards", "test_fraction", "prefix"}
    assert found.keys() == own - {"records", "selection"} - of_nvidia
    assert make_part_settings({"sentences": "none"}) == PartSettings(sentences="none")


def test_create_and_segment_read_the_text_of_a_file_for_records(source, tmp_path):
    config = with_records(tmp_path)
    small = {"vocab": VOCABULARY, "dupe_factor": 1, "workers": 1}
    bertdata.create(source, tmp_path / "a", **RECORDS, **small, text_field="text")
    bertdata.create(source, tmp_path / "b", config=config, **small, text_field="text")
    assert files(tmp_path / "a.text") == files(tmp_path / "b.text")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    bertdata.segment(source, tmp_path / "c", config=config, text_field="text", workers=1)
    assert files(tmp_path / "a.text") == files(tmp_path / "c")
    bertdata.create(tmp_path / "c", tmp_path / "d", config=config, **small)
    assert files(tmp_path / "a") == files(tmp_path / "d")


@pytest.mark.parametrize("command", ["segment", "create"])
def test_a_fault_of_the_text_of_records_is_one_line_with_file_and_line(command, source, tmp_path, capsys):
    more = ["--vocab", str(VOCABULARY)] if command == "create" else []
    for number, (text, message) in enumerate(
        {
            "dedup = 'near'": "dedup is 'near', expected exact",
            "eval_share = '2'": "eval_share is '2', expected a share such as 1%",
            "exclude = 'dev.json'": "exclude is 'dev.json', expected a list",
            "eval_articles = 3": "--eval-articles goes with articles and books",
            "recipe = 'nvidia'": "--recipe goes with articles and books",
        }.items()
    ):
        config = written(tmp_path, f"recipe = 'mlperf'\n\n[text]\nskip_bad_records = true\n{text}\n")
        words = [command, str(source), "--output", str(tmp_path / f"out-{number}"), *more]
        assert main([*words, "--config", str(config)]) == 2, text
        found = capsys.readouterr().err
        assert found.startswith(f"bertdata: error: {config}:5: "), found
        assert message in found
        assert not (tmp_path / f"out-{number}.text").exists()


def test_beam_reads_the_same_file(source, tmp_path):
    config = with_records(tmp_path)
    words = ["--config", str(config), "--dupe-factor", "1", "--vocab", str(VOCABULARY)]
    bertdata.create(
        source, tmp_path / "a", config=config, vocab=VOCABULARY, dupe_factor=1, workers=1, text_field="text"
    )
    inputs = ["--input", str(source), "--input-kind", "jsonl", "--text-field", "text"]
    assert beam([*inputs, "--output", str(tmp_path / "b"), *words]) == 0
    assert files(tmp_path / "a.text") == files(tmp_path / "b.text")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_beam_takes_every_table_and_flags_win(corpus, tmp_path):
    config = written(tmp_path, FILE.format(vocab=VOCABULARY))
    bertdata.create(corpus, tmp_path / "a", config=config, masked_lm_prob=0.3, workers=1)
    words = ["--input", ",".join(map(str, corpus)), "--output", str(tmp_path / "b"), "--config", str(config)]
    assert beam([*words, "--masked-lm-prob", "0.3"]) == 0
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("[objective]\ndupe_facto = 3\n", "parts", "2: dupe_facto is not a known key"),
        ("[container]\nshuffle = 'global'\n", "parts", "2: --shuffle global needs --num-shards N"),
        ("\n[text]\npart_size = 0\n", "jsonl", "3: part_size is 0.0 MiB, expected more than 0"),
        ("\n[text]\npart_size = 1\n", "dump", "3: --part-size goes with files of records"),
        ("\n[text]\neval_articles = -1\n", "articles", "3: eval_articles is -1, expected 0 or more"),
        ("\n[text]\neval_articles = 5\n", "jsonl", "3: --eval-articles goes with articles and books"),
    ],
)
def test_a_fault_on_beam_is_one_line_with_file_and_line(text, kind, message, source, tmp_path, capsys):
    config = written(tmp_path, text)
    words = ["--input", str(source), "--input-kind", kind, "--output", str(tmp_path / "out")]
    assert beam([*words, "--config", str(config), "--vocab", str(VOCABULARY)]) == 2
    found = capsys.readouterr().err
    assert found.startswith(f"beam_pipelines.prepare: error: {config}:{message}"), found
    assert found.count("\n") == 1
    assert not (tmp_path / "out").exists()
