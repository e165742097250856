"""The experiments of the paper: each is settings, a run, a check that gives verdicts, and its figures."""
