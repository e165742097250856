"""Ready-made problems and loss streams."""
