"""Ranges of open files: both engines read the same, and tell which range a file does not have."""

import io
from contextlib import ExitStack
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.shards.file_view import FileView, find_file_size, read_at, read_ranges

ENGINES = ["native", "python"] if _native.available() else ["python"]


@pytest.mark.parametrize("engine", ENGINES)
@given(seed=st.integers(0, 1 << 30), count=st.integers(0, 20))
def test_ranges_are_slices_of_the_files(tmp_path_factory, engine, seed, count):
    random, place = Random(seed), tmp_path_factory.mktemp("files")
    contents = [random.randbytes(random.randint(0, 200)) for _ in range(3)]
    with ExitStack() as stack:
        files = []
        for number, content in enumerate(contents):
            path = place / str(number)
            path.write_bytes(content)
            files.append(stack.enter_context(path.open("rb")))
        chosen = [random.randrange(3) for _ in range(count)]
        ends = [sorted(random.choices(range(len(contents[number]) + 1), k=2)) for number in chosen]
        found, complete = read_ranges(
            [files[number] for number in chosen],
            [start for start, _ in ends],
            [end - start for start, end in ends],
            engine,
        )
        assert complete == count
        slices = [contents[number][start:end] for number, (start, end) in zip(chosen, ends, strict=True)]
        assert bytes(found) == b"".join(slices)
        # no position was moved
        assert [file.tell() for file in files] == [0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_range_that_a_file_does_not_have_is_told(tmp_path, engine):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        found, complete = read_ranges([file] * 4, [8, 3, 7, 0], [2, 0, 4, 5], engine)
        assert (bytes(found), complete) == (b"89", 2)


def test_bytes_in_memory_are_read_like_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        for source in (file, io.BytesIO(b"0123456789")):
            assert find_file_size(source) == 10
            assert [read_at(source, 3, 4), read_at(source, 8, 9), read_at(source, 12, 1)] == [
                b"3456",
                b"89",
                b"",
            ]
            assert [bytes(read_ranges([source, source], [1, 9], [2, 1])[0]), source.tell()] == [b"129", 0]


class SlowFile(io.BytesIO):
    """A file that gives 3 bytes at a time, as files of a bucket may, and is read at its end once only."""

    was_at_end = False

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(3 if size is None or size < 0 else min(3, size))
        assert not (self.was_at_end and not found), "read again at its end"
        self.was_at_end = not found
        return found


def test_a_view_reads_in_pieces_until_it_has_all_or_the_file_ends():
    view = FileView(SlowFile(b"0123456789"))
    assert view.read_at(1, 7) == b"1234567"
    assert view.tell() == 8
    assert view.read_at(6, 9) == b"6789"
    assert view.tell() == 10


def test_views_of_a_file_have_their_own_positions():
    file = SlowFile(b"0123456789")
    first, second = FileView(file), FileView(file)
    assert [first.read(2), second.read(3), first.read(2)] == [b"01", b"012", b"23"]
    assert [first.seek(1, io.SEEK_CUR), second.seek(-1, io.SEEK_END)] == [5, 9]
    assert [first.read(1), second.read(5), first.size] == [b"5", b"9", 10]
