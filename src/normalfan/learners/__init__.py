"""Learners: what plays a policy each round and then sees the loss."""
