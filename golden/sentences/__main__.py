"""Add the sentences that the installed nltk makes to the golden ones: ``python -m golden.sentences``.

Needs nothing but nltk, of a Python that its release runs on. ``cases.json`` holds the texts, small tables,
and for each release its program and the sentences of each text; so does each file of ``languages/``, with the
rows of that language's tables that its texts can meet (``python -m golden.sentences.rows PUNKT_TAB``).
"""

import json
import platform
from pathlib import Path

import nltk
import regex
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

HERE = Path(__file__).parent
LANGUAGES = HERE / "languages"


def main():
    for path in (HERE / "cases.json", *sorted(LANGUAGES.glob("*.json"))):
        add_release(path)


def add_release(path):
    """Add the installed release's sentences to a file of texts."""
    golden = json.loads(path.read_text(encoding="utf-8"))
    tokenizer = PunktSentenceTokenizer(read_parameters(golden["tables"]))
    release = nltk.__version__
    python = platform.python_version()
    golden["programs"][release] = f"nltk {release}, regex {regex.__version__}, Python {python}"
    for case in golden["cases"]:
        case[release] = tokenizer.tokenize(case["text"])
    path.write_text(dump(golden, is_ascii=path.parent != LANGUAGES), encoding="utf-8")


def read_parameters(tables):
    """Rows of the four tables, by file name."""
    parameters = PunktParameters()
    parameters.abbrev_types.update(tables["abbrev_types.txt"])
    parameters.sent_starters.update(tables["sent_starters.txt"])
    parameters.collocations.update(tuple(row.split("\t")) for row in tables["collocations.tab"])
    for row in tables["ortho_context.tab"]:
        word, flags = row.split("\t")
        parameters.ortho_context[word] = int(flags)
    return parameters


def dump(golden, is_ascii=True):
    """JSON, one case a line."""

    def text(value):
        return json.dumps(value, sort_keys=True, ensure_ascii=is_ascii)

    head = [f' "{name}": {text(golden[name])}' for name in ("programs", "tables")]
    cases = ",\n".join("  " + json.dumps(case, ensure_ascii=is_ascii) for case in golden["cases"])
    return "{\n" + ",\n".join([*head, ' "cases": [\n' + cases + "\n ]"]) + "\n}\n"


if __name__ == "__main__":
    main()
