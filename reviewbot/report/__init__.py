"""See the design in README.md: report."""
