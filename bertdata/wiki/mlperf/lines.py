"""Removes the lines of an article that are not prose: headings, lists, and remains of tables."""


def keep_lines(text: str) -> list[str]:
    """Split a text into lines, and drop headings, lists and remains of tables.

    For each line, the first rule that applies decides.
    """
    kept: list[str] = []
    in_list = heading_pending = False
    for line in text.split("\n"):
        # heading_pending is True after a heading was dropped. The next line may then start with a blank.
        # in_list is True after list items were dropped. The next line of text is then kept, even if it looks
        # like the rest of a table.
        if not line:
            # Keep one empty line between paragraphs. Keep one more empty line after a list.
            if in_list or (kept and kept[-1]):
                kept.append("")
            in_list = False
        elif line.startswith("==") and "==" in line[2:]:
            in_list, heading_pending = False, True
        elif line.startswith("++"):
            kept += _format_old_title(line[2:-2])
        elif line[0] == ":":
            continue
        elif line[0] in "*#;":
            in_list = True
        elif in_list:
            kept.append(line)
            in_list = False
        elif _is_remnant(line):
            continue
        elif heading_pending or line[0] != " ":
            kept.append(line)
            heading_pending = False
    return kept


def _format_old_title(title: str) -> list[str]:
    """Return a title that is marked with ``++`` as a list with a line that ends like a sentence.

    The list is empty if the title is empty.
    """
    if not title:
        return []
    return [title if title[-1] in "!?" else title + "."]


def _is_remnant(line: str) -> bool:
    """Return True if a line is not prose.

    Such lines are remains of tables or templates, a line in parentheses, and a line of dots and dashes.
    """
    if line[0] in "{|" or line[-1] == "}":
        return True
    return (line[0] == "(" and line[-1] == ")") or not line.strip(".-")
