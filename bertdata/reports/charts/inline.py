"""Conversion of matplotlib's SVG for HTML pages: identifiers become unique, and colours and tooltips are
added.
"""

import re
from xml.etree import ElementTree

from bertdata.io.terminal import escape_unprintable
from bertdata.reports.charts.chart import Tooltips
from bertdata.reports.charts.colours import LIGHT

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_DROPPED = {f"{{{_SVG}}}{name}" for name in ("metadata", "style", "script", "foreignObject")}
_REFERENCE = re.compile(r"(^|url\()#([\w.-]+)")
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
_COLOUR = re.compile("|".join(_VARIABLES))


def convert_to_inline(svg: bytes, name: str, tooltips: Tooltips) -> str:
    """Return a drawing as an element of an HTML page.

    The element has the class ``chart`` and no size. The page that contains it sets its size, role and label.
    Elements that have a tooltip get the class ``hit``.

    name: text in front of every identifier that is kept.
    tooltips: tooltips, by the identifier of the element.
    """
    root = ElementTree.fromstring(svg)
    _remove_metadata(root)
    for element in root.iter():
        _add_tooltips(element, tooltips)
    _rename_identifiers(root, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("class", "chart")
    text = ElementTree.tostring(_remove_namespace(root), encoding="unicode")
    return _COLOUR.sub(lambda found: _VARIABLES[found[0]], text)


def _remove_metadata(element: ElementTree.Element) -> None:
    """Remove metadata, styles and scripts from an SVG element."""
    for child in list(element):
        if child.tag in _DROPPED:
            element.remove(child)
        else:
            _remove_metadata(child)


def _add_tooltips(element: ElementTree.Element, tooltips: Tooltips) -> None:
    """Add the tooltips to an element that has any."""
    said = tooltips.get(element.get("id", ""))
    if said is None:
        return
    element.set("class", "hit")
    parts = [element]
    if not isinstance(said, str):
        parts = list(element.iter(f"{{{_SVG}}}use"))
    for part, text in zip(parts, [said] if isinstance(said, str) else said, strict=False):
        title = ElementTree.Element(f"{{{_SVG}}}title")
        title.text = escape_unprintable(text)
        part.insert(0, title)


def _rename_identifiers(root: ElementTree.Element, name: str) -> None:
    """Remove identifiers that nothing refers to. Put the name of the drawing in front of all others."""
    used = {
        reference
        for element in root.iter()
        for value in element.attrib.values()
        for _, reference in _REFERENCE.findall(value)
    }
    for element in root.iter():
        if (found := element.attrib.pop("id", None)) in used:
            element.set("id", f"{name}-{found}")
        for key, value in element.attrib.items():
            if key != "d":
                element.set(key, _REFERENCE.sub(rf"\1#{name}-\2", value))
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))


def _remove_namespace(root: ElementTree.Element) -> ElementTree.Element:
    """Remove the XML namespace from the names of elements, because SVG inside HTML does not need it."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
