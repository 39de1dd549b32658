"""`python -m penstock.interfaces.demo`."""

from __future__ import annotations

import sys

from penstock.interfaces.demo.story import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
