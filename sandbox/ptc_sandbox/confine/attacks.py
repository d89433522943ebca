"""The attacks by which a machine's kernel wall is tried: plain CPython in a confined child, no language wall.

Each attack says which layers must stop it, each of them alone. It is told a `Target` that exists and can be
had without confinement, so that a refusal proves the layer; it does no harm where it succeeds.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import mmap
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Final

from ptc_sandbox.confine import kernel
from ptc_sandbox.confine.levels import Layer


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """What there is to attack: all of it outside the child, all of it open to an unconfined process."""

    directory: str
    """Absolute; may be written by the process that starts children."""
    readable: str
    root_only: str
    """A file that only root can read, where the trial runs as root."""
    setuid_id: str
    """A set-user-ID root copy of `id`, or "" where the trial cannot make one."""
    shell: str
    port: int
    abstract: str
    victim: int
    """A process id outside."""
    other_fd: int
    """A descriptor that a child inherits: one end of a pair whose peer answers."""
    file_fd: int
    """A regular file, open for writing."""
    foreign_code: int
    """Address of code that makes a 32-bit system call, or 0."""
    channel: int = -1


BECAME_ANOTHER: Final = 42
"""The exit status by which `execute` tells that it succeeded: nothing else of the child is left to tell."""

Act = Callable[[Target], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Attack:
    """One attack, by name. `stopped_by` are the layers that stop it alone; `fatal` if seccomp kills for
    it."""

    name: str
    what: str
    act: Act
    stopped_by: tuple[Layer, ...]
    fatal: bool
    landlock_abi: int
    """Since which ABI Landlock stops it."""
    root_only: bool
    """Only root can do this at all, so only there a layer is seen to stop it."""
    exempts_root: bool
    """Limits and no_new_privs stop this for ordinary users: for root the uid drop has to come first."""

    def is_stopped_by(self, layer: Layer, *, as_root: bool, landlock_abi: int) -> bool:
        """Whether `layer` alone must stop this, for whom, on a kernel of that Landlock ABI."""
        if layer not in self.stopped_by or (self.root_only and not as_root):
            return False
        if layer == "landlock":
            return landlock_abi >= self.landlock_abi
        if layer == "user":
            return as_root
        return layer == "seccomp" or not (self.exempts_root and as_root)


ATTACKS: Final[dict[str, Attack]] = {}


def _attack(
    *stopped_by: Layer,
    fatal: bool = False,
    landlock_abi: int = 1,
    root_only: bool = False,
    exempts_root: bool = False,
) -> Callable[[Act], Act]:
    def register(act: Act) -> Act:
        name = act.__name__
        what = (act.__doc__ or name).strip().rstrip(".")
        ATTACKS[name] = Attack(name, what, act, stopped_by, fatal, landlock_abi, root_only, exempts_root)
        return act

    return register


# --- Files
# ---------------------------------------------------------------------------------------------------------


@_attack("seccomp", "landlock", "rlimits", "namespaces")
def open_file(target: Target) -> object:
    """Read a file that everybody may read."""
    with open(target.readable) as file:
        return file.read()


@_attack("seccomp", "landlock", "rlimits", "namespaces")
def create_file(target: Target) -> object:
    """Leave a file behind."""
    with open(f"{target.directory}/left-behind", "x") as file:
        return file.write("left behind")


@_attack("seccomp", "landlock", "rlimits", "namespaces")
def list_directory(target: Target) -> object:
    """List a directory."""
    return os.listdir(target.directory)


@_attack("seccomp", "namespaces")
def look_at_file(target: Target) -> object:
    """Learn a file's size and times (which Landlock does not cover)."""
    return os.stat(target.readable)


@_attack("seccomp", "landlock", "rlimits", "namespaces", "user", root_only=True)
def open_secret(target: Target) -> object:
    """Read a file that only root may read."""
    with open(target.root_only) as file:
        return file.read()


@_attack("seccomp", "landlock", "rlimits", "namespaces")
def read_environment(target: Target) -> object:
    """Read another process's environment, where keys lie."""
    with open(f"/proc/{target.victim}/environ", "rb") as file:
        return file.read()


@_attack("seccomp", "rlimits")
def fill_open_file(target: Target) -> object:
    """Write into a file that was left open."""
    return os.write(target.file_fd, b"x" * 4096)


# --- Network
# -------------------------------------------------------------------------------------------------------


