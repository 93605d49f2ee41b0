"""JSON Schemas of every file with named fields that bertdata and the trainer read or write.

Code that reads or writes such a file loads its schema here, so each field is declared once.
"""

import json
from importlib import resources
from typing import Any


def load_schema(name: str) -> dict[str, Any]:
    """Return the parsed schema ``schemas/<name>.json``."""
    text = resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
