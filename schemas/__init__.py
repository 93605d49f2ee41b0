"""JSON Schemas, and the declaration of the fields of an example; data only.

Everything that reads or writes a file with named fields asks here, so a field is declared once.
"""

import json
from importlib import resources
from typing import Any


def load_schema(name: str) -> dict[str, Any]:
    """The parsed contents of ``schemas/<name>.json``."""
    text = resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
