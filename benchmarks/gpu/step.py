"""Program that runs a step: ``python -m benchmarks.gpu.step MODULE.FUNCTION JSON``. The runner starts it."""

import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import find_sizes
from bertdata.errors import BertDataError


def main(words: list[str]) -> int:
    """Call the step's function, and return the exit status.

    words: name of the function, and JSON with the step's name, the output folder and the function's options.
    """
    name, text = words
    given = json.loads(text)
    module, _, function = name.partition(".")
    figures = Figures(folder=Path(given["folder"]), **given["about"])
    sizes = find_sizes(given["device"], given["small"])
    try:
        getattr(import_module(f"benchmarks.gpu.{module}"), function)(figures, sizes, **given["options"])
    except BertDataError as error:
        print(f"benchmarks.gpu: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
