"""Features, fine-tuning and answers with the tokeniser of a tokenizer.json."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from bertdata.dataset.verify import verify_files
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.fine_tuning import evaluations, finetune_words, squad_file, table
from tests.support.tokenizer_files import TRAINERS
from tests.support.training_runs import Trainer, refuse, words
from trainer.tasks.data_file import DataFile
from trainer.tasks.squad.features import SquadSettings, make_features
from trainer.tasks.squad.places import extract_text_by_places
from trainer.tasks.squad.reading import read_squad

CONTEXT = (
    "  The café opened in Zürich,\n1897 (or “1898”); its owner was Ada Lovell-Özil's aunt.\nÉtienne paid."
)
ANSWERS = (
    "café",
    "Zürich",
    "1897",
    "1898",
    "Lovell-Özil",
    "Ada Lovell-Özil's aunt",
    "Étienne",
    "Zürich,\n1897",
)


@pytest.fixture(scope="module")
def files(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tokenizer.json of each kind, trained on the sample corpus and the context."""
    folder = tmp_path_factory.mktemp("files")
    lines = [*(line for part in corpus for line in part.read_text().splitlines()), CONTEXT]
    return {kind: train(folder / f"{kind}.json", lines, 2000) for kind, train in TRAINERS.items()}


def squad_of(answers: tuple[str, ...]) -> bytes:
    entries = [
        {
            "id": str(number),
            "question": f"Which one is number {number}?",
            "answers": [{"text": answer, "answer_start": CONTEXT.index(answer)}],
        }
        for number, answer in enumerate(answers)
    ]
    return json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": entries}]}]}).encode()


@pytest.mark.parametrize("kind", TRAINERS)
def test_an_answers_tokens_are_those_of_its_characters(kind: str, files: dict[str, Path]) -> None:
    tokenizer = tokenizer_of(find_tokenizer_json(str(files[kind]), {}))
    library = Tokenizer.from_file(str(files[kind]))
    whole = library.encode(CONTEXT, add_special_tokens=False)
    found = read_squad(DataFile("questions", squad_of(ANSWERS)), training=True, negatives=False)
    assert not found.skipped
    settings = SquadSettings(max_seq_length=256, max_query_length=32, training=True)
    features = make_features(found.questions, tokenizer, settings)
    assert len(features) == len(ANSWERS)
    vocabulary = tokenizer.vocabulary
    for feature, question, answer in zip(features, found.questions, ANSWERS, strict=True):
        assert feature.ids(vocabulary) == library.encode(question.text, CONTEXT).ids
        assert feature.start is not None
        assert feature.end is not None
        assert feature.context.places is not None
        first, last = feature.start - feature.document, feature.end - feature.document
        said = extract_text_by_places(question.context, feature.context.places, first, last)
        assert answer in said
        start = CONTEXT.index(answer)
        for place, (one, stop) in enumerate(whole.offsets):
            part = CONTEXT[one:stop]
            one, stop = stop - len(part.lstrip()), one + len(part.rstrip())
            if part.strip():
                assert (first <= place <= last) == (stop > start and one < start + len(answer))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("task", ["squad", "sst-2"])
def test_features_are_a_dataset_with_the_tokeniser(
    kind: str, task: str, files: dict[str, Path], trainer: Trainer, tmp_path: Path
) -> None:
    source = squad_file(tmp_path / "train.json") if task == "squad" else tmp_path / "train.tsv"
    if task != "squad":
        source.write_text("sentence\tlabel\nA warm light.\t1\nThe light is out.\t0\n")
    flags = ("--training", "--max-query-length=16") if task == "squad" else ()
    given = ("--task", task, source, f"--vocab={files[kind]}", "--max-seq-length=64", *flags)
    assert trainer("features", *given, f"--dataset={tmp_path / 'set'}").status == 0
    assert verify_files(str(tmp_path / "set"), content=True).sound
    assert (tmp_path / "set" / "tokenizer.json").read_bytes() == files[kind].read_bytes()
    settings = json.loads((tmp_path / "set" / "manifest.json").read_text())["settings"]
    assert settings["tokenizer"]["kind"] == kind
    assert "lower_case" not in settings["tokenizer"]
    padding = {"bpe": 1, "unigram": 2}[kind]
    assert settings["container"]["padding_id"] == padding
    assert trainer("features", *given, f"--output={tmp_path / 'lines'}").status == 0
    line = json.loads((tmp_path / "lines").read_text().splitlines()[0])
    rest = line["input_ids"][sum(line["input_mask"]) :]
    assert set(rest) == {padding}
    refuse(
        trainer("features", *given, "--no-lower-case", f"--output={tmp_path / 'x'}"), 2, "how text is read"
    )
    refuse(
        trainer("features", *given, "--dialect=nvidia", f"--output={tmp_path / 'x'}"), 2, "--dialect nvidia"
    )


@pytest.mark.thorough
def test_a_model_of_bpe_learns_answers_and_labels(
    files: dict[str, Path], corpus: list[Path], trainer: Trainer, tmp_path: Path
) -> None:
    import bertdata as face

    sizes = {"max_seq_length": 48, "max_predictions_per_seq": 7, "dupe_factor": 1}
    face.create(corpus[:1], tmp_path / "data", tokenizer=files["bpe"], workers=1, objective="mlm", **sizes)
    roberta = ("--model-type=roberta", "--type-vocab-size=1")
    start = words(tmp_path / "data", tmp_path / "start", "--steps=3", "--no-logs", *roberta)
    assert trainer(*start).status == 0
    squad = squad_file(tmp_path / "squad.json", 48)
    run = tmp_path / "squad"
    more = (f"--train-file={squad}", f"--eval-file={squad}", "--num-train-epochs=15")
    done = trainer(*finetune_words("squad", tmp_path / "start", run, *more, "--max-seq-length=64"))
    assert done.status == 0, done.err
    assert evaluations(run)[-1]["exact_match"] > 90
    assert (run / "tokenizer.json").read_bytes() == files["bpe"].read_bytes()
    context = "Anna went to the bridge . Later Peter saw the garden ."
    assert trainer("predict", run, "Where was Anna ?", "--context", context).out == "bridge\n"
    assert trainer("convert", run, tmp_path / "form").status == 0
    asked = ("Where was Anna ?", "--context", context, "--task=squad", "--json")
    assert json.loads(trainer("predict", tmp_path / "form", *asked).out)["answer"] == "bridge"
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "form").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "form")
    batch = tokenizer("Where was Anna ?", context, return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch)
    start, end = int(logits.start_logits.argmax()), int(logits.end_logits.argmax())
    assert tokenizer.decode(batch["input_ids"][0, start : end + 1]).strip() == "bridge"
    rows = table(tmp_path / "rows.tsv")
    more = (f"--train-file={rows}", f"--eval-file={rows}", "--num-train-epochs=10", "--text-column=text")
    task = ("sst-2", tmp_path / "start", tmp_path / "label", "--label-column=label", "--labels=good,bad")
    done = trainer(*finetune_words(*task, *more))
    assert done.status == 0, done.err
    assert evaluations(tmp_path / "label")[-1]["acc"] > 0.9
    said = trainer("predict", tmp_path / "label", "The harbour is old .").out
    assert said.split()[0] in ("good", "bad")
