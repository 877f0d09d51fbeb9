# SPDX-License-Identifier: MIT
"""The kernel's device programs on cgroups, by bpf(2) itself: what is attached, and how to disturb it."""

import contextlib
import ctypes
import os
import struct

SYS_BPF = {'x86_64': 321, 'aarch64': 280}.get(os.uname().machine)
PROG_LOAD, PROG_ATTACH, PROG_DETACH, PROG_GET_FD_BY_ID, PROG_QUERY = 5, 8, 9, 13, 16
CGROUP_DEVICE = 6  # kind of attachment
PROG_TYPE_CGROUP_DEVICE = 15
ALLOW_EVERYTHING = struct.pack('<BBhi', 0xb7, 0, 0, 1) + struct.pack('<BBhi', 0x95, 0, 0, 0)  # r0 = 1; exit

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """One call; what the kernel wrote stays in `attributes`, a bytearray of 128."""
    place = (ctypes.c_char * 128).from_buffer(attributes)
    result = libc.syscall(SYS_BPF, command, place, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), f'bpf({command})')
    return result


def pack(layout, *values):
    return bytearray(struct.pack(layout, *values).ljust(128, b'\0'))


@contextlib.contextmanager
def directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def attached(path):
    """Ids of the programs on the cgroup itself."""
    ids = (ctypes.c_uint32 * 64)()
    with directory(path) as fd:
        attributes = pack('<IIIIQI', fd, CGROUP_DEVICE, 0, 0, ctypes.addressof(ids), 64)
        bpf(PROG_QUERY, attributes)
    return list(ids[:struct.unpack_from('<I', attributes, 24)[0]])


def detach_all(path):
    for program in attached(path):
        program_fd = bpf(PROG_GET_FD_BY_ID, pack('<I', program))
        try:
            with directory(path) as fd:
                bpf(PROG_DETACH, pack('<III', fd, program_fd, CGROUP_DEVICE))
        finally:
            os.close(program_fd)


@contextlib.contextmanager
def only_this_one(path):
    """While it lasts the kernel takes no program on any cgroup below."""
    code, license_text = ctypes.create_string_buffer(ALLOW_EVERYTHING, 16), ctypes.create_string_buffer(b'MIT')
    program_fd = bpf(PROG_LOAD, pack('<IIQQ', PROG_TYPE_CGROUP_DEVICE, 2, ctypes.addressof(code),
                                     ctypes.addressof(license_text)))
    try:
        with directory(path) as fd:
            bpf(PROG_ATTACH, pack('<IIII', fd, program_fd, CGROUP_DEVICE, 0))
        yield
        detach_all(path)
    finally:
        os.close(program_fd)
