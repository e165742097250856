"""Speed, measured: us and the peers side by side in one run, against the machine's own limit."""
