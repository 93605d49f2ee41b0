"""Parse the element <siteinfo> at the start of a dump: the site's URL and its namespaces."""

import re
from typing import NamedTuple
from xml.parsers import expat

from bertdata.errors import InputError

_TAG = r"<(/?\w+)[^>]*>([^<]*)"
_KEY = r'key="(\d*)'
TEMPLATE_KEY, MODULE_KEY = "10", "828"


class SiteInfo(NamedTuple):
    """Description of the wiki from the dump's <siteinfo>. Characters such as ``&`` stay escaped.

    url_base: start of the articles' URLs.
    namespaces: name and key of each namespace, in order.
    template_namespace, module_namespace: names of these two namespaces, without a colon.
    """

    url_base: str
    namespaces: tuple[tuple[str, str], ...]
    template_namespace: str
    module_namespace: str = ""


def parse_head(head: bytes, name: str, extractor: str) -> SiteInfo:
    """Parse the <siteinfo> of a dump, as the chosen extractor reads it.

    head: text of the dump before its first page.
    extractor: "mlperf" or "3.1.0".
    name: path of the dump, for errors.

    Raises InputError if the text is not MediaWiki XML, or declares a document type.
    """
    site = _parse_xml(head, name)
    return _read_as_mlperf(head, name) if extractor == "mlperf" else site


def _read_as_mlperf(head: bytes, name: str) -> SiteInfo:
    """Parse the <siteinfo> as MLPerf's extractor does: only the first tag of each line counts."""
    base = template = module = ""
    namespaces = []
    for line in head.decode(errors="replace").split("\n"):
        tag = re.search(_TAG, line)
        if tag is None:
            continue
        if tag[1] == "/siteinfo":
            break
        if tag[1] == "base":
            slash = tag[2].rfind("/")
            # WikiExtractor cuts the URL at its last slash. Without a slash (-1), this drops the last
            # character
            base = tag[2][:slash]
        elif tag[1] == "namespace":
            key = re.search(_KEY, tag[0])
            namespaces.append((tag[2], key[1] if key else ""))
            template = tag[2] if namespaces[-1][1] == TEMPLATE_KEY else template
            module = tag[2] if namespaces[-1][1] == MODULE_KEY else module
    else:
        raise InputError(
            f"{name}: no line with </siteinfo> before the first page, without which MLPerf's extractor "
            "extracts nothing; expected the head of a MediaWiki dump"
        )
    return SiteInfo(
        url_base=base,
        namespaces=tuple(namespaces),
        template_namespace=template,
        module_namespace=module,
    )


def _parse_xml(head: bytes, name: str) -> SiteInfo:
    """Parse the <siteinfo> as wikiextractor 3.1.0 does, and check that it is XML of MediaWiki.

    The XML parser sees only the text before the first page, and refuses a document type, which every entity
    declaration needs. So neither an entity bomb nor an external entity is ever read.
    """
    parser = expat.ParserCreate()
    root: list[str] = []
    element: list[str] = []
    key = base = module = ""
    template = "Template"  # MediaWiki's default, if the head does not name it
    namespaces = [("Template", TEMPLATE_KEY)]  # wikiextractor adds this English name for every language

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal key
        if not root:
            root.append(tag)
        element[:] = []
        key = attributes.get("key", "")

    def end(tag: str) -> None:
        nonlocal base, template, module
        text = _escape("".join(element))
        element[:] = []
        if tag == "base":
            base = text
        elif tag == "namespace":
            namespaces.append((text, key))
            template = text if key == TEMPLATE_KEY and text else template
            module = text if key == MODULE_KEY else module

    def refuse(*_: object) -> None:
        raise InputError(
            f"{name}: declares a document type, which a MediaWiki dump never does; refused for safety"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = element.append
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(head, False)
    except expat.ExpatError as error:
        raise InputError(
            f"{name}: line {error.lineno}: {expat.ErrorString(error.code)}, expected a MediaWiki dump in XML"
        ) from None
    if not root:
        found = "holds no element" if head.strip() else "is empty"
        raise InputError(f"{name}: {found}, expected a MediaWiki dump in XML; download it again")
    if root[0] != "mediawiki":
        raise InputError(f"{name}: the outermost element is {root[0]!r}, expected 'mediawiki'")
    return SiteInfo(
        url_base=base[: base.rfind("/")],
        namespaces=tuple(namespaces),
        template_namespace=template,
        module_namespace=module,
    )


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")
