"""Stand-ins for the optimisers whose step is a single kernel on the card."""

from habana_frameworks.torch.hpex.lacking import lacks

if not lacks("FusedLamb"):
    from habana_frameworks.torch.hpex.optimizers.lamb import FusedLamb as FusedLamb
if not lacks("FusedAdamW"):
    from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW as FusedAdamW
