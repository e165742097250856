"""How far a loss may move before the plan changes: along a line, in a plane, in everything at once."""
