"""Regret splits into price and selection error: degenerate faces."""
