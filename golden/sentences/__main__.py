"""Add the sentences that the installed nltk makes to the golden ones: ``python -m golden.sentences``.

Needs nothing but nltk, of a Python that its release runs on. ``cases.json`` holds the texts, small tables,
and for each release its program and the sentences of each text.
"""

import json
import platform
from pathlib import Path

import nltk
import regex
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

CASES = Path(__file__).parent / "cases.json"


def main():
    golden = json.loads(CASES.read_text())
    tokenizer = PunktSentenceTokenizer(read_parameters(golden["tables"]))
    release = nltk.__version__
    python = platform.python_version()
    golden["programs"][release] = f"nltk {release}, regex {regex.__version__}, Python {python}"
    for case in golden["cases"]:
        case[release] = tokenizer.tokenize(case["text"])
    CASES.write_text(dump(golden))


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


def dump(golden):
    """JSON in ASCII, one case a line."""
    head = [f' "{name}": {json.dumps(golden[name], sort_keys=True)}' for name in ("programs", "tables")]
    cases = ",\n".join("  " + json.dumps(case) for case in golden["cases"])
    return "{\n" + ",\n".join([*head, ' "cases": [\n' + cases + "\n ]"]) + "\n}\n"


if __name__ == "__main__":
    main()
