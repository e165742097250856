"""`python -m normalfan` is the command `normalfan`."""

from normalfan.cli import main

main()
