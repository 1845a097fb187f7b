"""Interactive widgets, one class a file."""
