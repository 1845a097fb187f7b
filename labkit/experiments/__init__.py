"""What the notebooks run: one frozen Config and one run() each."""
