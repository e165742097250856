"""The decision problem and its losses, validated once at the edge."""
