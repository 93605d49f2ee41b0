"""The texts of records one after another, in this process: the lines of each that hold something."""

from collections.abc import Callable, Iterator

from bertdata.io.file_identity import unchanged
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.text.record_plan import RecordPlan
from bertdata.text.record_text import bad_record_error, record_bodies


def read_bodies(plan: RecordPlan, on_read: Callable[[int], None] = lambda read: None) -> Iterator[bytes]:
    """The text of each record. InputError for the first bad one, unless the settings leave it out.

    on_read: told how many bytes of a file each piece took, once its records are through. ChangedInputError,
    when all was read, for a file that was changed meanwhile.
    """
    with unchanged(plan.identities):
        yield from _bodies(plan, on_read)


def _bodies(plan: RecordPlan, on_read: Callable[[int], None]) -> Iterator[bytes]:
    settings = plan.settings.records
    for path, kind in zip(plan.files, plan.kinds, strict=True):
        numbers = 0
        for piece in SOURCE_KINDS[kind].pieces(path, settings):
            read = piece.read(settings)
            good, bad = record_bodies(read.records, plan.settings)
            if bad and not settings.skip_bad_records:
                raise bad_record_error(path, numbers, bad[0])
            yield from (body for _, body in good)
            numbers += read.numbers
            on_read(piece.bytes)
