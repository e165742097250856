"""The paper's inequalities, with both sides computed."""
