"""Times callables and watches what they use: observers, timing, records. Knows no op and no policy."""
