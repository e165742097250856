"""Prices in rational arithmetic, with certificates that anyone can check."""
