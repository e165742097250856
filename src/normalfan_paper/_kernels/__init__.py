"""Compiled simulators: many runs of a learner at once, one run a lane."""
