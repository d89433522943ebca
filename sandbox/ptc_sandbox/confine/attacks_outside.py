"""The attacks that reach outside of the process: files, network, other processes."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import subprocess
import threading

from ptc_sandbox.confine import kernel
from ptc_sandbox.confine.attack import BECAME_ANOTHER, Target, attack

# --- Files
# ---------------------------------------------------------------------------------------------------------


@attack("seccomp", "landlock", "rlimits", "namespaces")
def open_file(target: Target) -> object:
    """Read a file that everybody may read."""
    with open(target.readable) as file:
        return file.read()


@attack("seccomp", "landlock", "rlimits", "namespaces")
def create_file(target: Target) -> object:
    """Leave a file behind."""
    with open(f"{target.directory}/left-behind", "x") as file:
        return file.write("left behind")


@attack("seccomp", "landlock", "rlimits", "namespaces")
def list_directory(target: Target) -> object:
    """List a directory."""
    return os.listdir(target.directory)


@attack("seccomp", "namespaces")
def look_at_file(target: Target) -> object:
    """Learn a file's size and times (which Landlock does not cover)."""
    return os.stat(target.readable)


@attack("seccomp", "landlock", "rlimits", "namespaces", "user", root_only=True)
def open_secret(target: Target) -> object:
    """Read a file that only root may read."""
    with open(target.root_only) as file:
        return file.read()


@attack("seccomp", "landlock", "rlimits", "namespaces")
def read_environment(target: Target) -> object:
    """Read another process's environment, where keys lie."""
    with open(f"/proc/{target.victim}/environ", "rb") as file:
        return file.read()


@attack("seccomp", "rlimits")
def fill_open_file(target: Target) -> object:
    """Write into a file that was left open."""
    return os.write(target.file_fd, b"x" * 4096)


# --- Network
# -------------------------------------------------------------------------------------------------------


@attack("seccomp", "landlock", "rlimits", "namespaces", landlock_abi=4)
def connect_tcp(target: Target) -> object:
    """Connect to a port of this machine, as to a cloud's metadata service."""
    with socket.socket(socket.AF_INET) as connection:
        connection.connect(("127.0.0.1", target.port))
        return connection.getpeername()


@attack("seccomp", "landlock", "rlimits", "namespaces", landlock_abi=6)
def connect_abstract(target: Target) -> object:
    """Connect to an abstract Unix socket, as of a desktop bus."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(target.abstract)
        return connection.getpeername()


@attack("seccomp", "rlimits", "namespaces")
def send_datagram(target: Target) -> object:
    """Send a datagram, as to a name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"x", ("127.0.0.1", target.port))


@attack("seccomp", "rlimits")
def make_socket(target: Target) -> object:
    """Make any socket at all."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as made:
        return made.fileno()


# --- Processes
# -----------------------------------------------------------------------------------------------------


@attack("seccomp", "rlimits", exempts_root=True)
def fork(target: Target) -> object:
    """Make a process."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)


@attack("seccomp", "rlimits", exempts_root=True)
def start_thread(target: Target) -> None:
    """Make a thread."""
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError as error:  # CPython hides the errno: "can't start new thread"
        raise OSError(errno.EAGAIN, str(error)) from error
    thread.join()


@attack("seccomp", "landlock", "namespaces", fatal=True)
def execute(target: Target) -> None:
    """Become another program."""
    os.execv(target.shell, ["sh", "-c", f"exit {BECAME_ANOTHER}"])  # noqa: S606


@attack("seccomp", "landlock", "namespaces", "user", landlock_abi=6)
def signal_outside(target: Target) -> None:
    """Signal a process outside (by a signal that is ignored, and free to none: SIGCONT is to one's session)."""
    os.kill(target.victim, signal.SIGURG)


@attack("seccomp", "landlock", "user", "namespaces", fatal=True)
def trace_outside(target: Target) -> object:
    """Take control of a process outside."""
    attach, detach = 16, 17
    kernel.syscall("ptrace", attach, target.victim)
    os.waitpid(target.victim, 0)
    return kernel.syscall("ptrace", detach, target.victim)


@attack("seccomp", "landlock", "user", "namespaces", fatal=True)
def read_memory_outside(target: Target) -> object:
    """Read the memory of a process outside."""
    buffer = ctypes.create_string_buffer(8)
    # struct iovec, for both sides: this address is mapped in the victim as well, which was forked from here.
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    where = ctypes.addressof(vector)
    return kernel.syscall("process_vm_readv", target.victim, where, 1, where, 1)


@attack("seccomp", "user", root_only=True)
def become_root(target: Target) -> None:
    """Be root again."""
    os.setresuid(0, 0, 0)


@attack("no_new_privs", exempts_root=True)
def run_setuid_program(target: Target) -> object:
    """Gain root by a set-user-ID program."""
    gained = subprocess.run([target.setuid_id, "-u"], capture_output=True, check=True).stdout  # noqa: S603
    if gained.strip() != b"0":
        raise PermissionError(errno.EPERM, "no privilege gained")
    return gained
