"""See the design in README.md: checks."""