@_attack("seccomp", "landlock", "rlimits", "namespaces", landlock_abi=4)
def connect_tcp(target: Target) -> object:
    """Connect to a port of this machine, as to a cloud's metadata service."""
    with socket.socket(socket.AF_INET) as connection:
        connection.connect(("127.0.0.1", target.port))
        return connection.getpeername()


@_attack("seccomp", "landlock", "rlimits", "namespaces", landlock_abi=6)
def connect_abstract(target: Target) -> object:
    """Connect to an abstract Unix socket, as of a desktop bus."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(target.abstract)
        return connection.getpeername()


@_attack("seccomp", "rlimits", "namespaces")
def send_datagram(target: Target) -> object:
    """Send a datagram, as to a name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"x", ("127.0.0.1", target.port))


@_attack("seccomp", "rlimits")
def make_socket(target: Target) -> object:
    """Make any socket at all."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as made:
        return made.fileno()


# --- Processes
# -----------------------------------------------------------------------------------------------------


@_attack("seccomp", "rlimits", exempts_root=True)
def fork(target: Target) -> object:
    """Make a process."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)


@_attack("seccomp", "rlimits", exempts_root=True)
def start_thread(target: Target) -> None:
    """Make a thread."""
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError as error:  # CPython hides the errno: "can't start new thread"
        raise OSError(errno.EAGAIN, str(error)) from error
    thread.join()


@_attack("seccomp", "landlock", "namespaces", fatal=True)
def execute(target: Target) -> None:
    """Become another program."""
    os.execv(target.shell, ["sh", "-c", f"exit {BECAME_ANOTHER}"])  # noqa: S606


@_attack("seccomp", "landlock", "namespaces", "user", landlock_abi=6)
def signal_outside(target: Target) -> None:
    """Signal a process outside (by a signal that is ignored, and free to none: SIGCONT is to one's session)."""
    os.kill(target.victim, signal.SIGURG)


@_attack("seccomp", "landlock", "user", "namespaces", fatal=True)
def trace_outside(target: Target) -> object:
    """Take control of a process outside."""
    attach, detach = 16, 17
    kernel.syscall("ptrace", attach, target.victim)
    os.waitpid(target.victim, 0)
    return kernel.syscall("ptrace", detach, target.victim)


@_attack("seccomp", "landlock", "user", "namespaces", fatal=True)
def read_memory_outside(target: Target) -> object:
    """Read the memory of a process outside."""
    buffer = ctypes.create_string_buffer(8)
    # struct iovec, for both sides: this address is mapped in the victim as well, which was forked from here.
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    where = ctypes.addressof(vector)
    return kernel.syscall("process_vm_readv", target.victim, where, 1, where, 1)


@_attack("seccomp", "user", root_only=True)
def become_root(target: Target) -> None:
    """Be root again."""
    os.setresuid(0, 0, 0)


@_attack("no_new_privs", exempts_root=True)
def run_setuid_program(target: Target) -> object:
    """Gain root by a set-user-ID program."""
    gained = subprocess.run([target.setuid_id, "-u"], capture_output=True, check=True).stdout  # noqa: S603
    if gained.strip() != b"0":
        raise PermissionError(errno.EPERM, "no privilege gained")
    return gained


# --- Descriptors
# ---------------------------------------------------------------------------------------------------


@_attack("seccomp", "descriptors")
def write_elsewhere(target: Target) -> object:
    """Write to an inherited descriptor."""
    return os.write(target.other_fd, b"x")


@_attack("seccomp", "descriptors")
def read_elsewhere(target: Target) -> object:
    """Read from an inherited descriptor."""
    return os.read(target.other_fd, 1)


@_attack("seccomp")
def write_with_upper_half(target: Target) -> object:
    """Write to a descriptor whose number is more than 32 bits, to slip past a filter that compares 32."""
    buffer = ctypes.create_string_buffer(b"x")
    return kernel.syscall("write", target.channel | 1 << 32, kernel.address(buffer), 0)


@_attack("seccomp", "rlimits")
def duplicate_channel(target: Target) -> object:
    """Have a second descriptor."""
    return os.dup(target.channel)


@_attack("seccomp")
def send_out_of_band(target: Target) -> object:
    """Send out-of-band data on the channel (CVE-2025-38236)."""
    with _channel(target) as channel:
        return channel.send(b"x", socket.MSG_OOB | socket.MSG_DONTWAIT)


