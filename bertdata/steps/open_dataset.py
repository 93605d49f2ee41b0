"""Opening of a dataset for reading, and its views for NumPy, PyTorch, Hugging Face and TensorFlow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from operator import index as convert_index
from random import Random
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from bertdata.dataset import reader
from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.weights import Weight, make_whole_weights
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.views.by_number import ExamplesByNumber
from bertdata.dataset.views.examples import check_rank, iterate_examples
from bertdata.dataset.vocabulary import load_dataset_tokenizer, load_dataset_vocabulary
from bertdata.errors import MissingExtraError, SettingsError, install_extra
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout, Vocabulary
from bertdata.steps.values import AnyPath, AnyPaths, check_positive_integer, convert_path, list_paths

if TYPE_CHECKING:
    from bertdata.dataset.mixture.examples import StoppingStrategy
    from bertdata.dataset.views.torch_examples import Collator, TorchExamples, TorchExamplesByNumber
    from bertdata.examples.columns import Array
    from bertdata.examples.dynamic_masking.masker import Masker
    from bertdata.examples.masking.settings import MaskingSettings
    from bertdata.loaders.modernbert.loader import ModernBertLoader
    from bertdata.tokens.files import TokenizerFile
    from bertdata.tokens.tokenizer import Tokenizer


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
    """Open a dataset: directories, manifests, shards next to their manifest, patterns, or URLs.

    File sizes are compared with the manifest at once. A shard's md5 is only checked when the shard is read.
    If something is wrong, MissingInputError, DatasetError, ManifestError or ShardError is raised.

    A mapping of paths to weights, such as ``{"A": 0.7, "B": 0.3}``, opens a mixture.
    ``bertdata.dataset.mixture.turns`` describes the order of its examples.

    unverified: accept files without a manifest, and count their examples. They may be TFRecord, HDF5,
        Parquet, MDS or Arrow files of any tool, or a .bin file of fairseq.
    objective: name of a user-defined objective that the examples have, or the objective of files that do not
        record it.
    epoch: for a mixture, number of the epoch to read, from 0. An epoch continues where the epoch before it
        ended, also within each source.
    stopping_strategy: for a mixture, when an epoch ends. "first_exhausted" (the default) ends it with the
        first source that is exhausted. "all_exhausted" ends it with the last, and the other sources start
        over.
    examples: for a mixture, end an epoch after this number of examples instead.
    blocks: for a .bin file of fairseq, the break mode by which fairseq would cut it into blocks. The blocks
        come in fairseq's order.
    tokens_per_sample: size of these blocks in ids.
    """
    require_package("numpy", "numpy", "reading examples")
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
        opened = _open_blocks(list_paths(paths), blocks, tokens_per_sample)
    else:
        opened = reader.open_dataset(list_paths(paths), unverified=unverified, objective=objective)
    if objective is not None:
        # Take the objective's name from the data, because the caller may have written "mlm" for
        # "mlm_word_starts", which has a further column.
        objective = opened.layout.objective
    return ExampleDataset(opened=opened, objective=objective)


def _open_mixture(
    paths: Mapping[AnyPath, Weight], given: dict[str, Any], unverified: bool, objective: str | None
) -> OpenedDataset:
    """Open a mixture of datasets.

    given: the mixture settings that are not None.
    """
    from bertdata.dataset.mixture.examples import mix_examples
    from bertdata.dataset.mixture.opening import open_sources

    sources = [(convert_path(path), weight) for path, weight in paths.items()]
    if not sources:
        raise SettingsError("the mixture has no sources; give paths with their weights")
    weights = make_whole_weights(sources)
    parts = open_sources([path for path, _ in sources], unverified=unverified, objective=objective)
    return mix_examples(parts, weights, **given)


def _open_blocks(paths: list[str], blocks: str, tokens_per_sample: int) -> OpenedDataset:
    """Open a .bin file of fairseq as blocks, that is, pieces of text of about ``tokens_per_sample`` ids."""
    from bertdata.dataset.binarised_blocks import open_blocks

    if len(paths) != 1:
        raise SettingsError(f"blocks are cut of one .bin, found {len(paths)} paths")
    return open_blocks(paths[0], blocks, tokens_per_sample)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ExampleDataset:
    """All examples of a dataset, in order. Instances can be pickled.

    Iterating yields each example without padding, as the frozen dataclass of its objective. For BERT that is
    ``bertdata.examples.bert.batch.BertExample``. At most a few thousand examples are in memory.
    """

    opened: OpenedDataset
    objective: str | None = None
    _by_number: "ExamplesByNumber" = field(init=False, compare=False)
    _tokenizer_files: dict[str | None, "TokenizerFile"] = field(
        init=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_number", ExamplesByNumber(self.opened, self.objective))

    @property
    def layout(self) -> ShardLayout:
        """Layout of the examples: their objective, and limits such as the largest number of ids."""
        return self.opened.layout

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files, each with its path and number of examples."""
        return self.opened.shards

    def __len__(self) -> int:
        return self.opened.examples

    def __iter__(self) -> Iterator[Any]:
        return iterate_examples(self.opened, range(len(self)), self.objective)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """Return the example with this number, or a list of examples for a slice.

        Raises IndexError if there is no such example. Up to 64 MiB of decoded examples are cached.
        """
        return self._by_number.get(index)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The tokeniser that the examples were made with, from its copy next to the data.

        ``tokenizer.encode_each(texts)`` gives token ids, and ``tokenizer.vocabulary`` has the words and the
        special tokens. Raises SettingsError if the copy is missing.
        """
        from bertdata.tokens.load import tokenizer_of

        return tokenizer_of(self._tokenizer_file(None))

    def decode(
        self,
        example: Any,
        *,
        original: bool = False,
        skip_special_tokens: bool = False,
        vocab: AnyPath | None = None,
    ) -> str:
        """Return the text of an example, or of a sequence of token ids.

        example: an example, or ids.
        original: put the original tokens in the place of masked ones.
        skip_special_tokens: leave out special tokens, such as [CLS].
        vocab: vocabulary file or name. None: the copy next to the data.
        """
        from bertdata.tokens.load import vocabulary_of
        from bertdata.tokens.readable import join_tokens

        vocabulary = vocabulary_of(self._tokenizer_file(vocab))
        ids = [int(token) for token in getattr(example, "ids", example)]
        if original:
            for place, token in zip(example.positions, example.labels, strict=True):
                ids[place] = token
        if unknown := [token for token in ids if not 0 <= token < vocabulary.size]:
            raise SettingsError(
                f"id {unknown[0]}, expected 0 to {vocabulary.size - 1}, the last of the vocabulary"
            )
        return join_tokens(vocabulary, ids, skip_special=skip_special_tokens)

    def select(self, numbers: Iterable[SupportsIndex]) -> "ExampleDataset":
        """Return a dataset of the examples with these numbers, in this order.

        Negative numbers count from the end, and a number may occur several times. The examples are read when
        they are used. Raises IndexError for a number that no example has.
        """
        from bertdata.dataset.selection import select_examples

        return replace(
            self, opened=select_examples(self.opened, [convert_index(number) for number in numbers])
        )

    def shuffle(self, *, seed: int = 42) -> "ExampleDataset":
        """Return the same examples in random order.

        The order depends only on the seed and the number of examples.
        Reading a large dataset in random order is slow unless it consists of TFRecord files.
        """
        numbers = list(range(len(self)))
        Random(seed).shuffle(numbers)
        return self.select(numbers)

    def train_test_split(
        self, test_size: float = 0.1, *, seed: int = 42, shuffle: bool = True
    ) -> dict[str, "ExampleDataset"]:
        """Return two datasets that share no example: ``{"train": ..., "test": ...}``.

        If several examples were made from each text (dupe_factor), a text is in both. Texts are held out by
        ``segment(..., eval_share="5%")``.

        test_size: share of the examples in "test", between 0 and 1, or their number.
        seed: seed of the random order.
        shuffle: False takes the last examples for "test", and keeps the order.
        """
        size = len(self)
        is_share = isinstance(test_size, float)
        number = round(size * test_size) if isinstance(test_size, float) else convert_index(test_size)
        if (is_share and not 0 < test_size < 1) or not 0 < number < size:
            raise SettingsError(
                f"test_size is {test_size} of {size} examples, expected a share between 0 and 1, or a number "
                "of examples, which leaves some for training"
            )
        numbers = list(range(size))
        if shuffle:
            Random(seed).shuffle(numbers)
        return {"train": self.select(numbers[:-number]), "test": self.select(numbers[-number:])}

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return the examples with these numbers. A torch DataLoader calls this for each batch."""
        return self._by_number.get_several(numbers)

    def numpy(self, *, batch_size: int = 1024, padded: bool = True) -> Iterator[dict[str, "Array"]]:
        """Yield all examples as dicts of NumPy arrays, ``batch_size`` examples at a time.

        Rows of unmasked examples have no ``labels``. Call ``masked()`` first to draw masks.

        padded: True gives padded rows as int64, of shape [N, S], or [N] for single values, under the names
            that Hugging Face's models use. False gives the objective's columns without padding. There,
            example i has the ids ``ids[ends[i - 1]:ends[i]]``.
        """
        from bertdata.dataset.views.model_rows import iterate_column_batches, iterate_row_batches

        if batch_size < 1:
            raise SettingsError(f"batch_size is {batch_size}, expected 1 or more")
        return (iterate_row_batches if padded else iterate_column_batches)(self.opened, batch_size)

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
        """Yield one rank's batches of an epoch in fairseq's order, as padded rows like those of ``numpy()``.

        Examples of similar length form a batch. The batches are shuffled with the seed ``seed + epoch``. Then
        rank 0 gets the first batch, rank 1 the second and so on. All ids are held in memory.

        batch_size: number of examples in a batch: 1 to 8, or a multiple of 8.
        epoch: number of the epoch, from 1.
        rank: number of this rank (process), from 0.
        world: number of ranks.
        start: number of the first batch to yield.
        """
        self._refuse_mixture("fairseq_batches()")
        from bertdata.dataset.views.model_rows import iterate_ordered_rows

        places = {"rank": rank, "world": world, "start": start}
        return iterate_ordered_rows(self.opened, batch_size=batch_size, seed=seed, epoch=epoch, **places)

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
        """Return the same examples with newly drawn masks, which depend only on seed, epoch and example.

        Existing masks are ignored. The examples need not have any (``create --no-masks``). Raises
        SettingsError or UsageError if a setting is wrong.

        masking: "dynamic" for this package's random stream, "fairseq" or "fairseq-0.12" for the masks that
            this version of fairseq would draw.
        epoch: number of the epoch. None: the first epoch, which is 0 for dynamic and 1 for fairseq.
        vocab: vocabulary file or name. None: the copy next to the data.
        max_predictions_per_seq: most masks in an example. None: the dataset's limit, or no limit for fairseq.

        The other settings are explained at the trainer's settings of the same names.
        """
        from bertdata.dataset.masked_data import mask_dataset
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
        masked = partial(mask_dataset, masker=masker, seed=seed, epoch=epoch)
        return replace(self, opened=self.opened.change_sources(masked))

    def _masker(self, masking: str, vocab: AnyPath | None, settings: "MaskingSettings") -> "Masker":
        """Return the object that draws new masks for the examples.

        Raises SettingsError if the objective of the examples has no masks to draw, or if the settings do not
        suit the vocabulary.
        """
        from bertdata.dataset.masked_data import check_masks, make_masker

        check_masks(self.opened)
        dataset = find_datasets(self.shards[0].path)[0]
        vocabulary = self._vocabulary(None if vocab is None else convert_path(vocab), dataset)
        return make_masker(self.opened, dataset, vocabulary, settings, masking)

    def _check_labels(self, view: str, remedy: str = "") -> None:
        """Raise SettingsError if the examples have no masks.

        Without masks all labels would be -100, which the loss ignores.
        """
        from bertdata.dataset.mask_presence import find_unmasked_directories

        if unmasked := find_unmasked_directories(self.opened):
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
        """Return an iterator of batches identical to those of ModernBERT's loader, packed and masked.

        A batch is a dict. ``input_ids``, ``labels`` and ``attention_mask`` are int64 arrays of shape [rows,
        micro_batch_size * max_seq_len]. ``cu_seqlens`` and ``max_seqlen`` are lists with an item per row.
        With the iterator's ``state_dict()`` and ``load_state_dict()``, it can be continued after any batch.
        Existing masks are ignored. Raises SettingsError, UsageError or DatasetError if something is wrong.

        max_seq_len: length of a row in ids. None: the dataset's length.
        seed: seed of order and masks. None: 9176 for the order and 42 for the masks, as in ModernBERT's
            loader.
        buffer_size: number of examples that the loader holds in order to pack them. None: 5 batches.
        warmup: two numbers: the number of sequences in the first batches, and the number of tokens after
            which batches are full. None: all batches are full.
        epoch: number of the only epoch to yield. None: one epoch after another, without end.
        vocab: vocabulary file or name. None: the copy next to the data.
        tensors: yield torch tensors instead of NumPy arrays.
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
        vocabulary = self._vocabulary(None if vocab is None else convert_path(vocab), dataset)
        loader = ModernBertLoader(
            StoredSequences(self.opened),
            settings,
            mask_id=vocabulary.role("mask"),
            padding_id=vocabulary.role("pad"),
            epoch=epoch,
        )
        if tensors:
            require_package("torch", "train", "modernbert(tensors=True)")
            from bertdata.loaders.modernbert.tensors import convert_to_tensors

            loader.form = convert_to_tensors
        return loader

    def _tokenizer_file(self, vocab: AnyPath | None) -> "TokenizerFile":
        """Return the tokeniser's file that the user named, or the copy that is stored next to the data.

        The file is looked for once, because ``decode`` is called for many examples. A file that is changed
        later is refused when it is loaded.

        Raises SettingsError if there is neither.
        """
        from bertdata.tokens.load import pin_file

        named = None if vocab is None else convert_path(vocab)
        if named not in self._tokenizer_files:
            found = load_dataset_tokenizer(named, find_datasets(self.shards[0].path)[0])
            if found is None:
                raise SettingsError(
                    f"{self.opened.name}: its vocabulary is not beside the data; give vocab to decode()"
                )
            self._tokenizer_files[named] = pin_file(found)
        return self._tokenizer_files[named]

    def _vocabulary(self, path_or_name: str | None, dataset: FoundDataset) -> Vocabulary:
        """Return the vocabulary that the user named, or the copy that is stored next to the data.

        Raises SettingsError if there is neither.
        """
        vocabulary = load_dataset_vocabulary(path_or_name, dataset)
        if vocabulary is None:
            name = self.opened.name
            raise SettingsError(
                f"{name}: masks need its vocabulary, which is not beside the data; give vocab"
            )
        return vocabulary

    def _refuse_mixture(self, view: str) -> None:
        """Raise SettingsError if this dataset is a mixture, or if its examples are chosen from another."""
        from bertdata.dataset.selection import SelectedExamples

        if isinstance(self.opened, SelectedExamples):
            raise SettingsError(
                f"{self.opened.name}: chosen examples have no {view}; iterate over them, or take numpy() or "
                "torch()"
            )
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
        """Return a torch ``IterableDataset`` of the examples, for a DataLoader with ``collator()``.

        Each example is yielded once, however many workers the DataLoader has. If the examples come from
        ``masked()``, ``set_epoch(e)`` draws new masks. Unmasked examples stay unmasked, and ``collator`` can
        draw their masks.

        rank: number of this process, from 0. Only its share of the examples is yielded.
        world: number of processes. Their shares differ by at most one example.
        map_style: return a map-style ``Dataset`` instead, for a DataLoader with ``shuffle=True`` or a
            sampler. The sampler then divides the examples between processes.
        """
        require_package("torch", "train", ".torch()")
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
        pad_to: Literal["max_length", "longest"] = "max_length",
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
        """Return a ``collate_fn`` that turns examples into a batch of tensors under Hugging Face's names.

        pad_to: "max_length" pads all examples to the dataset's length. "longest" pads them to the longest
            example of the batch.
        masking: "dynamic" draws masks for each batch from torch's random number generator, as
            ``DataCollatorForLanguageModeling`` in transformers does. Existing masks are ignored. Unlike the
            masks of ``masked()``, these depend on the order of the batches. None uses the masks of the
            examples, and raises SettingsError if they have none.

        The other settings are those of ``masked``.
        """
        require_package("torch", "train", ".collator()")
        from bertdata.dataset.masked_data import make_masked_layout
        from bertdata.dataset.views.torch_examples import Collator
        from bertdata.examples.masking.settings import MASKINGS, MaskingSettings

        if pad_to not in ("max_length", "longest"):
            raise SettingsError(f"pad_to is {pad_to!r}, expected 'max_length' or 'longest'")
        is_to_longest = pad_to == "longest"
        if masking is None:
            remedy = f', and .collator(masking="{MASKINGS[0]}") for each batch'
            self._check_labels(".collator()", remedy)
            return Collator(layout=self.layout, objective=self.objective, is_to_longest=is_to_longest)
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
        layout = make_masked_layout(self.opened, masker)
        return Collator(layout=layout, objective=self.objective, masker=masker, is_to_longest=is_to_longest)

    def datasets(self, *, streaming: bool = True) -> Any:
        """Return a Hugging Face ``datasets.IterableDataset`` of padded rows under Hugging Face's names.

        It reads the shards while it is iterated. Each file is a shard of the dataset in the sense of
        ``datasets``. If the examples come from ``masked()``, ``set_epoch(e)`` of the result draws new masks,
        also after ``map`` or ``filter``. Raises SettingsError if the examples have no masks. ``masked()``
        draws them.

        streaming: False returns a map-style ``datasets.Dataset`` of the same rows, which is written to the
            cache of ``datasets`` once.
        """
        require_package("datasets", "datasets", ".datasets()")
        self._check_labels(".datasets()")
        from bertdata.dataset.views.huggingface import make_iterable_dataset, make_map_dataset

        return (make_iterable_dataset if streaming else make_map_dataset)(self.opened, self.objective)

    def tensorflow(self, *, batch_size: int | None = None) -> Any:
        """Return a ``tf.data.Dataset`` of padded rows under the names of TFRecord fields, for any container.

        Each element is what ``tf.io.parse_example`` with ``feature_spec()`` returns for the example's
        TFRecord: a dict of int64 and float32 tensors of shape [S], [P] or [1]. With batch_size, the shapes
        are [N, S] and so on. Raises SettingsError if the examples have no masks. ``masked()`` draws them.
        """
        require_package("tensorflow", "tf", ".tensorflow()")
        self._check_labels(".tensorflow()")
        from bertdata.dataset.views.tensorflow_rows import make_tensorflow_dataset

        if batch_size is not None:
            check_positive_integer("batch_size", batch_size)
        return make_tensorflow_dataset(self.opened, self.objective, batch_size)

    def feature_spec(self) -> dict[str, Any]:
        """Return the features of the dataset's TFRecord shards, by field, for ``tf.io.parse_example``."""
        require_package("tensorflow", "tf", ".feature_spec()")
        from bertdata.dataset.views.tensorflow_rows import make_feature_spec

        return make_feature_spec(self.opened)

    def __repr__(self) -> str:
        layout = self.layout
        return (
            f"<ExampleDataset {self.opened.name}: {len(self.shards)} shards, {len(self)} examples, "
            f"objective {layout.objective}, at most {layout.max_seq_length} ids>"
        )


def require_package(package: str, extra: str, feature: str) -> None:
    """Raise MissingExtraError if an optional package is not installed.

    extra: this package's optional dependency group that installs it.
    feature: what needs the package, for the message.
    """
    try:
        is_there = find_spec(package) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise MissingExtraError(f"{feature} needs the package {package}: {install_extra(extra)}")
