"""Builders of a Wikipedia dump's head and pages, in MediaWiki's export format."""

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="10" case="first-letter">Template</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
      <namespace key="828" case="first-letter">Module</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def page(
    title: str,
    text: str | None,
    *,
    number: int,
    namespace: int | None = 0,
    redirect: str | None = None,
    day: str = "2019-12-31",
) -> str:
    """Return a page in MediaWiki's export format. text: None for an element without text."""
    body = (
        '<text bytes="0" />'
        if text is None
        else f'<text bytes="{len(text)}" xml:space="preserve">{_escaped(text)}</text>'
    )
    lines = [
        "  <page>",
        f"    <title>{_escaped(title)}</title>",
        *([] if namespace is None else [f"    <ns>{namespace}</ns>"]),
        f"    <id>{number}</id>",
        *([] if redirect is None else [f'    <redirect title="{redirect}" />']),
        "    <revision>",
        f"      <id>{1000 + number}</id>",
        f"      <timestamp>{day}T04:50:23Z</timestamp>",
        "      <contributor>",
        "        <username>Someone</username>",
        "        <id>77</id>",
        "      </contributor>",
        f"      {body}",
        "    </revision>",
        "  </page>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text
