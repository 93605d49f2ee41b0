"""Settings that decide SQuAD's features."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings, check


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadSettings(ExampleSettings):
    """Everything, besides file and vocabulary, that decides the features of a SQuAD file.

    The dialects google and nvidia are those of the two programs; the others tokenise as google.
    """

    objective: str = setting("squad", "objective of the examples")
    dialect: str = setting("google", "whose habits to follow: google or nvidia", ("google", "nvidia"))
    max_seq_length: int = setting(384, "ids in a feature, special tokens included")
    doc_stride: int = setting(128, "tokens from the start of one span of a context to the next")
    max_query_length: int = setting(64, "most tokens of a question; the rest is cut off")
    training: bool = setting(False, "read answers and learn their positions")
    version_2_with_negative: bool = setting(False, "questions may have no answer (SQuAD 2.0)")

    def __post_init__(self) -> None:
        super(SquadSettings, self).__post_init__()
        check(self.doc_stride >= 1, f"doc_stride is {self.doc_stride}, expected 1 or more")
        check(self.max_query_length >= 1, f"max_query_length is {self.max_query_length}, expected 1 or more")
        check(
            self.max_query_length + 3 < self.max_seq_length,
            f"max_query_length is {self.max_query_length}, expected at most max_seq_length - 4 "
            f"({self.max_seq_length - 4}), so that a token of the context fits in",
        )
