"""See the design in README.md: parse."""
