"""Values of magic words such as ``{{PAGENAME}}``: the title of the page, parts of the title, and the date."""

import datetime


def make_magic_words(title: str, namespace_keys: dict[str, str], day: datetime.date) -> dict[str, str]:
    """Return the value of each magic word on a page, by name.

    title: title of the page.
    namespace_keys: number of each namespace, by name.
    day: the values of dates and times are those at midnight of this day.
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
