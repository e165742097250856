"""Loss variation is not the difficulty: four regimes on the simplex, four algorithms."""
