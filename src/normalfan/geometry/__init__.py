"""Faces of the occupancy polytope and cones of its normal fan, by backups alone."""
