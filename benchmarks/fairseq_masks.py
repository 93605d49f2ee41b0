"""Speed of fairseq's masking on blocks of 512 ids: this project's kernel, and fairseq's own steps in NumPy.

fairseq's steps are the NumPy calls that it makes for an example, in the same order, on blocks in memory. They
run twice per example, because fairseq draws the masks once for the source and once more for the target. This
project's masker is the object that open_dataset and the trainer use. The figure is ids per CPU second of one
thread.

fairseq draws from NumPy's Generator or, in older versions, from MT19937. NumPy does not promise that a
Generator gives the same numbers in every version, so for it only the speeds are compared. The numbers of
MT19937 are fixed, so for it both must also draw equally many masks.

With ``--peer-python PYTHON``, fairseq 0.12.2 itself also runs, in the environment of that Python. Its sources
and targets must equal this project's, id for id.
"""

import argparse
import hashlib
import json
import subprocess
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import measure
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import Draws
from bertdata.examples.fairseq.load_masker import FairseqMasker, make_fairseq_masker
from bertdata.examples.fairseq.streams import RELEASES
from bertdata.examples.fairseq.words import find_word_begins
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import ShardLayout, Vocabulary

BLOCKS, LENGTH, TOKENS = 2000, 512, 50_265
PAD, MASK, SHARE = 1, TOKENS - 1, 0.15
SEED, EPOCH = 1, 1


def make_vocabulary() -> Vocabulary:
    """Return a vocabulary with RoBERTa's special ids. Two of three tokens in it begin a word."""
    words = ["\u0120piece" if token % 3 else "piece" for token in range(TOKENS)]
    return Vocabulary(
        name="roberta",
        md5="",
        words=words,
        continues_word=None,
        replacements=tuple(range(TOKENS)),
        kind="bpe",
        cls=0,
        pad=PAD,
        sep=2,
        unk=3,
        mask=MASK,
    )


def make_blocks() -> Array:
    """Return blocks of random ids, each between the ids of <s> and </s>."""
    ids = np.random.RandomState(7).randint(4, MASK, (BLOCKS, LENGTH)).astype(np.int32)
    ids[:, 0], ids[:, -1] = 0, 2
    return ids


def mask_theirs(ids: Array, release: str, weights: Array, begins: Array | None) -> int:
    """Mask all blocks with fairseq's steps, once for the target and once for the source.

    Returns the number of masks.

    release: name of the way to mask. It selects fairseq's version, and with it the source of random numbers.
    weights: probability of each token as a random replacement.
    begins: True for each token that begins a word, to mask whole words. None: mask single tokens.
    """
    count = 0
    for number, block in enumerate(ids):
        seed = int(hash((SEED, EPOCH, number)) % 1e6)
        for is_target in (True, False):
            stream = np.random.default_rng(seed) if release == "fairseq" else np.random
            if stream is np.random:
                np.random.seed(seed)
            made = mask_block(block, stream, weights, begins, is_target)
            count += int((made != PAD).sum()) if is_target else 0
    return count


def mask_block(block: Array, stream: object, weights: Array, begins: Array | None, is_target: bool) -> Array:
    """Return the target or the source that fairseq makes of a block.

    stream: NumPy's source of random numbers.
    weights: probability of each token as a random replacement.
    begins: True for each token that begins a word. None: mask single tokens.
    """
    draw, choose = stream.random, stream.choice  # type: ignore[attr-defined]
    size, lengths = len(block), None
    if begins is not None:
        starts = np.flatnonzero(begins[block])
        lengths = np.diff(starts, append=size)
        size = len(starts)
    chosen = np.zeros(size, bool)
    chosen[choose(size, int(SHARE * size + draw()), replace=False)] = True
    if is_target:
        chosen = chosen if lengths is None else np.repeat(chosen, lengths)
        return np.where(chosen, block, PAD)
    some = chosen & (draw(size) < 0.2)
    stays = draw(size) < 0.5
    masked, random = chosen ^ (some & stays), some & ~stays
    if lengths is not None:
        masked, random = np.repeat(masked, lengths), np.repeat(random, lengths)
    made = block.copy()
    made[masked] = MASK
    if random.any():
        made[random] = choose(TOKENS, random.sum(), p=weights)
    return made


