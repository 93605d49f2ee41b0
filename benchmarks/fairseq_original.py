"""Program that masks random blocks with fairseq 0.12.2. ``benchmarks.fairseq_masks`` runs it.

It imports nothing of this project, because it runs in fairseq's environment: Python 3.8, numpy 1.23, torch
1.13. Its output is JSON, with the CPU seconds and with the md5 of all sources and targets, for masked tokens
and for masked whole words.
"""

# mypy: ignore-errors
import hashlib
import json
import time

import numpy as np
import torch
from fairseq.data import MaskTokensDataset

BLOCKS, LENGTH, TOKENS = 2000, 512, 50_265


class Blocks(torch.utils.data.Dataset):
    """Dataset of the same blocks that ``fairseq_masks.make_blocks`` returns."""

    supports_prefetch = False

    def __init__(self):
        self.ids = np.random.RandomState(7).randint(4, TOKENS - 1, (BLOCKS, LENGTH)).astype(np.int64)
        self.ids[:, 0], self.ids[:, -1] = 0, 2

    def __getitem__(self, number):
        return torch.from_numpy(self.ids[number].copy())

    def __len__(self):
        return BLOCKS

    def set_epoch(self, epoch):
        """Set the epoch. fairseq calls this method before each epoch, but the blocks do not depend on it."""
        pass


class MaskingDictionary:
    """The methods of fairseq's dictionary that masking calls."""

    nspecial = 4

    def __len__(self):
        return TOKENS


def main():
    """Mask all blocks and print the results as JSON."""
    torch.set_num_threads(1)
    begins = torch.tensor([token < 4 or token % 3 > 0 for token in range(TOKENS)], dtype=torch.uint8)
    found = {}
    for name, words in (("ids", None), ("words", begins)):
        settings = {"seed": 1, "mask_prob": 0.15, "leave_unmasked_prob": 0.1, "random_token_prob": 0.1}
        ids = {"pad_idx": 1, "mask_idx": TOKENS - 1, "mask_whole_words": words}
        both = MaskTokensDataset.apply_mask(Blocks(), MaskingDictionary(), **ids, **settings)
        for made in both:
            made.set_epoch(1)
        start = time.process_time()
        rows = [[made[number].numpy() for made in both] for number in range(BLOCKS)]
        seconds, md5 = time.process_time() - start, hashlib.md5()
        for source, target in rows:
            md5.update(source.tobytes())
            md5.update(target.tobytes())
        found[name] = {"seconds": seconds, "md5": md5.hexdigest()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
