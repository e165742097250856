"""The paper, run again: every claim as a row of a ledger, with the run that judges it."""
