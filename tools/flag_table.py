"""Write the table of other trainers' flags into docs/training.md: ``python -m tools.flag_table``.

The table is generated from ``trainer/config/foreign/``; a test compares the page with it.
"""

from pathlib import Path

from trainer.config.foreign.tables import ignored_names, other_names, translations
from trainer.config.schema import device_option_properties, properties

PAGE = Path(__file__).parent.parent / "docs" / "training.md"
BEGIN, END = "<!-- flags: python -m tools.flag_table -->\n", "<!-- end of flags -->\n"


def table() -> str:
    """The table in Markdown: every foreign name with its meaning here."""
    meanings = {name: f"`{key}`" for name, key in other_names().items()}
    for name, item in translations().items():
        meanings[name] = item["description"] + (
            " (also a key of this trainer)" if name in properties() else ""
        )
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in sorted(meanings.items()))
    accepted = ", ".join(f"`{name}`" for name in sorted(device_option_properties() | ignored_names()))
    return (
        f"| name elsewhere | here |\n|---|---|\n{rows}\n"
        f"Also accepted, and named once in the log where they have no effect on the device: {accepted}.\n"
    )


def replaced(page: str) -> str:
    """The page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


def main() -> None:
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
