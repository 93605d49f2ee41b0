"""Give each file of ``languages/`` the rows of its language's tables that its texts can meet.

``python -m golden.sentences.rows PUNKT_TAB``, NLTK's directory with a folder for each language. A row is
taken where each of its words stands in the texts, or is any number. Then ``python -m golden.sentences``.
"""

import json
import re
import sys
from pathlib import Path

from golden.sentences.__main__ import LANGUAGES, dump

TABLES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def main(punkt_tab):
    for path in sorted(LANGUAGES.glob("*.json")):
        golden = json.loads(path.read_text(encoding="utf-8"))
        text = "\n".join(case["text"].lower() for case in golden["cases"])
        golden["tables"] = {
            name: rows_of((Path(punkt_tab) / path.stem / name).read_text(encoding="utf-8"), name, text)
            for name in TABLES
        }
        path.write_text(dump(golden, is_ascii=False), encoding="utf-8")


def rows_of(table, name, text):
    """The table's rows whose words stand in the text."""
    rows = table.removesuffix("\n").split("\n") if table else []
    words = 1 if name == "ortho_context.tab" else 2
    return sorted(row for row in rows if all(stands_in(word, text) for word in row.split("\t")[:words]))


def stands_in(word, text):
    """True for a word of the text, with no letter beside its own ones, and for the type of any number."""
    if word == "##number##":
        return True
    first, last = (r"(?<!\w)" if word[:1].isalnum() else ""), (r"(?!\w)" if word[-1:].isalnum() else "")
    return word in text and re.search(first + re.escape(word) + last, text) is not None


if __name__ == "__main__":
    main(*sys.argv[1:])
