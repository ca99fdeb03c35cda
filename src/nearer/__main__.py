"""``python -m nearer`` is the `nearer` command."""

from nearer.cli import main

if __name__ == "__main__":
    main()
