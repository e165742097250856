"""Early crossings cost more: the layered tree."""
