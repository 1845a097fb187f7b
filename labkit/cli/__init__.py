"""The command line: parse, call, print. Bad input is one line on stderr and exit code 2; nothing is written then."""

from labkit.cli.entry import main as main
