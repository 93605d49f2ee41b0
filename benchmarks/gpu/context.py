"""Program that prints the device's name and torch's version as JSON.

It is run with ``python -m benchmarks.gpu.context DEVICE``.
"""

import json
import sys

from bertdata.errors import BertDataError


def main(device: str) -> int:
    """Print the device's name and torch's version. Returns 0, or 2 if the device does not exist."""
    try:
        import torch

        from trainer.config.settings import Config
        from trainer.devices.opening import find_device

        about = find_device(Config.of(device=device)).describe()
    except (BertDataError, ImportError) as error:
        print(f"benchmarks.gpu: {error}", file=sys.stderr)
        return 2
    print(json.dumps({"device": about, "torch": torch.__version__}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
