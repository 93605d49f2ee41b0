"""First step of NVIDIA's text processing: turn each extracted article into one line."""

from dataclasses import dataclass

from bertdata.text.doc_tags import ArticleCounter


@dataclass(frozen=True, kw_only=True, slots=True)
class FormattedText:
    """Articles of a file, one line each.

    articles: the lines. An article without text is an empty line.
    outside: number of lines with text between ``</doc>`` and the next ``<doc id=``. They are dropped, as in
        NVIDIA's program.
    """

    articles: list[str]
    outside: int


def format_articles(data: bytes, name: str) -> FormattedText:
    r"""Join the lines of each article into one line, without the title.

    White space at the end of each line is removed, as by str.rstrip, and a space follows it instead. Lines
    end at ``\n`` only. Raises InputError if the file has no articles or if an article is not closed.
    """
    watch = ArticleCounter(name)
    articles: list[str] = []
    lines: list[str] = []
    is_open = False
    outside = 0
    for number, line in enumerate(data.decode().split("\n"), 1):
        # As in NVIDIA's program, "<doc id=" and "</doc>" count anywhere in a line. The first line after the
        # opening tag is the title. It is collected like the article's other lines and dropped when the
        # article is closed.
        if "<doc id=" in line:
            watch.note_opening(line.encode(), number)
            is_open = True
        elif "</doc>" in line:
            watch.note_closing()
            is_open = False
            articles.append("".join([text.rstrip() + " " for text in lines[1:] if text]))
            lines = []
        elif is_open:
            lines.append(line)
        elif line.strip():
            outside += 1
    watch.finish()
    return FormattedText(articles=articles, outside=outside)


def join_formatted_articles(articles: list[str]) -> bytes:
    """Return the articles as NVIDIA's program writes them: each in one line, followed by an empty line."""
    return "".join([article + "\n\n" for article in articles]).encode()
