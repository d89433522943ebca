"""The attacks that stay inside the process: on descriptors, memory and time, and on the kernel itself."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import time

from ptc_sandbox.confine import kernel
from ptc_sandbox.confine.attack import Target, attack

# --- Descriptors
# ---------------------------------------------------------------------------------------------------


@attack("seccomp", "descriptors")
def write_elsewhere(target: Target) -> object:
    """Write to an inherited descriptor."""
    return os.write(target.other_fd, b"x")


@attack("seccomp", "descriptors")
def read_elsewhere(target: Target) -> object:
    """Read from an inherited descriptor."""
    return os.read(target.other_fd, 1)


@attack("seccomp")
def write_with_upper_half(target: Target) -> object:
    """Write to a descriptor whose number is more than 32 bits, to slip past a filter that compares 32."""
    buffer = ctypes.create_string_buffer(b"x")
    return kernel.syscall("write", target.channel | 1 << 32, kernel.address(buffer), 0)


@attack("seccomp", "rlimits")
def duplicate_channel(target: Target) -> object:
    """Have a second descriptor."""
    return os.dup(target.channel)


@attack("seccomp")
def send_out_of_band(target: Target) -> object:
    """Send out-of-band data on the channel (CVE-2025-38236)."""
    with _channel(target) as channel:
        return channel.send(b"x", socket.MSG_OOB | socket.MSG_DONTWAIT)


@attack("seccomp")
def send_descriptor(target: Target) -> object:
    """Send a descriptor to the host."""
    with _channel(target) as channel:
        return socket.send_fds(channel, [b""], [target.channel])


@attack("seccomp")
def set_channel_option(target: Target) -> object:
    """Change the channel's buffers."""
    with _channel(target) as channel:
        return channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)


class _channel:  # noqa: N801 - used as a function
    """The channel as a socket object that does not close it."""

    def __init__(self, target: Target) -> None:
        self._fd = target.channel

    def __enter__(self) -> socket.socket:
        # With all of its facts given, `socket` asks the kernel for none.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=self._fd)
        return self._socket

    def __exit__(self, *_: object) -> None:
        self._socket.detach()


# --- Memory and time
# -----------------------------------------------------------------------------------------------


@attack("seccomp", fatal=True)
def map_executable(target: Target) -> object:
    """Map memory that can be executed."""
    with mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC) as made:
        return len(made)


@attack("seccomp", fatal=True)
def make_executable(target: Target) -> object:
    """Make memory executable that holds data."""
    where = kernel.syscall(
        "mmap", 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 2**64 - 1, 0
    )
    return kernel.syscall("mprotect", where, 4096, mmap.PROT_READ | mmap.PROT_EXEC)


@attack("seccomp")
def share_memory(target: Target) -> object:
    """Have shared memory, which RLIMIT_DATA does not count."""
    with mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS) as made:
        return len(made)


@attack("rlimits")
def take_memory(target: Target) -> object:
    """Take four gigabytes."""
    try:
        return len(bytes(1 << 32))  # from calloc: nothing is touched
    except MemoryError as error:
        raise OSError(errno.ENOMEM, "MemoryError") from error


@attack("seccomp", "rlimits")
def take_shared_memory(target: Target) -> object:
    """Take four gigabytes of shared memory."""
    with mmap.mmap(-1, 1 << 32) as made:
        return len(made)


@attack("rlimits")
def spin(target: Target) -> object:
    """Use the processor for longer than the limit of one second."""
    while time.process_time() < 1.7:
        pass
    return time.process_time()


@attack("seccomp", "rlimits", exempts_root=True)
def raise_limit(target: Target) -> None:
    """Raise a limit again."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    except ValueError as error:  # CPython's word for EPERM here
        raise PermissionError(errno.EPERM, str(error)) from error


# --- The kernel itself
# ---------------------------------------------------------------------------------------------


@attack("seccomp", fatal=True)
def enter_user_namespace(target: Target) -> object:
    """Be root of a namespace of one's own, the start of most kernel exploits."""
    return kernel.syscall("unshare", kernel.CLONE_NEWUSER)


@attack("seccomp", fatal=True)
def clone_into_namespace(target: Target) -> object:
    """The same by clone."""
    pid = kernel.syscall("clone", kernel.CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)


@attack("seccomp", "user", fatal=True, root_only=True)
def mount(target: Target) -> object:
    """Mount a file system (a remount that changes nothing)."""
    text = ctypes.create_string_buffer(b"/")
    return kernel.syscall("mount", 0, kernel.address(text), 0, 0x4000 | 0x40000, 0)


@attack("seccomp", "user", fatal=True, root_only=True)
def change_root(target: Target) -> None:
    """Change the root, by which a chroot is left."""
    os.chroot("/")


@attack("seccomp", fatal=True)
def filter_again(target: Target) -> object:
    """Ask for another system-call filter."""
    allow = kernel.address(ctypes.create_string_buffer(b"\0\0\xff\x7f"))
    action_available = 2
    return kernel.syscall("seccomp", action_available, 0, allow)


@attack("seccomp", fatal=True)
def start_io_uring(target: Target) -> object:
    """Submit system calls by io_uring, past every filter."""
    parameters = ctypes.create_string_buffer(120)
    return kernel.syscall("io_uring_setup", 1, kernel.address(parameters))


@attack("seccomp", fatal=True)
def use_keyring(target: Target) -> object:
    """Read the kernel's keyring."""
    get_keyring_id, session_keyring = 0, 2**64 - 3
    return kernel.syscall("keyctl", get_keyring_id, session_keyring, 1)


@attack("seccomp", fatal=True)
def change_personality(target: Target) -> object:
    """Ask how memory is laid out, to change it."""
    return kernel.syscall("personality", 0xFFFF_FFFF)


@attack("seccomp")
def be_dumpable(target: Target) -> object:
    """Be open to tracing again."""
    return kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


@attack("seccomp", fatal=True)
def call_by_x32(target: Target) -> object:
    """Make a call by x86-64's second ABI, whose numbers differ."""
    return kernel.raw(0x4000_0000 | 39)


@attack("seccomp", fatal=True)
def call_by_foreign_architecture(target: Target) -> object:
    """Make a 32-bit call from 64-bit code, whose numbers differ."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(target.foreign_code)()
