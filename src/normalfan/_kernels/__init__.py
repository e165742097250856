"""Compiled kernels: plain arrays in, plain arrays out. numba is imported here and nowhere else."""
