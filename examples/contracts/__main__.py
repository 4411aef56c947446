"""`python -m examples.contracts`: a Ctrl-C ends it quietly, even while it is being loaded."""

import sys

if __name__ == "__main__":
    try:
        from examples.contracts.play import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
