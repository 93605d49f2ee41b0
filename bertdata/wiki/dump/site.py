"""Parses the element <siteinfo> at the start of a dump, which has the URL of the site and its namespaces."""

import re
from typing import NamedTuple
from xml.parsers import expat

from bertdata.errors import InputError

_TAG = r"<(/?\w+)[^>]*>([^<]*)"
_KEY = r'key="(\d*)'
TEMPLATE_KEY, MODULE_KEY = "10", "828"


class SiteInfo(NamedTuple):
    """Description of a wiki, from the dump's <siteinfo>. Characters such as ``&`` stay escaped.

    url_base: start of the URLs of articles.
    namespaces: name and number of each namespace, in the order of the dump.
    template_namespace: name of the namespace of templates, without a colon.
    module_namespace: name of the namespace of Lua modules, without a colon.
    """

    url_base: str
    namespaces: tuple[tuple[str, str], ...]
    template_namespace: str
    module_namespace: str = ""


def parse_head(head: bytes, name: str, extractor: str) -> SiteInfo:
    """Parse the <siteinfo> of a dump, in the same way as an extractor.

    head: text of the dump before its first page.
    name: path of the dump, for error messages.
    extractor: the extractor, "mlperf" or "3.1.0".

    Raises InputError if the text is not XML of MediaWiki, or if it declares a document type.
    """
    site = _parse_xml(head, name)
    return _read_as_mlperf(head, name) if extractor == "mlperf" else site


def _read_as_mlperf(head: bytes, name: str) -> SiteInfo:
    """Parse the <siteinfo> as MLPerf's extractor does. It looks only at the first tag of each line."""
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
            # WikiExtractor cuts the URL at its last slash. If there is no slash (-1), this cuts off the last
            # character.
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

    The XML parser gets only the text before the first page, and refuses a document type. An entity can be
    declared only in a document type, so neither an entity bomb nor an external entity is ever read.
    """
    parser = expat.ParserCreate()
    root: list[str] = []
    element: list[str] = []
    key = base = module = ""
    # This is MediaWiki's default, which is used if the dump does not name the namespace.
    template = "Template"
    namespaces = [("Template", TEMPLATE_KEY)]  # For every language, wikiextractor adds this English name.

    def open_element(tag: str, attributes: dict[str, str]) -> None:
        """Keep the name of the root element, and the number of the namespace whose name comes next."""
        nonlocal key
        if not root:
            root.append(tag)
        element[:] = []
        key = attributes.get("key", "")

    def close_element(tag: str) -> None:
        """Store the text of the element that ends."""
        nonlocal base, template, module
        text = _escape("".join(element))
        element[:] = []
        if tag == "base":
            base = text
        elif tag == "namespace":
            namespaces.append((text, key))
            template = text if key == TEMPLATE_KEY and text else template
            module = text if key == MODULE_KEY else module

    def refuse_document_type(*_: object) -> None:
        """Raise InputError, because the XML declares a document type or an entity."""
        raise InputError(
            f"{name}: declares a document type, which a MediaWiki dump never does; refused for safety"
        )

    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.CharacterDataHandler = element.append
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse_document_type
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
