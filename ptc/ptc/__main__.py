"""`python -m ptc`: the command line, also where its script is not on the PATH."""

from ptc.cli import main

if __name__ == "__main__":
    main()
