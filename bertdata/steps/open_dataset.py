"""A dataset opened for reading, and its views."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bertdata.dataset import reader
from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.views.examples import check_rank, examples_of
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import MissingExtraError, SettingsError, install_extra
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout, Vocabulary
from bertdata.steps.values import AnyPath, AnyPaths, path_of, paths_of

if TYPE_CHECKING:
    from bertdata.dataset.views.torch_examples import Collator, TorchExamples
    from bertdata.examples.columns import Array
    from bertdata.loaders.modernbert.loader import ModernBertLoader


def open_dataset(
    paths: AnyPaths,
    *,
    unverified: bool = False,
    objective: str | None = None,
    blocks: str | None = None,
    tokens_per_sample: int = 512,
) -> "ExampleDataset":
    """The dataset at the paths: directories, manifests, shards beside their manifest, patterns, or URLs.

    Sizes are compared with the manifest now, md5s when a shard is read. unverified: take TFRecord, HDF5,
    Parquet or Arrow files of any tool without a manifest, or a .bin of fairseq's, and count their examples.
    objective: one of your own that the examples have, or that of files which do not tell it. blocks,
    tokens_per_sample: of a .bin of fairseq's, the blocks that fairseq makes in this break mode and size, in
    its order. MissingInputError, DatasetError, ManifestError or ShardError name the fault.
    """
    need("numpy", "numpy", "reading examples")
    if blocks is not None:
        from bertdata.dataset.binarised_blocks import open_blocks

        if len(files := paths_of(paths)) != 1:
            raise SettingsError(f"blocks are cut of one .bin, found {len(files)} paths")
        return ExampleDataset(opened=open_blocks(files[0], blocks, tokens_per_sample))
    if objective is not None:
        find_objective(objective)
    opened = reader.open_dataset(paths_of(paths), unverified=unverified, objective=objective)
    return ExampleDataset(opened=opened, objective=objective)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ExampleDataset:
    """All examples of some shards, in order. Picklable.

    Iterating gives each as the frozen dataclass of its objective, without padding: for BERT a
    ``bertdata.examples.bert.batch.BertExample``. No more than a few thousand examples are in memory.
    """

    opened: OpenedDataset
    objective: str | None = None

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

    def numpy(self, *, batch_size: int = 1024, padded: bool = True) -> Iterator[dict[str, "Array"]]:
        """All examples as NumPy arrays, ``batch_size`` at a time.

        padded: int64 rows [N, S], or [N] for a single value, under the names that Hugging Face's models
        take; else the objective's columns without padding: example i owns ``ids[ends[i - 1]:ends[i]]``.
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
        from bertdata.dataset.views.fairseq_batches import ordered_rows

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
        from bertdata.dataset.masked_data import check_masks, masked_data, masker_of
        from bertdata.examples.masking.settings import MaskingSettings

        check_masks(self.opened)
        settings = MaskingSettings(
            masked_lm_prob=masked_lm_prob,
            max_predictions_per_seq=max_predictions_per_seq or 0,
            mask_share=mask_share,
            random_share=random_share,
            kept_share=kept_share,
            whole_word_mask=whole_word_mask,
            mask_counts=mask_counts,
        )
        dataset = find_datasets(self.shards[0].path)[0]
        vocabulary = self._vocabulary(None if vocab is None else path_of(vocab), dataset)
        masker = masker_of(self.opened, dataset, vocabulary, settings, masking)
        return replace(self, opened=masked_data(self.opened, masker, seed=seed, epoch=epoch))

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
        from bertdata.loaders.modernbert.loader import ModernBertLoader
        from bertdata.loaders.modernbert.settings import MASK_SEED, ORDER_SEED, ModernBertSettings, Warmup
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
            warmup=None if warmup is None else Warmup(sequences=warmup[0], tokens=warmup[1]),
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

    def torch(self, *, rank: int = 0, world: int = 1) -> "TorchExamples":
        """A ``torch.utils.data.IterableDataset`` of the examples, for a DataLoader with ``collator()``.

        Each example comes once, however many workers the DataLoader has. rank, world: only this one of
        ``world`` processes' examples; the shares differ by one example at most.
        """
        need("torch", "train", ".torch()")
        from bertdata.dataset.views.torch_examples import TorchExamples

        check_rank(rank, world)
        return TorchExamples(self.opened, self.objective, rank, world)

    def collator(self) -> "Collator":
        """The ``collate_fn`` that makes of examples a batch of tensors under Hugging Face's names."""
        need("torch", "train", ".collator()")
        from bertdata.dataset.views.torch_examples import Collator

        return Collator(layout=self.layout, objective=self.objective)

    def datasets(self) -> Any:
        """A ``datasets.IterableDataset`` of padded rows under Hugging Face's names.

        The shards are read as it is iterated; it has as many shards as there are files.
        """
        need("datasets", "datasets", ".datasets()")
        from bertdata.dataset.views.huggingface import iterable_dataset

        return iterable_dataset(self.opened, self.objective)

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
