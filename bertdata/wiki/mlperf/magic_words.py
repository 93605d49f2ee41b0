"""Magic words: names of calls that stand for the page's title, parts of the title, or the time."""

import datetime


def make_magic_words(title: str, namespace_keys: dict[str, str], day: datetime.date) -> dict[str, str]:
    """Return the value of each word for the page with this title, at midnight of the day.

    namespace_keys: key of each namespace, by name.
    """
    namespace, colon, page = title.partition(":")
    if not colon:
        namespace, page = "", title
    base, slash, subpage = page.rpartition("/")
    return {
        "!": "|",
        "NAMESPACE": namespace,
        "NAMESPACENUMBER": namespace_keys.get(namespace, "0"),
        "PAGENAME": page,
        "FULLPAGENAME": title,
        "BASEPAGENAME": base if slash else page,
        "SUBPAGENAME": subpage if slash else "",
        "ROOTPAGENAME": page.partition("/")[0],
        "CURRENTYEAR": f"{day.year:04d}",
        "CURRENTMONTH": f"{day.month:02d}",
        "CURRENTDAY": f"{day.day:02d}",
        "CURRENTHOUR": "00",
        "CURRENTTIME": "00:00:00",
    }
