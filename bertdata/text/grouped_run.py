"""A run of the text stage over groups of files, which a later run keeps where they still fit.

A group is noted with its input files and what was made of them. The md5s of both decide whether it is
kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeVar

from bertdata.errors import ManifestError
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, file_md5, fits
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.manifest import TextInput, TextManifest, text_input
from bertdata.text.mlperf import MlperfText
from bertdata.text.nvidia import NvidiaText
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import NumberedFile, TextPlan

Text = TypeVar("Text", MlperfText, NvidiaText)

Note = dict[str, Any]
"""``inputs`` and ``files``: entries of what was read and made; and what the recipe adds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Consecutive files, by number, that are done and noted together. made: the files that they become."""

    name: str
    numbers: Sequence[int]
    made: Sequence[str]


class GroupedRun:
    """The files of a run, its workers, and the entries of the files that are done."""

    def __init__(
        self,
        files: Sequence[str],
        text: TextDirectory[TextPlan],
        load_splitter: SplitterLoader,
        pool: ProcessPool,
        progress: Callable[[int], None],
    ) -> None:
        self.files = files
        self.text = text
        self.load_splitter = load_splitter
        self.inputs: list[TextInput] = []
        self._pool = pool
        self._progress = progress

    def has_same_inputs(self, finished: TextManifest) -> bool:
        """True if the files are those that the manifest lists, to the byte."""
        listed = [entry.md5 for entry in finished.inputs]
        if [md5 for _, md5 in self._pool.in_order(file_md5, self.files)] != listed:
            return False
        for entry in finished.inputs:
            self._progress(entry.bytes)
        return True

    def notes(
        self,
        groups: Sequence[Group],
        step: Callable[[NumberedFile], Text],
        make: Callable[[Group, Iterator[Text]], Note],
        *,
        keep: bool = True,
        is_whole: Callable[[Note], bool] = lambda note: True,
    ) -> Iterator[Note]:
        """The note of each group, in order: that of an earlier run where it still fits, else a new one.

        step: the work on one numbered file, done by a worker. make: writes a group's files from its
        texts. Without keep nothing is noted. is_whole: looks at what the recipe adds to an earlier run's
        note.
        """
        kept = self._kept(groups, is_whole) if keep else {}
        kinds = self.text.plan.kinds
        work = [
            (n, self.files[n], kinds[n]) for group in groups if group.name not in kept for n in group.numbers
        ]
        results = self._pool.in_order(step, work)
        for group in groups:
            note = kept.get(group.name)
            if note is None:
                inputs: list[TextInput] = []
                texts = (text for _, text in islice(results, len(group.numbers)))
                note = make(group, self._noting(group, texts, inputs))
                note["inputs"] = [asdict(entry) for entry in inputs]
                if keep:
                    self.text.commit.note(group.name, note)
            else:
                for item in note["inputs"]:
                    self._progress(item["bytes"])
            self.inputs += [TextInput(**item) for item in note["inputs"]]
            yield note

    def _noting(self, group: Group, texts: Iterator[Text], inputs: list[TextInput]) -> Iterator[Text]:
        """The texts of a group. Each one's entry joins the inputs.

        ChangedInputError for a file that was changed since the parts were planned by its size.
        """
        for number, text in zip(group.numbers, texts, strict=True):
            plan = self.text.plan
            plan.identities[number]._replace(md5=text.md5).check()
            inputs.append(text_input(plan.inputs[number], text.md5, text.counts, plan.kinds[number]))
            yield text
            self._progress(text.bytes_in)

    def _kept(self, groups: Sequence[Group], is_whole: Callable[[Note], bool]) -> dict[str, Note]:
        """The notes of an earlier run that fit their files and their inputs, by the group's name."""
        noted = {
            group.name: note
            for group in groups
            if (note := self.text.commit.read_note(group.name)) is not None
            and self._fits(group, note)
            and is_whole(note)
        }
        numbers = [number for group in groups if group.name in noted for number in group.numbers]
        found = self._pool.in_order(file_md5, [self.files[number] for number in numbers])
        md5s = dict(zip(numbers, (md5 for _, md5 in found), strict=True))
        return {
            group.name: note
            for group in groups
            if (note := noted.get(group.name)) is not None
            and [item["md5"] for item in note["inputs"]] == [md5s[number] for number in group.numbers]
        }

    def _fits(self, group: Group, note: Note) -> bool:
        """True for a note of the group whose files are there."""
        try:
            inputs = parse_entry_list(TextInput, note.get("inputs"))
            files = parse_entry_list(FileEntry, note.get("files"))
        except ManifestError:  # a note of another version
            return False
        names = [self.text.plan.inputs[number] for number in group.numbers]
        return (
            [entry.name for entry in inputs] == names
            and [entry.name for entry in files] == list(group.made)
            and all(fits(self.text.commit.directory, entry) for entry in files)
        )
