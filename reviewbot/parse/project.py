"""Is a series for the kernel at all? The lists carry patches for xfstests, iproute2, nft and others.

In: a series, and the top-level names of the tree. Out: the name of the other project, or an empty string.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from reviewbot.model import Series

# Words that the lists put into subject brackets for user-space projects.
_PROJECTS = re.compile(
    r"(xfstests|fstests|xfsprogs|xfs-?dump|e2fsprogs|btrfs-progs|f2fs-tools|exfatprogs|erofs-utils|nfs-utils|cifs-utils|"
    r"iproute2?(-next)?|ethtool|iputils|nft|nftables|libnftnl|libmnl|iptables|ipset|conntrack(-tools)?|libnetfilter_\w+|"
    r"blktests|blktrace|nvme-cli|libnvme|multipath(-tools)?|dm-?utils|lvm2|mdadm|util-linux|fio|liburing|ndctl|"
    r"kvm-unit-tests|kvmtool|qemu|libvirt|edk2|u-boot|opensbi|barebox|bluez|ell|iwd|hostapd|wireless-regdb|linux-firmware|"
    r"ima-evm-utils|keyutils|setools|audit-userspace|auditd|libseccomp|ltp|igt(-gpu-tools)?|i-g-t|mesa|libdrm|"
    r"dwarves|pahole|bpftool-mirror|trace-cmd|libtracefs|libtraceevent|rt-tests|rtla-user|kexec-tools|crash-utility|"
    r"man-pages|b4|dt-schema|devicetree-specification|v4l-utils|libcamera|alsa-\w+|tpm2-tss|criu|smatch|coccinelle|"
    r"buildroot|yocto|oe-core|meta-\w+|openembedded|pm-graph|mmc-utils|mtd-utils|can-utils|lksctp-tools|rdma-core|perftest)"
    r"(-next|-dev|-devel)?",
    re.IGNORECASE,
)

# Words that begin no kernel title.
_IN_TITLES = re.compile(
    r"libnftnl|libmnl|libnetfilter_\w+|nft|nftables|iptables|iproute2|x?fstests|xfsprogs|e2fsprogs|btrfs-progs|nfs-utils|"
    r"blktests|nvme-cli|kvm-unit-tests|util-linux|mdadm|liburing|dwarves|pahole|man-pages"
)


def other_project(
    series: Series, touched: Collection[str], existing: Collection[str], top_level: Collection[str], *, expects: bool
) -> str:
    """Return the project that the series is for when it is not this tree's, else an empty string.

    touched are the paths that the series names, before and after a move; existing are those that the tree has, and
    top_level the names in its root. expects tells that some of them are changed, moved or deleted, not made. Without a
    telling subject word, only a series that touches nothing known, in folders that the tree does not have, is taken for
    another project's.
    """
    if existing:
        return ""
    titles = (series.title, *(patch.subject for patch in series.patches))
    starts = [title.partition(":")[0].strip() for title in titles if ":" in title]
    word = next((w for w in series.prefixes if _PROJECTS.fullmatch(w)), "")
    if word := word or next((w for w in starts if _IN_TITLES.fullmatch(w)), ""):
        return word
    folders = {_top(path) for path in touched if "/" in path}
    if not touched or folders & set(top_level) or not (folders or expects):
        return ""
    return "another project (no file and no folder that it names is in the tree)"


def _top(path: str) -> str:
    return path.partition("/")[0]
