"""``python -m bertdata``."""

import sys

from bertdata.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
