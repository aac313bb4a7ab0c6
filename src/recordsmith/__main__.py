"""`python -m recordsmith`: the command line."""

from recordsmith.cli import main

main()
