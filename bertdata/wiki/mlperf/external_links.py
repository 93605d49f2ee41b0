"""Replaces external links: ``[http://example.org label]`` becomes its label."""

import re

_PROTOCOLS = (
    *(
        "bitcoin:",
        "ftp://",
        "ftps://",
        "geo:",
        "git://",
        "gopher://",
        "http://",
        "https://",
        "irc://",
        "ircs://",
    ),
    *(
        "magnet:",
        "mailto:",
        "mms://",
        "news:",
        "nntp://",
        "redis://",
        "sftp://",
        "sip:",
        "sips:",
        "sms:",
        "ssh://",
    ),
    *("svn://", "tel:", "telnet://", "urn:", "worldwind://", "xmpp:", "//"),
)
_ADDRESS = r"""[^\[\]<>"\x00-\x20\x7F\s]"""
_LABEL_CHARACTER = r"[^\[\]\x00-\x08\x0A-\x1F]"
_LINK = re.compile(
    rf"\[(?:{'|'.join(map(re.escape, _PROTOCOLS))}){_ADDRESS}+(?!{_ADDRESS})\s*(?!\s)"
    rf"((?:{_LABEL_CHARACTER}|\[\[{_LABEL_CHARACTER}+\]\])*)\]",
    re.IGNORECASE,
)
_IMAGE = re.compile(
    rf"https?://{_ADDRESS}+/[A-Za-z0-9_.,~%\-+&;#*?!=()@\x80-\xFF]+\.(?:gif|png|jpg|jpeg)", re.IGNORECASE
)


def replace_external_links(text: str) -> str:
    """Replace each link in single brackets by its label.

    If the label is the URL of an image, it is removed as well.
    """
    return _LINK.sub(lambda link: "" if _IMAGE.fullmatch(link[1]) else link[1], text)
