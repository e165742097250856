"""The problems and loss streams of the paper's experiments and proofs."""
