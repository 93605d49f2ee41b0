"""Variants of a run's ``state.json`` for tests.soak.hostile_checkpoints: sound but for one field."""

import json
from collections.abc import Iterator
from hashlib import md5
from typing import Any

ODD: tuple[Any, ...] = (None, True, 1, -5, 1.5, 1e999, 1 << 70, "../../x", "", [], [1], {}, {"x": 1})
"""Values of other types than a field has, or than it may have."""


def retyped(text: str) -> Iterator[tuple[str, str]]:
    """Each variant of a state.json in words, and its text: a field left out, or with an odd value."""
    values = json.loads(text)
    del values["md5"]
    for place in places(values):
        yield f"without {place}", sealed(changed(values, place, None, remove=True))
        for odd in ODD:
            yield f"{place} = {odd!r}", sealed(changed(values, place, odd))


def sealed(values: dict[str, Any]) -> str:
    """A state.json with the md5 that fits its values."""
    digest = md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
    return json.dumps({**values, "md5": digest}, indent=1)


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, and of the first item of each list."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for name, item in inner:
        yield (name,)
        yield from ((name, *path) for path in places(item))


def changed(value: Any, place: tuple[Any, ...], new: Any, *, remove: bool = False) -> Any:
    """A copy of the value with another item at the place, or with none."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(place) > 1:
        copy[place[0]] = changed(value[place[0]], place[1:], new, remove=remove)
    elif remove:
        del copy[place[0]]
    else:
        copy[place[0]] = new
    return copy
