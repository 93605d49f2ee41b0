"""A dataset opened for reading, and its views."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from bertdata.dataset import reader
from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.weights import Weight, whole_weights
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.views.by_number import ExamplesByNumber
from bertdata.dataset.views.examples import check_rank, examples_of
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import MissingExtraError, SettingsError, install_extra
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout, Vocabulary
from bertdata.steps.values import AnyPath, AnyPaths, path_of, paths_of, whole_number

if TYPE_CHECKING:
    from bertdata.dataset.mixture.examples import StoppingStrategy
    from bertdata.dataset.views.torch_examples import Collator, TorchExamples, TorchExamplesByNumber
    from bertdata.examples.columns import Array
    from bertdata.examples.dynamic_masking.masker import Masker
    from bertdata.examples.masking.settings import MaskingSettings
    from bertdata.loaders.modernbert.loader import ModernBertLoader


def open_dataset(
    paths: AnyPaths | Mapping[AnyPath, Weight],
    *,
    unverified: bool = False,
    objective: str | None = None,
    epoch: int | None = None,
    stopping_strategy: "StoppingStrategy | None" = None,
    examples: int | None = None,
    blocks: str | None = None,
    tokens_per_sample: int = 512,
) -> "ExampleDataset":
    """The dataset at the paths: directories, manifests, shards beside their manifest, patterns, or URLs.

    Sizes are compared with the manifest now, md5s when a shard is read. unverified: take TFRecord, HDF5,
    Parquet, MDS or Arrow files of any tool without a manifest, or a .bin of fairseq's, and count their
    examples. objective: one of your own that the examples have, or that of files which do not tell it.
    blocks, tokens_per_sample: of a .bin of fairseq's, the blocks that fairseq makes in this break mode and
    size, in its order. MissingInputError, DatasetError, ManifestError or ShardError name the fault.

    A mapping of paths to weights, ``{"A": 0.7, "B": 0.3}``, is a mixture: its examples come in the order
    that ``bertdata.dataset.mixture.turns`` tells. stopping_strategy: an epoch ends when the first source has
    given all its examples ("first_exhausted", the default), or the last one, the others beginning again
    ("all_exhausted"). examples: it ends after so many instead. epoch: the one to read, from 0; each begins
    where the one before has ended, in each source too.
    """
    need("numpy", "numpy", "reading examples")
    if objective is not None:
        find_objective(objective)
    of_mixture = {"epoch": epoch, "stopping_strategy": stopping_strategy, "examples": examples}
    given: dict[str, Any] = {name: value for name, value in of_mixture.items() if value is not None}
    opened: OpenedDataset
    if isinstance(paths, Mapping):
        if blocks is not None:
            raise SettingsError("blocks are cut of one .bin, not of a mixture")
        opened = _open_mixture(paths, given, unverified, objective)
    elif given:
        raise SettingsError(f"{', '.join(given)}: for a mixture; give paths with weights, as {{'A': 0.7}}")
    elif blocks is not None:
        opened = _open_blocks(paths_of(paths), blocks, tokens_per_sample)
    else:
        opened = reader.open_dataset(paths_of(paths), unverified=unverified, objective=objective)
    return ExampleDataset(opened=opened, objective=objective)


def _open_mixture(
    paths: Mapping[AnyPath, Weight], given: dict[str, Any], unverified: bool, objective: str | None
) -> OpenedDataset:
    from bertdata.dataset.mixture.examples import mix_examples
    from bertdata.dataset.mixture.opening import open_sources

    sources = [(path_of(path), weight) for path, weight in paths.items()]
    if not sources:
        raise SettingsError("the mixture has no sources; give paths with their weights")
    weights = whole_weights(sources)
    parts = open_sources([path for path, _ in sources], unverified=unverified, objective=objective)
    return mix_examples(parts, weights, **given)


def _open_blocks(paths: list[str], blocks: str, tokens_per_sample: int) -> OpenedDataset:
    from bertdata.dataset.binarised_blocks import open_blocks

    if len(paths) != 1:
        raise SettingsError(f"blocks are cut of one .bin, found {len(paths)} paths")
    return open_blocks(paths[0], blocks, tokens_per_sample)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ExampleDataset:
    """All examples of some shards, in order. Picklable.

    Iterating gives each as the frozen dataclass of its objective, without padding: for BERT a
    ``bertdata.examples.bert.batch.BertExample``. No more than a few thousand examples are in memory.
    """

    opened: OpenedDataset
    objective: str | None = None
    _by_number: "ExamplesByNumber" = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_number", ExamplesByNumber(self.opened, self.objective))

    @property
    def layout(self) -> ShardLayout:
        """Length, number of masked positions and objective of the examples."""
        return self.opened.layout

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files, each with its path and number of examples."""
        return self.opened.shards

    def __len__(self) -> int:
        return self.opened.examples

    def __iter__(self) -> Iterator[Any]:
        return examples_of(self.opened, range(len(self)), self.objective)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """The example of that number, or a list of those of a slice, as of a list. IndexError beyond the end.

        Random access takes bounded memory: 64 MiB of decoded examples are kept.
        """
        return self._by_number.get(index)

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """The examples of several numbers, as a torch DataLoader asks for those of a batch."""
        return self._by_number.several(numbers)

    def numpy(self, *, batch_size: int = 1024, padded: bool = True) -> Iterator[dict[str, "Array"]]:
        """All examples as NumPy arrays, ``batch_size`` at a time.

        padded: int64 rows [N, S], or [N] for a single value, under the names that Hugging Face's models
        take; else the objective's columns without padding: example i owns ``ids[ends[i - 1]:ends[i]]``.
        Rows of examples without masks have no ``labels``: ``masked()`` draws masks.
        """
        from bertdata.dataset.views.model_rows import column_batches, row_batches

        if batch_size < 1:
            raise SettingsError(f"batch_size is {batch_size}, expected 1 or more")
        return (row_batches if padded else column_batches)(self.opened, batch_size)

    def fairseq_batches(
        self,
        *,
        batch_size: int,
        seed: int = 42,
        epoch: int = 1,
        rank: int = 0,
        world: int = 1,
        start: int = 0,
    ) -> Iterator[dict[str, "Array"]]:
        """One rank's batches of an epoch in fairseq's order, as padded rows of ``numpy()``.

        Neighbours in length are a batch of ``batch_size``, 1 to 8 or a multiple of 8. The batches are
        shuffled by seed + epoch and dealt to the ranks in turn. Epochs count from 1. start: the batch to
        begin with. All ids are held in memory.
        """
        self._refuse_mixture("fairseq_batches()")
        from bertdata.dataset.views.model_rows import ordered_rows

        places = {"rank": rank, "world": world, "start": start}
        return ordered_rows(self.opened, batch_size=batch_size, seed=seed, epoch=epoch, **places)

    def masked(
        self,
        *,
        masking: str = "dynamic",
        epoch: int | None = None,
        seed: int = 42,
        vocab: AnyPath | None = None,
        masked_lm_prob: float = 0.15,
        max_predictions_per_seq: int | None = None,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        kept_share: float = 0.1,
        whole_word_mask: bool = False,
        mask_counts: str = "fixed",
    ) -> "ExampleDataset":
        """The same examples with masks drawn anew: a function of seed, epoch and example alone.

        Masks that the examples have do not count; they may have none (``create --no-masks``). masking:
        dynamic for our own stream, fairseq or fairseq-0.12 for the masks of that program. epoch: by default
        the first, which is 0 for our own and 1 for fairseq's. vocab: a file or a name; by default the copy
        beside the data. max_predictions_per_seq: by default the dataset's, or no limit for fairseq's. The
        other settings are the trainer's keys of these names. SettingsError or UsageError says what is wrong.
        """
        from bertdata.dataset.masked_data import masked_data
        from bertdata.examples.masking.settings import MaskingSettings

        settings = MaskingSettings(
            masked_lm_prob=masked_lm_prob,
            max_predictions_per_seq=max_predictions_per_seq or 0,
            mask_share=mask_share,
            random_share=random_share,
            kept_share=kept_share,
            whole_word_mask=whole_word_mask,
            mask_counts=mask_counts,
        )
        masker = self._masker(masking, vocab, settings)
        masked = partial(masked_data, masker=masker, seed=seed, epoch=epoch)
        return replace(self, opened=self.opened.changed(masked))

    def _masker(self, masking: str, vocab: AnyPath | None, settings: "MaskingSettings") -> "Masker":
        """The masker of the examples. SettingsError where no masks can be drawn."""
        from bertdata.dataset.masked_data import check_masks, masker_of

        check_masks(self.opened)
        dataset = find_datasets(self.shards[0].path)[0]
        vocabulary = self._vocabulary(None if vocab is None else path_of(vocab), dataset)
        return masker_of(self.opened, dataset, vocabulary, settings, masking)

    def _check_labels(self, view: str, remedy: str = "") -> None:
        """SettingsError where examples have no masks: all their labels would be -100, and any loss 0."""
        from bertdata.dataset.mask_presence import without_masks

        if unmasked := without_masks(self.opened):
            raise SettingsError(
                f"{unmasked[0]}: its examples have no masks, so that {view} would give no labels; "
                f"open_dataset(...).masked() draws masks for every view{remedy}"
            )

    def modernbert(
        self,
        *,
        batch_size: int,
        micro_batch_size: int,
        max_seq_len: int | None = None,
        seed: int | None = None,
        mask_prob: float = 0.3,
        shuffle: bool = True,
        drop_last: bool = True,
        buffer_size: int | None = None,
        rank: int = 0,
        world: int = 1,
        warmup: tuple[int, int] | None = None,
        epoch: int | None = None,
        vocab: AnyPath | None = None,
        tensors: bool = False,
    ) -> "ModernBertLoader":
        """Batches as ModernBERT's loader makes them of these sequences, packed and masked, to the bit.

        An iterator of dicts: ``input_ids labels attention_mask`` (int64, [rows, micro_batch_size *
        max_seq_len]), ``cu_seqlens`` and ``max_seqlen`` (a list, an item a row), of epoch after epoch, or of
        one. Its ``state_dict()`` and ``load_state_dict()`` go on behind any batch. Masks that the examples
        have do not count. max_seq_len: by default the dataset's. seed: of order and masks; None: 9176 and
        42. buffer_size: by default 5 batches. warmup: sequences of the first batches, and the tokens after
        which they have all. vocab: as of ``masked``. tensors: torch's in the place of NumPy's arrays.
        SettingsError, UsageError or DatasetError says what is wrong.
        """
        self._refuse_mixture("modernbert()")
        from bertdata.loaders.modernbert.loader import ModernBertLoader
        from bertdata.loaders.modernbert.settings import (
            MASK_SEED,
            ORDER_SEED,
            ModernBertSettings,
            TokenWarmup,
        )
        from bertdata.loaders.sequences import StoredSequences

        settings = ModernBertSettings(
            batch_size=batch_size,
            micro_batch_size=micro_batch_size,
            max_seq_len=self.layout.max_seq_length if max_seq_len is None else max_seq_len,
            mask_prob=mask_prob,
            order_seed=ORDER_SEED if seed is None else seed,
            mask_seed=MASK_SEED if seed is None else seed,
            shuffle=shuffle,
            drop_last=drop_last,
            buffer_size=buffer_size,
            rank=rank,
            world=world,
            warmup=None if warmup is None else TokenWarmup(sequences=warmup[0], tokens=warmup[1]),
        )
        dataset = find_datasets(self.shards[0].path)[0]
        vocabulary = self._vocabulary(None if vocab is None else path_of(vocab), dataset)
        loader = ModernBertLoader(
            StoredSequences(self.opened),
            settings,
            mask_id=vocabulary.role("mask"),
            padding_id=vocabulary.role("pad"),
            epoch=epoch,
        )
        if tensors:
            need("torch", "train", "modernbert(tensors=True)")
            from bertdata.loaders.modernbert.tensors import as_tensors

            loader.form = as_tensors
        return loader

    def _vocabulary(self, path_or_name: str | None, dataset: FoundDataset) -> Vocabulary:
        vocabulary = known_vocabulary(path_or_name, dataset)
        if vocabulary is None:
            name = self.opened.name
            raise SettingsError(
                f"{name}: masks need its vocabulary, which is not beside the data; give vocab"
            )
        return vocabulary

    def _refuse_mixture(self, view: str) -> None:
        if self.opened.sources:
            raise SettingsError(
                f"{self.opened.name}: a mixture has no {view}; iterate over it, or take numpy() or torch()"
            )

    @overload
    def torch(
        self, *, rank: int = 0, world: int = 1, map_style: Literal[False] = False
    ) -> "TorchExamples": ...

    @overload
    def torch(self, *, map_style: Literal[True]) -> "TorchExamplesByNumber": ...

    def torch(self, *, rank: int = 0, world: int = 1, map_style: bool = False) -> Any:
        """A ``torch.utils.data.IterableDataset`` of the examples, for a DataLoader with ``collator()``.

        Each example comes once, however many workers the DataLoader has. rank, world: only this one of
        ``world`` processes' examples; the shares differ by one example at most. map_style: a ``Dataset`` with
        ``len`` and examples by number instead, for a DataLoader with ``shuffle=True`` or a sampler, which
        then shares the examples out. ``set_epoch(e)`` of either draws the masks of ``masked()`` anew.
        Examples without masks stay so: see ``collator``.
        """
        need("torch", "train", ".torch()")
        from bertdata.dataset.views.torch_examples import TorchExamples, TorchExamplesByNumber

        check_rank(rank, world)
        if not map_style:
            return TorchExamples(self.opened, self.objective, rank, world)
        if world > 1:
            raise SettingsError("rank and world go without map_style, whose examples a sampler shares out")
        return TorchExamplesByNumber(self.opened, self.objective)

    def collator(
        self,
        *,
        masking: str | None = None,
        vocab: AnyPath | None = None,
        masked_lm_prob: float = 0.15,
        max_predictions_per_seq: int | None = None,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        kept_share: float = 0.1,
        whole_word_mask: bool = False,
        mask_counts: str = "fixed",
    ) -> "Collator":
        """The ``collate_fn`` that makes of examples a batch of tensors under Hugging Face's names.

        masking: "dynamic" draws masks of each batch, by torch's generator of random numbers, as
        ``DataCollatorForLanguageModeling`` of transformers does; masks that the examples have do not count.
        Unlike those of ``masked()`` they depend on the order of the batches. The other settings are those of
        ``masked``. None: the examples' own masks; SettingsError where they have none.
        """
        need("torch", "train", ".collator()")
        from bertdata.dataset.masked_data import masked_layout
        from bertdata.dataset.views.torch_examples import Collator
        from bertdata.examples.masking.settings import MASKINGS, MaskingSettings

        if masking is None:
            remedy = f', and .collator(masking="{MASKINGS[0]}") for each batch'
            self._check_labels(".collator()", remedy)
            return Collator(layout=self.layout, objective=self.objective)
        if masking != MASKINGS[0]:
            raise SettingsError(
                f"masking is {masking!r}, expected {MASKINGS[0]!r}; .masked(masking=...) draws the masks of "
                "other programs, which know an example by its number"
            )
        settings = MaskingSettings(
            masked_lm_prob=masked_lm_prob,
            max_predictions_per_seq=max_predictions_per_seq or 0,
            mask_share=mask_share,
            random_share=random_share,
            kept_share=kept_share,
            whole_word_mask=whole_word_mask,
            mask_counts=mask_counts,
        )
        masker = self._masker(masking, vocab, settings)
        layout = masked_layout(self.opened, masker)
        return Collator(layout=layout, objective=self.objective, masker=masker)

    def datasets(self, *, streaming: bool = True) -> Any:
        """A ``datasets.IterableDataset`` of padded rows under Hugging Face's names.

        The shards are read as it is iterated; it has as many shards as there are files. Its ``set_epoch(e)``
        draws the masks of ``masked()`` anew, of what ``map`` or ``filter`` made of it too. streaming=False: a
        map-style ``datasets.Dataset`` of the same rows, which ``datasets`` writes into its cache once.
        SettingsError where the examples have no masks: ``masked()`` draws them.
        """
        need("datasets", "datasets", ".datasets()")
        self._check_labels(".datasets()")
        from bertdata.dataset.views.huggingface import iterable_dataset, map_dataset

        return (iterable_dataset if streaming else map_dataset)(self.opened, self.objective)

    def tensorflow(self, *, batch_size: int | None = None) -> Any:
        """A ``tf.data.Dataset`` of padded rows under the names of TFRecord's fields, whatever the container.

        Each element is what ``tf.io.parse_example`` with ``feature_spec()`` makes of the example's TFRecord:
        a dict of int64 and float32 tensors [S], [P] or [1]; with batch_size [N, S] and so on. SettingsError
        where the examples have no masks: ``masked()`` draws them.
        """
        need("tensorflow", "tf", ".tensorflow()")
        self._check_labels(".tensorflow()")
        from bertdata.dataset.views.tensorflow_rows import tensorflow_dataset

        if batch_size is not None:
            whole_number("batch_size", batch_size)
        return tensorflow_dataset(self.opened, self.objective, batch_size)

    def feature_spec(self) -> dict[str, Any]:
        """The features of the dataset's TFRecord shards, by field, for ``tf.io.parse_example``."""
        need("tensorflow", "tf", ".feature_spec()")
        from bertdata.dataset.views.tensorflow_rows import feature_spec

        return feature_spec(self.opened)

    def __repr__(self) -> str:
        layout = self.layout
        return (
            f"<ExampleDataset {self.opened.name}: {len(self.shards)} shards, {len(self)} examples, "
            f"objective {layout.objective}, at most {layout.max_seq_length} ids>"
        )


def need(package: str, extra: str, feature: str) -> None:
    """MissingExtraError where the package is not installed."""
    try:
        is_there = find_spec(package) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise MissingExtraError(f"{feature} needs the package {package}: {install_extra(extra)}")
