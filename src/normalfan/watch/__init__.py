"""A stream of losses on standard input, priced line by line, that survives being killed."""
