"""``python -m labkit``: the command line where the script is not on the path."""

import sys

from labkit.cli import main

sys.exit(main())
