"""The arguments of ``create`` as a dataclass (the request).

A field of the request is at the same time a flag, a key of settings files, a keyword of the Python function
and an option of the Beam pipeline.

For settings of examples and records, only name and type are repeated here, for editors and type checkers.
Their defaults, help and bounds are declared in the settings class that uses them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any

from bertdata.build.plan import SHUFFLES
from bertdata.config.declared import repeat_setting, setting
from bertdata.config.recipes import RECIPES
from bertdata.config.settings import ExampleSettings
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.sop.settings import SopSettings
from bertdata.examples.span.settings import SpanSettings
from bertdata.sources.kinds import CHOSEN_KINDS
from bertdata.steps.keywords import GivenRun, collect_given, convert_paths
from bertdata.steps.segment_request import CONFIG_HELP, INPUT_KIND_HELP, GivenRecordSettings
from bertdata.steps.values import AnyPath, AnySources, check_positive_integer


@dataclass(frozen=True, kw_only=True)
class GivenDatasetSettings:
    """Settings of a dataset other than those of its examples.

    Each field is a flag of ``create`` and of the Beam pipeline. The key ``record`` in a field's metadata
    names the table of a settings file in which the setting may stand. It is empty for settings outside of all
    tables, such as ``recipe``.
    """

    config: AnyPath | None = setting(
        None,
        CONFIG_HELP.format("the tables [container], [objective], [tokenizer], and for records [text]"),
        metavar="FILE.toml",
        record="",
    )
    vocab: AnyPath | None = setting(
        None,
        "WordPiece vocabulary with one token per line, or the name of a published one: bert-base-uncased",
        optional=True,
        metavar="FILE|NAME",
        record="tokenizer",
    )
    tokenizer: AnyPath | None = setting(
        None,
        "tokenizer.json of Hugging Face's tokenizers (BPE, Unigram or WordPiece), or a model's directory "
        "that holds it",
        optional=True,
        metavar="FILE|DIR",
        record="tokenizer",
    )
    roles: Mapping[str, str] | Sequence[str] | None = setting(
        None,
        "with --tokenizer: token to use as cls, sep, pad, mask or unk if the tokenizer's files do not "
        "name one; may be repeated",
        optional=True,
        metavar="NAME=TOKEN",
        flag="--role",
        repeated=True,
        record="tokenizer",
    )
    shuffle: str | None = setting(
        None,
        "none (default): one shard per part; global: mix the documents of all parts, by a stable hash, into "
        "shards with nearly equal numbers of tokens",
        SHUFFLES,
        optional=True,
        record="container",
    )
    num_shards: int | None = setting(
        None,
        "number of shards to make, with --shuffle global",
        least=1,
        optional=True,
        metavar="N",
        record="container",
    )
    recipe: str | None = setting(
        None, "program or model whose training data to reproduce (default: mlperf)", tuple(RECIPES), record=""
    )
    phase: int | None = setting(
        None,
        "make only this phase of a two-phase recipe, in DIR itself (default: both, in DIR/phase1 and "
        "DIR/phase2)",
        metavar="N",
        record="",
    )
    skip_bad_inputs: bool = setting(
        False,
        "leave out parts that cannot be used (not UTF-8, compressed, JSON, without sentences) and list them "
        "in the manifest; without this flag such a part ends the run with an error",
        record="",
    )


@dataclass(frozen=True, kw_only=True)
class GivenExampleSettings:
    """Settings of the built-in objectives.

    A setting that is None is taken from the file ``config``. If the file does not have it, it is taken from
    the recipe.
    """

    objective: str | None = repeat_setting(ExampleSettings, "objective", default=None)
    dialect: str | None = repeat_setting(ExampleSettings, "dialect", default=None)
    max_seq_length: int | None = repeat_setting(ExampleSettings, "max_seq_length", default=None)
    max_predictions_per_seq: int | None = repeat_setting(
        MaskingSettings, "max_predictions_per_seq", default=None
    )
    dupe_factor: int | None = repeat_setting(BertSettings, "dupe_factor", default=None)
    random_seed: int | None = repeat_setting(ExampleSettings, "random_seed", default=None)
    masked_lm_prob: float | None = repeat_setting(MaskingSettings, "masked_lm_prob", default=None)
    short_seq_prob: float | None = repeat_setting(BertSettings, "short_seq_prob", default=None)
    lower_case: bool | None = repeat_setting(ExampleSettings, "lower_case", default=None)
    keep_accents: bool | None = repeat_setting(ExampleSettings, "keep_accents", default=None)
    chinese_words: bool | None = repeat_setting(ExampleSettings, "chinese_words", default=None)
    whole_word_mask: bool | None = repeat_setting(MaskingSettings, "whole_word_mask", default=None)
    remask: bool | None = repeat_setting(BertSettings, "remask", default=None)
    masks: bool | None = repeat_setting(BertSettings, "masks", default=None)
    mask_share: float | None = repeat_setting(MaskingSettings, "mask_share", default=None)
    random_share: float | None = repeat_setting(MaskingSettings, "random_share", default=None)
    kept_share: float | None = repeat_setting(MaskingSettings, "kept_share", default=None)
    blocks: str | None = repeat_setting(MlmSettings, "blocks", default=None)
    random_next_sentence: bool | None = repeat_setting(SopSettings, "random_next_sentence", default=None)
    ngram: int | None = repeat_setting(SopSettings, "ngram", default=None)
    favor_shorter_ngram: bool | None = repeat_setting(SopSettings, "favor_shorter_ngram", default=None)
    permutation: bool | None = repeat_setting(SopSettings, "permutation", default=None)
    shortest_span: int | None = repeat_setting(SpanSettings, "shortest_span", default=None)
    longest_span: int | None = repeat_setting(SpanSettings, "longest_span", default=None)
    geometric_p: float | None = repeat_setting(SpanSettings, "geometric_p", default=None)
    replacement: str | None = repeat_setting(SpanSettings, "replacement", default=None)
    endpoints: str | None = repeat_setting(SpanSettings, "endpoints", default=None)
    as_original: bool | None = repeat_setting(
        ElectraSettings,
        "as_original",
        help="; with the objective span: draw the same spans as SpanBERT's program with a seeded NumPy",
        default=None,
    )
    format: str | None = repeat_setting(ExampleSettings, "format", default=None)
    bin_size: int | None = repeat_setting(ExampleSettings, "bin_size", default=None)


@dataclass(frozen=True)
class CreateRequest(GivenRun, GivenRecordSettings, GivenExampleSettings, GivenDatasetSettings):
    """All arguments of ``create``. None means that the user did not set the argument.

    parts: files, patterns, directories written by ``segment``, or records, also in memory.
    output: directory of the dataset.
    own_settings: settings of a user-defined objective, by name.
    """

    parts: AnySources
    output: AnyPath
    _: KW_ONLY
    input_kind: str | None = setting(None, INPUT_KIND_HELP, CHOSEN_KINDS, metavar="KIND")
    own_settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        GivenRun.__post_init__(self)
        convert_paths(self, sources=("parts",), paths=("output", "vocab", "tokenizer", "config"))
        GivenRecordSettings.__post_init__(self)
        if self.num_shards is not None:
            check_positive_integer("num_shards", self.num_shards)
        named = self.roles
        if isinstance(named, Mapping):
            named = [f"{role}={token}" for role, token in named.items()]
        object.__setattr__(self, "roles", tuple(named or ()) or None)

    @property
    def dataset_settings(self) -> dict[str, Any]:
        """Settings of the dataset that the caller has given, by name.

        Settings of its examples are not among them.
        """
        return collect_given(self, GivenDatasetSettings)

    @property
    def example_settings(self) -> dict[str, Any]:
        """Settings of the examples that the caller has given, by name, also those of a user-defined
        objective.
        """
        own = {name: value for name, value in (self.own_settings or {}).items() if value is not None}
        return collect_given(self, GivenExampleSettings) | own

    @property
    def source_settings(self) -> dict[str, Any]:
        """Settings for reading records that the caller has given, by name."""
        kind = {} if self.input_kind is None else {"input_kind": self.input_kind}
        return collect_given(self, GivenRecordSettings) | kind

    @property
    def named_roles(self) -> tuple[str, ...]:
        """The special tokens that the caller has named, each as ``ROLE=TOKEN``, such as ``mask=<mask>``."""
        return tuple(self.roles or ())

    def with_settings(self, settings: Mapping[str, Any]) -> "CreateRequest":
        """Return a copy of the request with these settings.

        A name that is no field of the request is taken for a setting of a user-defined objective.
        """
        known = {item.name for item in fields(self)}
        own = {name: value for name, value in settings.items() if name not in known}
        named = {name: value for name, value in settings.items() if name in known}
        return replace(self, **named, own_settings={**(self.own_settings or {}), **own})
