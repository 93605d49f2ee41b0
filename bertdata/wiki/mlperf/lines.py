"""Lines of an article: headings, lists and remains of tables are dropped."""


def keep_lines(text: str) -> list[str]:
    """The lines of the article's body. The first rule that fits a line decides."""
    kept: list[str] = []
    in_list = heading_pending = False
    for line in text.split("\n"):
        if not line:
            if in_list or (kept and kept[-1]):
                kept.append("")
            in_list = False
        elif line.startswith("==") and "==" in line[2:]:
            in_list, heading_pending = False, True
        elif line.startswith("++"):
            kept += _old_title(line[2:-2])
        elif line[0] == ":":
            continue
        elif line[0] in "*#;":
            in_list = True
        elif in_list:
            kept.append(line)
            in_list = False
        elif _is_remains(line):
            continue
        elif heading_pending or line[0] != " ":
            kept.append(line)
            heading_pending = False
    return kept


def _old_title(title: str) -> list[str]:
    if not title:
        return []
    return [title if title[-1] in "!?" else title + "."]


def _is_remains(line: str) -> bool:
    """Tables, templates, a bracketed line, or only dots and dashes."""
    if line[0] in "{|" or line[-1] == "}":
        return True
    return (line[0] == "(" and line[-1] == ")") or not line.strip(".-")