@_attack("seccomp")
def send_descriptor(target: Target) -> object:
    """Send a descriptor to the host."""
    with _channel(target) as channel:
        return socket.send_fds(channel, [b""], [target.channel])


@_attack("seccomp")
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


@_attack("seccomp", fatal=True)
def map_executable(target: Target) -> object:
    """Map memory that can be executed."""
    with mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC) as made:
        return len(made)


@_attack("seccomp", fatal=True)
def make_executable(target: Target) -> object:
    """Make memory executable that holds data."""
    where = kernel.syscall(
        "mmap", 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 2**64 - 1, 0
    )
    return kernel.syscall("mprotect", where, 4096, mmap.PROT_READ | mmap.PROT_EXEC)


@_attack("seccomp")
def share_memory(target: Target) -> object:
    """Have shared memory, which RLIMIT_DATA does not count."""
    with mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS) as made:
        return len(made)


@_attack("rlimits")
def take_memory(target: Target) -> object:
    """Take four gigabytes."""
    try:
        return len(bytes(1 << 32))  # from calloc: nothing is touched
    except MemoryError as error:
        raise OSError(errno.ENOMEM, "MemoryError") from error


@_attack("seccomp", "rlimits")
def take_shared_memory(target: Target) -> object:
    """Take four gigabytes of shared memory."""
    with mmap.mmap(-1, 1 << 32) as made:
        return len(made)


@_attack("rlimits")
def spin(target: Target) -> object:
    """Use the processor for longer than the limit of one second."""
    while time.process_time() < 1.7:
        pass
    return time.process_time()


@_attack("seccomp", "rlimits", exempts_root=True)
def raise_limit(target: Target) -> None:
    """Raise a limit again."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    except ValueError as error:  # CPython's word for EPERM here
        raise PermissionError(errno.EPERM, str(error)) from error


# --- The kernel itself
# ---------------------------------------------------------------------------------------------


@_attack("seccomp", fatal=True)
def enter_user_namespace(target: Target) -> object:
    """Be root of a namespace of one's own, the start of most kernel exploits."""
    return kernel.syscall("unshare", kernel.CLONE_NEWUSER)


@_attack("seccomp", fatal=True)
def clone_into_namespace(target: Target) -> object:
    """The same by clone."""
    pid = kernel.syscall("clone", kernel.CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)


@_attack("seccomp", "user", fatal=True, root_only=True)
def mount(target: Target) -> object:
    """Mount a file system (a remount that changes nothing)."""
    text = ctypes.create_string_buffer(b"/")
    return kernel.syscall("mount", 0, kernel.address(text), 0, 0x4000 | 0x40000, 0)


@_attack("seccomp", "user", fatal=True, root_only=True)
def change_root(target: Target) -> None:
    """Change the root, by which a chroot is left."""
    os.chroot("/")


@_attack("seccomp", fatal=True)
def filter_again(target: Target) -> object:
    """Ask for another system-call filter."""
    allow = kernel.address(ctypes.create_string_buffer(b"\0\0\xff\x7f"))
    action_available = 2
    return kernel.syscall("seccomp", action_available, 0, allow)


@_attack("seccomp", fatal=True)
def start_io_uring(target: Target) -> object:
    """Submit system calls by io_uring, past every filter."""
    parameters = ctypes.create_string_buffer(120)
    return kernel.syscall("io_uring_setup", 1, kernel.address(parameters))


@_attack("seccomp", fatal=True)
def use_keyring(target: Target) -> object:
    """Read the kernel's keyring."""
    get_keyring_id, session_keyring = 0, 2**64 - 3
    return kernel.syscall("keyctl", get_keyring_id, session_keyring, 1)


@_attack("seccomp", fatal=True)
def change_personality(target: Target) -> object:
    """Ask how memory is laid out, to change it."""
    return kernel.syscall("personality", 0xFFFF_FFFF)


@_attack("seccomp")
def be_dumpable(target: Target) -> object:
    """Be open to tracing again."""
    return kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


@_attack("seccomp", fatal=True)
def call_by_x32(target: Target) -> object:
    """Make a call by x86-64's second ABI, whose numbers differ."""
    return kernel.raw(0x4000_0000 | 39)


@_attack("seccomp", fatal=True)
def call_by_foreign_architecture(target: Target) -> object:
    """Make a 32-bit call from 64-bit code, whose numbers differ."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(target.foreign_code)()
