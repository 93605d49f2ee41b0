"""Process the input files in groups, so that an interrupted run of ``segment`` can be continued.

When a group is finished, a note (a small JSON file) is written. It lists the group's input files and output
files with their md5s. A later run keeps the group if none of these files has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeVar

from bertdata.errors import ManifestError
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, compute_file_md5, matches_entry
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.manifest import TextInput, TextManifest, make_text_input
from bertdata.text.mlperf import MlperfText
from bertdata.text.nvidia import NvidiaText
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import NumberedFile, TextPlan

Text = TypeVar("Text", MlperfText, NvidiaText)

Note = dict[str, Any]
"""Contents of a finished group's note: manifest entries of its input and output files, and further keys that
the recipe adds.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Consecutive input files that are processed together and share a note.

    numbers: positions of the input files in the list of all input files, from 0.
    made: names of the output files that are made from them.
    """

    name: str
    numbers: Sequence[int]
    made: Sequence[str]


class GroupedRun:
    """State of a run: its input files, its workers, and manifest entries of the input files read so far."""

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
        """Return True if the input files still have the md5s in the manifest of a finished directory."""
        listed = [entry.md5 for entry in finished.inputs]
        if [md5 for _, md5 in self._pool.in_order(compute_file_md5, self.files)] != listed:
            return False
        for entry in finished.inputs:
            self._progress(entry.bytes)
        return True

    def run_groups(
        self,
        groups: Sequence[Group],
        step: Callable[[NumberedFile], Text],
        make: Callable[[Group, Iterator[Text]], Note],
        *,
        keep: bool = True,
        is_whole: Callable[[Note], bool] = lambda note: True,
    ) -> Iterator[Note]:
        """Process the groups that no earlier run finished, and yield the note of every group in order.

        step: function that a worker calls to process one input file.
        make: function that writes the output files of a group from its texts, and returns the group's note.
        keep: False to neither read nor write notes.
        is_whole: function that returns True if the recipe's keys in an earlier run's note have valid values.
        """
        kept = self._find_valid_notes(groups, is_whole) if keep else {}
        kinds = self.text.plan.kinds
        work = [
            (n, self.files[n], kinds[n]) for group in groups if group.name not in kept for n in group.numbers
        ]
        # Workers get the files of all new groups as a single stream, so that they need not wait at the end of
        # a group.
        results = self._pool.in_order(step, work)
        for group in groups:
            note = kept.get(group.name)
            if note is None:
                # The results of this group are the next ones of the pool. ``make`` consumes them one by one
                # through _collect_inputs, so that a group's texts are never in memory all at once.
                inputs: list[TextInput] = []
                texts = (text for _, text in islice(results, len(group.numbers)))
                note = make(group, self._collect_inputs(group, texts, inputs))
                note["inputs"] = [asdict(entry) for entry in inputs]
                if keep:
                    self.text.commit.note(group.name, note)
            else:
                for item in note["inputs"]:
                    self._progress(item["bytes"])
            self.inputs += [TextInput(**item) for item in note["inputs"]]
            yield note

    def _collect_inputs(self, group: Group, texts: Iterator[Text], inputs: list[TextInput]) -> Iterator[Text]:
        """Pass on the texts of a group's files, and append each file's manifest entry to ``inputs``.

        Raises ChangedInputError if a file has changed since the parts were planned from its size.
        """
        for number, text in zip(group.numbers, texts, strict=True):
            plan = self.text.plan
            plan.identities[number]._replace(md5=text.md5).check()
            inputs.append(make_text_input(plan.inputs[number], text.md5, text.counts, plan.kinds[number]))
            yield text
            self._progress(text.bytes_in)

    def _find_valid_notes(self, groups: Sequence[Group], is_whole: Callable[[Note], bool]) -> dict[str, Note]:
        """Return the notes of an earlier run whose input and output files are unchanged, by group name."""
        # Make the cheap tests first: the note exists and names this group's files, and the output files have
        # not changed. Only then hash the group's input files, in parallel.
        noted = {
            group.name: note
            for group in groups
            if (note := self.text.commit.read_note(group.name)) is not None
            and self._is_valid(group, note)
            and is_whole(note)
        }
        numbers = [number for group in groups if group.name in noted for number in group.numbers]
        found = self._pool.in_order(compute_file_md5, [self.files[number] for number in numbers])
        md5s = dict(zip(numbers, (md5 for _, md5 in found), strict=True))
        return {
            group.name: note
            for group in groups
            if (note := noted.get(group.name)) is not None
            and [item["md5"] for item in note["inputs"]] == [md5s[number] for number in group.numbers]
        }

    def _is_valid(self, group: Group, note: Note) -> bool:
        """Return True if the note names the group's inputs, and its output files exist unchanged."""
        try:
            inputs = parse_entry_list(TextInput, note.get("inputs"))
            files = parse_entry_list(FileEntry, note.get("files"))
        except ManifestError:  # the note was written by another version of the program
            return False
        names = [self.text.plan.inputs[number] for number in group.numbers]
        return (
            [entry.name for entry in inputs] == names
            and [entry.name for entry in files] == list(group.made)
            and all(matches_entry(self.text.commit.directory, entry) for entry in files)
        )
