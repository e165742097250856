"""The command line: parsing and printing only."""

from normalfan.cli.app import main

__all__ = ["main"]
