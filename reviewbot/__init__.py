"""reviewbot: review a Linux kernel patch series by applying, building, booting and testing it."""

__version__ = "0.1.0"
