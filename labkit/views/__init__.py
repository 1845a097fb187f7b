"""Results as figures, tables and HTML: no state, no callbacks."""
