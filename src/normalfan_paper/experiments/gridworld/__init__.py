"""Advantage-thresholded mirror descent on gridworlds whose losses move."""
