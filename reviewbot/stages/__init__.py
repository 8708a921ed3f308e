"""See the design in README.md: stages."""
