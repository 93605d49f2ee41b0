"""A stand-in for Habana's package of the same name, which computes on the CPU instead of a Gaudi card.

It follows the public interface of HabanaAI/gaudi-pytorch-bridge as of 2025 (when PT_HPU_LAZY_MODE became 0 by
default), as far as a BERT trainer needs it: names, signatures, defaults, and what is refused. All arithmetic
is really done. Each call is recorded (see recording.py). Calls that the real package makes internally, such
as mark_step in its fused optimisers, are not recorded.

Environment variables: BERTDATA_STAND_IN_CARDS is the number of cards (default 8). BERTDATA_STAND_IN_LACKS is
a comma-separated list of names that the package shall lack (FusedLamb, FusedAdamW, FusedClipNorm).
"""
