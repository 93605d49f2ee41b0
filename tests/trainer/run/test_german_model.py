"""A model of German by the commands of docs/training.md: text, tokeniser, data, run, export, words."""

import json
import re
import shlex
from pathlib import Path

import pytest
import transformers

from tests.support.commands import Outcome, Program
from tests.support.paths import ROOT
from tests.support.training_runs import Trainer

LINES = """\
Am Rand der kleinen Stadt steht eine alte Mühle.
Der Müller heißt Jakob, und seine Katze heißt Minka.
Jeden Morgen öffnet er die Tür und hört dem Bach zu.
Im Frühling steigt das Wasser, z. B. nach langem Regen.
Dann dreht sich das Rad schneller als im Sommer.
Die Nachbarin wohnt in Haus Nr. 7 und backt dunkles Brot.
Sie kauft das Mehl in der Mühle und zahlt mit Äpfeln.
Minka schläft am liebsten auf den warmen Säcken.
Wenn Mäuse kommen, wacht sie auf und läuft durch das Haus.
Im Herbst fahren die Bauern mit ihren Wagen über die Brücke.
Sie bringen Weizen, Roggen und Hafer.
Der Müller wiegt die Säcke und schreibt alles in ein Buch.
Am Abend brennt eine Lampe im Fenster.
Die Kinder der Stadt erzählen, dass die Mühle singen kann.
Jakob lacht darüber, denn es ist nur der Wind im Dach.
Im Winter ist der Bach gefroren, und das Rad steht still.
Dann flickt er die Säcke und trinkt heißen Tee.
Die Nachbarin bringt ihm Brot und neue Geschichten.
Einmal fror sogar die Tür zu, und Minka saß draußen.
Sie miaute so laut, dass die halbe Straße wach wurde.
Seitdem hat die Tür eine kleine Klappe.
Wer im Mai zur Mühle kommt, sieht weiße Blüten am Ufer.
Der Weg dorthin führt über drei Brücken und eine Wiese.
Manchmal sitzt ein Fischer am Ufer und schweigt.
"""
ROOM = {
    "segment": "--workers=1",
    "train-vocab": "--size=420",
    "create": "--max-seq-length=32 --max-predictions-per-seq=5 --dupe-factor=2 --workers=1",
    "pretrain": "--hidden-size=32 --num-hidden-layers=1 --num-attention-heads=2 --batch-size=8 --steps=12 "
    "--warmup=2 --max-seq-length=32 --max-predictions-per-seq=5 --device=cpu --no-progress-bar --no-logs",
    "predict": "--num=4 --json",
}
"""Flags that make a command of the page small."""


def commands_of_page() -> list[list[str]]:
    """The words of each command in the section's block."""
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    section = page.split("## A model of another language")[1]
    block = re.findall(r"```\n(.*?)```", section, re.DOTALL)[0].replace("\\\n", " ")
    return [shlex.split(line) for line in block.splitlines()]


@pytest.mark.thorough
def test_a_german_model_from_text_to_words(
    german: Path, bertdata: Program, trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texte").mkdir()
    for number, between in enumerate("\n \n \n "):
        lines = LINES.splitlines()[number * 3 :] * 4
        Path(f"texte/{number}.txt").write_text(between.join(lines), encoding="utf-8")
    done: dict[str, Outcome] = {}
    for words in commands_of_page():
        program, name = (bertdata, words[1]) if words[0] == "bertdata" else (trainer, words[3])
        rest = words[1:] if words[0] == "bertdata" else words[3:]
        done[name] = program(*rest, *ROOM.get(name, "").split())
        assert done[name].status == 0, done[name].err
    assert list(done) == ["segment", "train-vocab", "create", "pretrain", "convert", "predict"]
    sentences = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("teile").glob("part-*")))
    assert "Die Nachbarin wohnt in Haus Nr. 7 und backt dunkles Brot.\n" in sentences
    assert Path("lauf/tokenizer.json").read_bytes() == Path("tokenizer.json").read_bytes()
    assert Path("modell/tokenizer.json").read_bytes() == Path("tokenizer.json").read_bytes()
    text = commands_of_page()[-1][-1]
    fill = transformers.pipeline("fill-mask", "modell", top_k=4)
    guesses = json.loads(done["predict"].out)
    assert len(guesses) == 1
    expected = fill(text)
    assert [share for _, share in guesses[0]] == pytest.approx([one["score"] for one in expected], rel=1e-3)
    whole = [(word, one["token_str"]) for (word, _), one in zip(guesses[0], expected, strict=True)]
    assert [word for word, wanted in whole if "\ufffd" not in wanted] == [
        wanted for _, wanted in whole if "\ufffd" not in wanted
    ]
    assert bertdata("verify-md5", "daten").status == 0
