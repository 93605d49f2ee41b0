"""Cards of models and datasets: a README.md with a heading in YAML, as Hugging Face's hub reads it.

The heading's values are written in JSON's form, which YAML reads too, so that no value can be taken for
another type or break out of its line. The names of its keys are those of the hub's documentation:
https://huggingface.co/docs/hub/model-cards and https://huggingface.co/docs/hub/datasets-cards.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bertdata.dataset.companion_files import make_dataset_card
from bertdata.lineages.read import read_lineage
from bertdata.lineages.step import CREATE, FEATURES, FINETUNE, PRETRAIN, Input, Lineage, Step
from bertdata.trust.described_dataset import find_described_dataset
from bertdata.trust.licences import find_languages, find_licences

_TRAINING = (PRETRAIN, FINETUNE)


class EvaluationMeasure(NamedTuple):
    """A result of an evaluation.

    name: name of the measure, such as masked_lm_accuracy.
    words: name of the measure in words.
    """

    name: str
    words: str
    value: float


class LastEvaluation(NamedTuple):
    """The last evaluation of a run up to the checkpoint that was exported.

    data: the evaluation data, as the run's settings name them.
    update: number of the update after which the run evaluated.
    measures: the results.
    """

    data: str
    update: int
    measures: Sequence[EvaluationMeasure]


class ModelFacts(NamedTuple):
    """Facts that the card of a model states in addition to the model's lineage.

    name: name of the model.
    pipeline: the hub's name for what the model does, such as fill-mask.
    settings: settings of the training that differ from the defaults, by name.
    base_model: name on the hub of the model that the training started from, or "".
    evaluation: results of the run. None if there are none, or if they are not known.
    without_evaluation: sentence that says why there are no results.
    """

    name: str
    pipeline: str
    settings: Mapping[str, Any]
    base_model: str = ""
    evaluation: LastEvaluation | None = None
    without_evaluation: str = ""


def make_model_card(lineage: Lineage, facts: ModelFacts) -> str:
    """Return the README.md of an exported model.

    lineage: the model's lineage.
    facts: what the trainer knows about the run.
    """
    languages = find_languages(lineage)
    heading: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": facts.pipeline,
        "tags": ["bertdata"],
    }
    if languages:
        heading["language"] = languages
    if facts.base_model:
        heading["base_model"] = facts.base_model
    if facts.evaluation is not None:
        heading["model-index"] = _make_model_index(facts, facts.evaluation)
    body = [
        f"# {_format_cell(facts.name)}",
        "An encoder that was trained and exported by bertdata. `lineage.json` holds every setting of every "
        "step, and the digests of all files that were read.",
        *_make_start_section(lineage, facts.base_model),
        *_make_data_section(lineage),
        *_make_settings_section(
            facts.settings,
            "The settings that differ from the trainer's defaults. `config.json` has the model's shape.",
        ),
        *_make_evaluation_section(facts),
        *_make_language_section(languages),
        *_make_licence_section(lineage, "The licence of the model itself is for its publisher to name."),
        *_make_steps_section(lineage),
        *_make_rebuild_section("MODEL", "the directory of this file"),
    ]
    return _format_heading(heading) + "\n" + "\n\n".join(body) + "\n"


def make_full_dataset_card(path: str) -> str:
    """Return the README.md of a dataset, with everything that its lineage tells.

    path: directory of a dataset with a manifest.
    """
    directory, manifest = find_described_dataset(path)
    lineage = read_lineage(directory)
    languages, licences = find_languages(lineage), find_licences(lineage)
    heading: dict[str, Any] = {}
    if licences:
        heading["license"] = [licence.hub_name for licence in licences]
    if languages:
        heading["language"] = languages
    heading["tags"] = ["bertdata"]
    if make_dataset_card(manifest.plan.title, manifest.plan.settings) is not None:
        # From this entry datasets.load_dataset(DIR) learns which files are shards.
        files = [{"split": "train", "path": "*.parquet"}]
        heading["configs"] = [{"config_name": "default", "data_files": files}]
    examples = sum(shard.examples for shard in manifest.shards)
    tokens = sum(shard.tokens for shard in manifest.shards)
    body = [
        f"# {manifest.plan.title}",
        f"{examples:,} examples with {tokens:,} tokens in {len(manifest.shards):,} shards, made by bertdata. "
        "`manifest.json` holds every setting, and the digests of all files.",
        *_make_data_section(lineage),
        *_make_settings_section(manifest.plan.settings.by_name, ""),
        *_make_language_section(languages),
        *_make_licence_section(lineage, ""),
        *_make_steps_section(lineage),
        *_make_rebuild_section("DATASET", "the directory of this file"),
    ]
    return _format_heading(heading) + "\n" + "\n\n".join(body) + "\n"


def _format_heading(values: Mapping[str, Any]) -> str:
    """Return the heading of a card: YAML between two lines of dashes."""
    lines = (f"{name}: {_format_yaml(value)}" for name, value in values.items())
    return "\n".join(["---", *lines, "---", ""])


def _format_yaml(value: Any) -> str:
    """Return a value in YAML on one line.

    It is JSON except for the form of small numbers and of characters such as emoji.
    """
    if isinstance(value, dict):
        items = (f"{_format_yaml(name)}: {_format_yaml(one)}" for name, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_yaml, value))}]"
    if isinstance(value, float):
        # Readers of YAML 1.1 take 1e-05 for a text, and 1.0e-05 for a number.
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, str):
        # JSON writes U+1F600 as a pair of surrogates, which YAML does not put together.
        escaped = (f"\\U{ord(one):08x}" if one > "\uffff" else json.dumps(one)[1:-1] for one in value)
        return f'"{"".join(escaped)}"'
    return json.dumps(value)


def _make_model_index(facts: ModelFacts, evaluation: LastEvaluation) -> list[dict[str, Any]]:
    """Return the results of an evaluation in the form in which the hub shows them."""
    result = {
        "task": {"type": facts.pipeline},
        "dataset": {"type": "bertdata", "name": evaluation.data},
        "metrics": [
            {"type": measure.name, "name": measure.words, "value": measure.value}
            for measure in evaluation.measures
        ],
    }
    return [{"name": facts.name, "results": [result]}]


def _make_start_section(lineage: Lineage, base_model: str) -> Iterator[str]:
    """Yield the paragraphs about the weights that the training started from.

    base_model: name of the model on the hub from which the first training started, or "".
    """
    yield "## Start"
    if base_model:
        yield f"The training started from [{base_model}](https://huggingface.co/{base_model})."
    trained = [step for step in lineage.list_steps() if step.name in _TRAINING]
    starts = [(step, one) for step in trained for one in step.inputs if one.role == "start"]
    if not starts:
        yield (
            "The training started from random weights." if trained else "How the weights began is not known."
        )
    for step, one in starts:
        yield f"`{step.program}` started from weights of an earlier training.{_describe_digests(one)}"


def _describe_digests(given: Input) -> str:
    """Return a sentence with the digest of an input's record or of its files, or "" without a digest."""
    if given.record is not None:
        return f" The md5 of its record is `{given.record}`."
    known = [f"`{file.name}` has the md5 `{file.md5}`" for file in given.files if file.md5]
    return f" {', '.join(known)}." if known else ""


