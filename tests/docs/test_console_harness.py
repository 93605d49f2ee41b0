"""The harness that runs the console blocks of pages, on pages made for it."""

from pathlib import Path

import pytest

from tests.support.console_pages import Command, ConsolePage, PageFault, blocks, commands, matches


def page(tmp_path: Path, text: str) -> ConsolePage:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    return ConsolePage(path, place)


def test_commands_run_in_order_in_one_directory_with_the_files_of_the_page(tmp_path: Path) -> None:
    text = """\
<!-- file: notes/a.txt -->
```
one
```

```console
$ cat notes/a.txt
one
$ echo two \\
    > b.txt; pwd
DIR
```

```console
$ cat b.txt notes/none.txt 2>/dev/null || echo standard error comes too >&2
two
standard error comes too
```
"""
    assert page(tmp_path, text).run() == 3


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            "```console\n$ echo one\ntwo\n```\n",
            "md:2: $ echo one\nthe page shows\ntwo\nthe command prints\none",
        ),
        ("```console\n$ echo one\n```\n", "the command prints\none"),
        ("```console\n$ echo one; false\none\n```\n", "exit status 1\none"),
        ("```\n$ echo one\none\n```\n", "page.md:1: the block is neither console nor marked"),
        ("```console\nno prompt\n```\n", "line 1: a console block begins with '\\$ '"),
    ],
)
def test_a_page_that_shows_something_else_is_a_fault(tmp_path: Path, block: str, message: str) -> None:
    with pytest.raises(PageFault, match=message.replace("$ echo", r"\$ echo")):
        page(tmp_path, block).run()


def test_marks_say_what_is_not_run_and_what_fails(tmp_path: Path) -> None:
    text = """\
<!-- not run: needs a GPU -->
```console
$ exit 5
```

<!-- status: 3 -->
```console
$ echo fine
fine
$ echo no; exit 3
no
```
"""
    assert page(tmp_path, text).run() == 2


def test_a_mark_ends_what_is_run_of_a_page(tmp_path: Path) -> None:
    text = "```console\n$ echo one\none\n```\n\n<!-- not run below: a list -->\n\n```\nls\n```\n"
    assert page(tmp_path, text).run() == 1


def test_a_block_on_standard_input_is_not_waited_for(tmp_path: Path) -> None:
    assert page(tmp_path, "```console\n$ cat\n```\n").run() == 1


@pytest.mark.parametrize(
    ("shown", "printed", "tolerance", "same"),
    [
        ("done after 3.2 s, 80 MB/s", "done after 1 min 4 s, 9,120 MB/s", 0, True),
        ("done after 3.2 s, 80 MB/s", "done after 3.2 s, 80 GB/s", 0, False),
        ("10 examples", "11 examples", 0, False),
        ("loss 2.51", "loss 2.52", 0, False),
        ("loss 2.51", "loss 2.52", 0.01, True),
        ("loss 2.51", "loss 2.71", 0.01, False),
        ("accuracy 0.95", "accuracy 0.90", 0.05, True),
        ("accuracy 0.95", "accuracy 0.88", 0.05, False),
        ("step 20 loss 2.51", "step 21 loss 2.51", 0.01, False),
        ("a\n...\nb", "a\nx\ny\nb", 0, True),
        ("a\n...\nb", "a\nb", 0, True),
        ("a\n...", "a\nb\nc", 0, True),
        ("...\nm\n...\nb", "a\nm\nc\nb", 0, True),
        ("a\n...\nb", "a\nb\nc", 0, False),
        ("a\n...\nb\n...\nc", "a\nc", 0, False),
        ("a\n...\na", "a", 0, False),
    ],
)
def test_lines_are_equal_but_for_durations_speeds_and_what_the_page_leaves_open(
    shown: str, printed: str, tolerance: float, same: bool
) -> None:
    assert matches(shown.splitlines(), printed.splitlines(), tolerance) is same


def test_a_command_is_found_by_its_line_and_its_mark_counts_for_the_whole_block() -> None:
    text = "\n<!-- within 5 %: the sums of another processor -->\n```console\n$ a \\\n  b\n1.0\n$ c\n```\n"
    (block,) = blocks(text)
    assert list(commands(block)) == [
        Command(4, "a \\\n  b", ["1.0"], 0, 0.05),
        Command(7, "c", [], 0, 0.05),
    ]
