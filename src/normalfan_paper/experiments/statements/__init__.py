"""The paper's statements, judged by computation: every theorem tried, every failure an instance to run."""
