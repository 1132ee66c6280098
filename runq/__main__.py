"""`python -m runq` is `runq`."""

from runq.cli import main

if __name__ == "__main__":
    main()
