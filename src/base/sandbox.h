/* SPDX-License-Identifier: MIT */
/* Takes from a process the system calls that it never needs, so that a hole in it leads to less. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/*
 * From now on system calls that change the machine, enter or create namespaces, look into other processes or
 * load programs into the kernel fail with EPERM, for all threads and children; with `may_execute` false
 * so does execve. It also sets no_new_privs. Jobs must not descend from such a process. There is no way back.
 * On machines whose system calls are not known here, and kernels without seccomp, it returns -ENOTSUP and
 * nothing has changed.
 */
int sandbox_enter(bool may_execute, struct error *err);
