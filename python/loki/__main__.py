"""``python -m loki`` is ``loki``."""

from loki.cli import main

if __name__ == "__main__":
    main()