def mask_ours(ids: Array, masker: FairseqMasker) -> int:
    """Mask all blocks with this project's masker. Return the number of masked ids."""
    lengths = np.full(BLOCKS, LENGTH, np.int32)
    starts = np.arange(BLOCKS, dtype=np.int64) * LENGTH
    keys, numbers = masker.streams(SEED, EPOCH, "", 0, np.arange(BLOCKS, dtype=np.uint64))
    draws = Draws(keys=keys, numbers=numbers, rates=np.full(BLOCKS, SHARE))
    return int(masker.mask(ids.reshape(-1).copy(), starts, lengths, draws).counts.sum())


def compute_digest(ids: Array, masker: FairseqMasker) -> str:
    """Return the md5 of all sources and targets, computed in the same way as in fairseq_original.py."""
    made, lengths = ids.copy(), np.full(BLOCKS, LENGTH, np.int32)
    keys, numbers = masker.streams(SEED, EPOCH, "", 0, np.arange(BLOCKS, dtype=np.uint64))
    draws = Draws(keys=keys, numbers=numbers, rates=np.full(BLOCKS, SHARE))
    masks = masker.mask(made.reshape(-1), np.arange(BLOCKS, dtype=np.int64) * LENGTH, lengths, draws)
    md5 = hashlib.md5(usedforsecurity=False)
    for source, positions, labels, count in zip(
        made, masks.positions, masks.labels, masks.counts, strict=True
    ):
        target = np.full(LENGTH, PAD, np.int64)
        target[positions[:count]] = labels[:count]
        md5.update(source.astype(np.int64).tobytes() + target.tobytes())
    return md5.hexdigest()


def compare_with_fairseq(python: str, maskers: dict[str, FairseqMasker], rates: dict[str, float]) -> None:
    """Run fairseq itself and print its speed. Exit with an error if its ids differ from this project's.

    python: the Python of an environment with fairseq.
    maskers: this project's maskers, by name of the way to mask.
    rates: speed of each of these maskers in millions of ids per second, under the same names.
    """
    command = [python, str(Path(__file__).with_name("fairseq_original.py"))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for name, found in json.loads(done.stdout.splitlines()[-1]).items():
        assert found["md5"] == compute_digest(make_blocks(), maskers[name]), (
            f"{name}: fairseq gives other ids"
        )
        theirs = BLOCKS * LENGTH / found["seconds"] / 1e6
        print(
            f"  fairseq 0.12.2 itself, {name}: {theirs:.2f}, the same ids: {rates[name] / theirs:.0f} times"
        )


def main() -> None:
    """Print the speeds of all ways to mask."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer-python")
    python = parser.parse_args().peer_python
    maskers: dict[str, FairseqMasker] = {}
    own_rates: dict[str, float] = {}
    ids, known = make_blocks(), make_vocabulary()
    weights = np.ones(TOKENS)
    weights[:4] = 0
    weights /= weights.sum()
    layout = ShardLayout(objective="mlm", max_seq_length=LENGTH)
    print(f"{BLOCKS} blocks of {LENGTH} ids, NumPy {np.__version__}, million ids a second and core:")
    for release in RELEASES:
        for whole in (False, True):
            settings = MaskingSettings(max_predictions_per_seq=0, whole_word_mask=whole)
            masker = make_fairseq_masker(known, settings, layout, release)
            begins = np.frombuffer(find_word_begins(known), np.uint8) if whole else None
            peer, own = partial(mask_theirs, ids, release, weights, begins), partial(mask_ours, ids, masker)
            masks = peer(), own()
            assert masks[0] == masks[1] or release == "fairseq", masks
            rates = [ids.size / measure.measure_best_cpu(work) / 1e6 for work in (peer, own)]
            ratio = rates[1] / rates[0]
            unit = "words" if whole else "ids"
            name = f"{release}, {unit}"
            if release == "fairseq-0.12":
                maskers[unit], own_rates[unit] = masker, rates[1]
            print(f"  {name:<20} {rates[1]:7.1f}, theirs {rates[0]:5.2f}: {ratio:5.1f} times (wanted: 5)")
    if python is not None:
        compare_with_fairseq(python, maskers, own_rates)


if __name__ == "__main__":
    main()
