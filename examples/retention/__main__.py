"""`python -m examples.retention`: a Ctrl-C ends it quietly, even while it is being loaded."""

import sys

if __name__ == "__main__":
    try:
        from examples.retention.play import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
