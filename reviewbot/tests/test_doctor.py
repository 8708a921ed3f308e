import re
from pathlib import Path

import pytest

from reviewbot.tools import doctor
from reviewbot.tools.doctor import Facility, examine
from reviewbot.tools.vng import has_kvm

BOOTSTRAP = Path(__file__).resolve().parents[2] / "bootstrap.sh"

# First lines as Debian 12 and 13 print them.
BANNERS = {
    "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)": "7.2.22",
    "gcc (Debian 12.2.0-14+deb12u1) 12.2.0": "12.2.0",
    "GNU Make 4.3\nBuilt for x86_64-pc-linux-gnu": "4.3",
    "bison (GNU Bison) 3.8.2": "3.8.2",
    "v1.24": "1.24",
    "0.6.4 (Debian: 0.6.4-3)": "0.6.4",
    "v5.36.0": "5.36.0",
    "rsync  version 3.5.0  protocol version 32": "3.5.0",
    "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.": "1.35.0",
    "/usr/bin/chromium: 9: [: 25324732416: unexpected operator\nChromium 156.0.8078.114 built": "156.0.8078.114",
    "no version here": "found",
}


def _only(program: Path, text: str) -> None:
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A machine whose PATH holds what a test puts there.
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setattr("reviewbot.run.search_path", lambda: str(place))
    monkeypatch.setattr("sys.executable", str(place / "python3"))
    return place


def _named(facilities: tuple[Facility, ...]) -> dict[str, Facility]:
    return {facility.name: facility for facility in facilities}


def test_this_machine_has_what_the_tests_themselves_use(tmp_path: Path) -> None:
    found = _named(examine(tmp_path))
    assert re.fullmatch(r"\d+\.\d+.*", found["git"].version)
    assert found["disk of the cache"].version.endswith("GB free") or "only" in found["disk of the cache"].lost


def test_a_bare_machine_lacks_every_program(bare: Path, tmp_path: Path) -> None:
    found = examine(tmp_path)
    present = {facility.name for facility in found if facility.version}
    assert present <= {"KVM", "disk of the cache"}
    needed = [facility.needed for facility in found]
    assert needed == sorted(needed, reverse=True)
    assert all(facility.lost for facility in found)


@pytest.mark.parametrize(("banner", "version"), BANNERS.items())
def test_the_version_is_read_from_what_a_program_prints(bare: Path, tmp_path: Path, banner: str, version: str) -> None:
    (bare / "cat").symlink_to("/bin/cat")
    _only(bare / "sparse", banner)
    assert _named(examine(tmp_path))["sparse"].version == version


def test_a_program_that_fails_is_not_found(bare: Path, tmp_path: Path) -> None:
    (bare / "pahole").write_text("#!/bin/sh\nexit 127\n")
    (bare / "pahole").chmod(0o755)
    (bare / "flex").write_bytes(b"\x7fELF broken")
    (bare / "flex").chmod(0o755)
    found = _named(examine(tmp_path))
    assert found["pahole"].version == found["flex"].version == ""


def test_a_busybox_that_is_not_static_does_not_count(bare: Path, tmp_path: Path) -> None:
    (bare / "busybox").symlink_to("/bin/true")
    assert _named(examine(tmp_path))["static busybox"].version == ""


def test_too_small_a_disk_is_said_with_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED_BYTES", 10**18)
    disk = _named(examine(tmp_path / "not" / "made" / "yet"))["disk of the cache"]
    assert disk.version == ""
    assert re.search(r"only \d+ GB free; set REVIEWBOT_CACHE", disk.lost)


def test_bootstrap_installs_what_the_doctor_needs(tmp_path: Path) -> None:
    script = BOOTSTRAP.read_text()
    installed = set(re.findall(r"[a-z0-9.+-]+", " ".join(re.findall(r'^(?:needed|useful\w*)="([^"]*)"', script, re.M))))
    wanted = {facility.package for facility in examine(tmp_path) if facility.package}
    assert wanted - installed == {"apt", "b4"}
    assert installed - wanted == {"ca-certificates", "file", "kmod"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags\t\t: fpu vme vmx ssse3\n", True),
        ("flags\t\t: fpu svm\n", True),
        ("flags\t\t: fpu vme hypervisor\n", False),  # kvm-pvm: the device opens, kernels hang
        ("model name\t: vmx svm\nflags\t\t: fpu\n", False),
        ("", False),
    ],
)
def test_kvm_needs_the_device_and_the_processor(tmp_path: Path, flags: str, *, expected: bool) -> None:
    cpuinfo, device = tmp_path / "cpuinfo", tmp_path / "kvm"
    cpuinfo.write_text(flags)
    assert not has_kvm(device, cpuinfo)
    device.touch()
    assert has_kvm(device, cpuinfo) is expected
