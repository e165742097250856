"""Learners run against streams, and their regret accounted for exactly."""
