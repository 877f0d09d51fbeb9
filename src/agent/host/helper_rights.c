/* SPDX-License-Identifier: MIT */
/*
 * Jobs descend from the agent, its keeper, the uplink and the fork server, and would inherit any restrictions
 * of these. The control daemon of MPS starts servers of users and is NVIDIA's program. All other processes
 * are listed here.
 */
#include "agent/host/helper_rights.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/capabilities.h"
#include "base/error.h"
#include "base/sandbox.h"

/* The agent's files and sockets also belong to the user that mgpud runs as; NIS requests come from a low
 * port. */
#define LOOK_UP                                                                                              \
    (CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_NET_BIND_SERVICE))
#define BECOME_USER (CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID))

/* NVIDIA's library may execute nvidia-modprobe, which loads the driver and creates device nodes. */
#define DRIVE                                                                                                \
    (CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) |                \
        CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_FSETID) | CAPABILITY(CAP_KILL) | CAPABILITY(CAP_SETUID) |    \
        CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_IPC_LOCK) | CAPABILITY(CAP_MKNOD) |                          \
        CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_MODULE) | CAPABILITY(CAP_SYS_NICE) |                  \
        CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_SYS_RAWIO) | CAPABILITY(CAP_SYS_RESOURCE) |              \
        CAPABILITY(CAP_SYSLOG) | CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_CHECKPOINT_RESTORE))

enum calls {
    CALLS_ALL,
    CALLS_PROGRAMS, // the sandbox, which may execute programs
    CALLS_NONE,     // likewise without
};

static const struct {
    const char *name; // NULL: the name of the program that it executes
    uint64_t capabilities;
    enum calls calls;
} table[] = {
    [HELPER_USERS] = { "mgpu-users", LOOK_UP | CAPABILITY(CAP_CHOWN), CALLS_NONE }, // makes log directories
    [HELPER_LOG] = { "mgpu-log", LOOK_UP | BECOME_USER, CALLS_NONE },
    [HELPER_PORT] = { "mgpu-port", LOOK_UP | BECOME_USER, CALLS_NONE },
    [HELPER_API] = { "mgpu-api", LOOK_UP | BECOME_USER, CALLS_NONE },
    [HELPER_POST] = { "mgpu-tell", LOOK_UP | BECOME_USER, CALLS_PROGRAMS },
    /* sendmail, and programs that a user's own command calls, may be set-user-ID. */
    [HELPER_TELL] = { "mgpu-tell", CAPABILITIES_ALL, CALLS_ALL },
    [HELPER_GPUS] = { "mgpu-gpus", DRIVE, CALLS_ALL },
    [HELPER_ROCM] = { "mgpu-rocm", DRIVE, CALLS_ALL },
    [HELPER_PARK] = { "mgpu-park", DRIVE, CALLS_ALL },
    [HELPER_GPU_TEST] = { NULL, DRIVE, CALLS_ALL },
};

void helper_enter(enum helper_kind kind)
{
    if (table[kind].name != NULL)
        (void)prctl(PR_SET_NAME, table[kind].name);
    if (table[kind].capabilities != CAPABILITIES_ALL && geteuid() == 0)
        capabilities_keep(table[kind].capabilities);
    if (table[kind].calls != CALLS_ALL)
        (void)sandbox_enter(table[kind].calls == CALLS_PROGRAMS, &(struct error){ 0 });
}
