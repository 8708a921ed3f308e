"""Where the data that travels with reviewbot lies: selftests/, kconfigs/ and the examples."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """Return the directory ``selftests`` or ``kconfigs``, in an installed wheel or in a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def example_dir(name: str) -> Path:
    """Return the directory of a packaged example (series.txt and prerequisites/)."""
    return _PACKAGE / "examples" / name
