"""See the design in README.md: tools."""
