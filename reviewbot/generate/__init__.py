"""See the design in README.md: generate."""