def _make_data_section(lineage: Lineage) -> Iterator[str]:
    """Yield the paragraphs about the data: each dataset, and the files with which the lineage begins."""
    yield "## Data"
    datasets = [step for step in lineage.list_steps() if step.name in (CREATE, FEATURES)]
    rows = [
        (step.record, step.settings.get("objective", {}).get("name", ""), *map(step.facts.get, _COUNTS))
        for step in datasets
    ]
    if rows:
        yield _format_table(("md5 of the manifest", "objective", *_COUNTS), rows)
    found = [
        (one.role, file.name, file.bytes, file.md5)
        for step in lineage.list_steps()
        for one in step.inputs
        if one.source
        for file in one.files
    ]
    sources = list(dict.fromkeys(found))
    if sources:
        yield "It was made from these files:"
        yield _format_table(("use", "file", "bytes", "md5"), sources[:_MOST_FILES])
        if len(sources) > _MOST_FILES:
            yield f"and {len(sources) - _MOST_FILES:,} more, which the manifests list."


_COUNTS = ("examples", "tokens")
_MOST_FILES = 50


def _make_settings_section(settings: Mapping[str, Any], introduction: str) -> Iterator[str]:
    """Yield the paragraphs about settings, as a table. introduction: sentences before it, or ""."""
    if settings:
        yield "## Settings"
        if introduction:
            yield introduction
        rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in settings.items()]
        yield _format_table(("setting", "value"), rows)


def _make_evaluation_section(facts: ModelFacts) -> Iterator[str]:
    """Yield the paragraphs about the results of a run."""
    evaluation = facts.evaluation
    yield "## Evaluation"
    if evaluation is None:
        yield facts.without_evaluation
        return
    yield f"After update {evaluation.update:,}, on the data `{evaluation.data}`:"
    rows = [(measure.words, f"{measure.value:.6g}") for measure in evaluation.measures]
    yield _format_table(("measure", "value"), rows)


def _make_language_section(languages: Sequence[str]) -> Iterator[str]:
    """Yield the paragraphs about the languages of the text."""
    yield "## Languages"
    yield ", ".join(languages) if languages else "The records do not name the languages of the text."


def _make_licence_section(lineage: Lineage, addition: str) -> Iterator[str]:
    """Yield the paragraphs about the licences of the text.

    addition: sentence to add at the end, or "".
    """
    yield "## Licence"
    licences = [f"[{one.name}]({one.url})" for one in find_licences(lineage)]
    told = (
        f"The text is under {' and '.join(licences)}."
        if licences
        else "The licence of the text is not known."
    )
    yield f"{told} {addition}".rstrip()


def _make_steps_section(lineage: Lineage) -> Iterator[str]:
    """Yield the paragraphs about the steps that led to the artefact, as a table."""
    yield "## Steps"
    rows = [(f"`{step.program}`", _name_inputs(step), step.record) for step in lineage.list_steps()]
    yield _format_table(("program", "read", "md5 of its record"), rows)


def _name_inputs(step: Step) -> str:
    """Return the roles of a step's inputs, separated by commas."""
    return ", ".join(dict.fromkeys(one.role for one in step.inputs))


def _make_rebuild_section(name: str, meaning: str) -> Iterator[str]:
    """Yield the paragraphs with the command that makes the artefact again.

    name: word for the artefact's directory in the command.
    meaning: what the word stands for.
    """
    yield "## Rebuild"
    yield f"This command runs all steps again and compares every md5. {name} is {meaning}."
    yield f"```\nbertdata rebuild {name} --from SOURCES --output rebuilt\n```"


def _format_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown. None becomes an empty cell."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_format_cell, line))} |" for line in lines)


def _format_cell(value: Any) -> str:
    """Return a value as the text of a table's cell, on one line and without bars that would end it."""
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("|", "\\|")
