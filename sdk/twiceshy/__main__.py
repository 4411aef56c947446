"""`python -m twiceshy` is the command `twiceshy`."""

from twiceshy._commands import main

if __name__ == "__main__":
    main(prog_name="twiceshy")
