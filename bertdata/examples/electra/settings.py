"""Settings of ELECTRA's objective."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings, require

FILES = 1000
"""The number of files among which ELECTRA's program distributes its examples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectraSettings(ExampleSettings):
    """Settings that, together with the text and the vocabulary, determine the bytes of ELECTRA's examples.

    as_original: True writes exactly the files that ELECTRA's program writes, when it runs as a single process
        over a directory with the same input files.
    """

    objective: str = setting("electra", "training objective of the examples")
    as_original: bool = setting(
        False,
        "make the 1,000 files of ELECTRA's program, in its order, as if its random module were seeded: one "
        "random stream over all parts",
    )

    def __post_init__(self) -> None:
        super(ElectraSettings, self).__post_init__()
        if self.as_original:
            require(self.format == "tfrecord", f"as_original makes TFRecord files, expected no {self.format}")
            require(not self.bin_size, "as_original makes ELECTRA's files, expected no bins of lengths")

    @property
    def files_of_run(self) -> tuple[str, ...]:
        """Names of the files that ELECTRA's program writes, if ``as_original`` is True. Otherwise empty."""
        if not self.as_original:
            return ()
        return tuple(f"pretrain_data.tfrecord-{number}-of-{FILES}" for number in range(FILES))
