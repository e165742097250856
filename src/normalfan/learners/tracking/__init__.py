"""The face tracker: a learner that plays on the last optimal face, and how it chooses a point there."""
