"""The paper's illustrations, one a module."""
