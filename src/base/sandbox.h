/* SPDX-License-Identifier: MIT */
/* Denies a process the system calls that it never needs, which limits the damage of an exploit. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/*
 * From now on system calls that change the machine, enter or create namespaces, look into other processes or
 * load programs into the kernel fail with EPERM, for all threads and children; with `may_execute` false
 * so does execve. It also sets no_new_privs. Jobs must not descend from such a process. There is no way
 * back. For an unknown architecture or a kernel without seccomp, it returns -ENOTSUP and changes
 * nothing.
 */
int sandbox_enter(bool may_execute, struct error *err);
