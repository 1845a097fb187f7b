"""Small models that take a layout: plain torch modules, the same output under every layout they support."""
