"""The items of a run, a file an item or two; ``order`` puts them in the order of their worth."""
