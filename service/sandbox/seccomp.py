"""The system call filter: a BPF program assembled by hand, so that no library is needed.

Everything is allowed but what no honest build, test or script needs: other processes' memory, mounts, namespaces, keys,
kernel modules, clocks, device nodes (and with them FIFOs), io_uring, and address families beyond those named.
AF_VSOCK must be closed here: network namespaces do not cover it.
"""

import errno
import platform
import struct

FAMILIES_LOCAL = (1,)  # AF_UNIX
FAMILIES_NET = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6

_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000

_DENIED = {
    # other processes
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
    "process_madvise": 440, "process_mrelease": 448, "migrate_pages": 256, "move_pages": 279,
    # mounts and namespaces
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "open_tree_attr": 467,
    # keys, handles, device nodes
    "add_key": 248, "request_key": 249, "keyctl": 250, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "mknod": 133, "mknodat": 259,
    # large kernel surfaces
    "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "userfaultfd": 323, "fanotify_init": 300, "fanotify_mark": 301, "memfd_secret": 447, "modify_ldt": 154,
    "lookup_dcookie": 212, "vmsplice": 278, "mbind": 237, "set_mempolicy": 238,
    # the machine
    "acct": 163, "settimeofday": 164, "adjtimex": 159, "clock_adjtime": 305, "clock_settime": 227, "swapon": 167,
    "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
    "quotactl": 179, "quotactl_fd": 443, "syslog": 103, "vhangup": 153, "uselib": 134, "ustat": 136, "sysfs": 139,
    "_sysctl": 156, "nfsservctl": 180,
}  # fmt: skip
_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR, _IOCTL = 56, 435, 41, 53, 16
_CLONE_NEW_ANYTHING = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# BPF: load word, jump if equal / greater or equal / any bit set, return
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data, low halves
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def is_supported() -> bool:
    """Whether we know this processor's system call numbers."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def build_filter(families: tuple[int, ...]) -> bytes:
    """The filter as the bytes bubblewrap and prctl take; sockets of other families do not exist for the command."""
    program = [_step(_LOAD, _ARCH), _step(_JEQ, _ARCH_X86_64, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    program += _when(_JGE, _X32, errno.ENOSYS)
    for number in _DENIED.values():
        program += _when(_JEQ, number, errno.EPERM)
    program += _when(_JEQ, _CLONE3, errno.ENOSYS)  # its flags are behind a pointer; libc falls back to clone
    program += _looking_at(_CLONE, _ARG0, _when(_JSET, _CLONE_NEW_ANYTHING, errno.EPERM))
    program += _looking_at(_IOCTL, _ARG1, _when(_JEQ, _TIOCSTI, errno.EPERM) + _when(_JEQ, _TIOCLINUX, errno.EPERM))
    for number in (_SOCKET, _SOCKETPAIR):
        program += _looking_at(number, _ARG0, _only(families))
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _when(test: int, value: int, error: int) -> list[bytes]:
    """Fail with `error` if the loaded word passes the test."""
    return [_step(test, value, 0, 1), _step(_RETURN, _ERRNO | error)]


def _only(families: tuple[int, ...]) -> list[bytes]:
    """Fail unless the loaded word is one of the families."""
    jumps = [_step(_JEQ, family, len(families) - place, 0) for place, family in enumerate(families)]
    return [*jumps, _step(_RETURN, _ERRNO | errno.EAFNOSUPPORT)]


def _looking_at(number: int, argument: int, tests: list[bytes]) -> list[bytes]:
    """Apply tests to one argument of one system call, and go on with the number loaded again."""
    body = [_step(_LOAD, argument), *tests, _step(_LOAD, _NUMBER)]
    return [_step(_JEQ, number, 0, len(body)), *body]
