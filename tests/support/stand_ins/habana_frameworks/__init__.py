"""A stand-in for Habana's package of that name: the processor plays the card.

Follows the public interface of HabanaAI/gaudi-pytorch-bridge as of 2025, when PT_HPU_LAZY_MODE came to be 0
unless set, as far as a BERT trainer can need it: names, signatures, defaults, and what is refused. All
arithmetic is done, by the processor. Each call is recorded (recording.py); what the real package calls
within itself (the mark_step of its fused optimisers, say) is not.

Environment: BERTDATA_STAND_IN_CARDS is the number of cards (8 unless set); BERTDATA_STAND_IN_LACKS names,
with commas between, what the package is to lack (FusedLamb, FusedAdamW, FusedClipNorm).
"""
