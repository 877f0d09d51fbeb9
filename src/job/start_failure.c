/* SPDX-License-Identifier: MIT */
#include "job/start_failure.h"

#include <errno.h>

static const struct start_row rows[START_CAUSES] = {
    [START_UNNAMED] = { "unnamed", START_WAITS, START_OF_JOB, false,
        "a node with an older mgpu-agent gave no cause, or the attempt was withdrawn" },
    [START_REQUEST] = { "request", START_FINAL, START_OF_JOB, false,
        "the request cannot be carried out on any node: it is unreadable, or names a path that no container "
        "can "
        "mount" },
    [START_COMMAND] = { "command", START_FINAL, START_OF_JOB, false,
        "the command, or the shell of the setup command, does not exist or cannot be executed" },
    [START_PLACE] = { "place", START_FINAL, START_OF_JOB, false,
        "its user may not enter the working directory, or may not write or read a file of `--output`, "
        "`--error` "
        "or `--input`, or the file is not theirs" },
    [START_FILES] = { "files", START_SOON, START_OF_JOB, false,
        "the working directory, or a file or directory of `--output`, `--error`, `--input` or the command's "
        "path "
        "is missing, or its file server reports an error" },
    [START_FEATURE] = { "feature", START_ELSEWHERE, START_OF_JOB, false,
        "the node lacks what the job requests: a container runtime, or a way to share GPUs" },
    [START_ACCOUNT] = { "account", START_ELSEWHERE, START_OF_JOB, false,
        "the node does not run jobs of this user: root, a system account, or another name for the user id" },
    [START_USER] = { "user", START_WAITS, START_OF_USER, true,
        "the user database of the node does not have the user" },
    [START_LOOKUP] = { "lookup", START_WAITS, START_OF_USER, true,
        "the user database of the node, or the directory of the logs, reports an error or does not respond" },
    [START_HOME] = { "home", START_WAITS, START_OF_USER, false,
        "the home directory of the user is missing on the node, or the default output file cannot be "
        "created" },
    [START_SLOW] = { "slow", START_WAITS, START_OF_USER, false,
        "the working directory or the output file does not respond" },
    [START_SPAWN] = { "spawn", START_WAITS, START_OF_USER, false,
        "no process can be created as the user: too many processes, or no memory" },
    [START_INIT] = { "init", START_WAITS, START_OF_JOB, false,
        "the first process of the job was killed before the command" },
    [START_GPU] = { "gpu", START_WAITS, START_OF_JOB, false, "a GPU of the job is not ready for it" },
    [START_CGROUP] = { "cgroup", START_WAITS, START_OF_NODE, true,
        "the cgroup that limits the job cannot be created, configured or entered" },
    [START_DEVICE] = { "device", START_WAITS, START_OF_NODE, false,
        "access to the GPUs of other jobs cannot be denied, or access to its own cannot be granted" },
    [START_SPOOL] = { "spool", START_WAITS, START_OF_NODE, true,
        "the run directory of the node (RUN) cannot be written: its file system is full, for example" },
    [START_PROCESS] = { "process", START_WAITS, START_OF_NODE, true,
        "the node has no process, memory, descriptor or terminal left" },
    [START_RIGHTS] = { "rights", START_WAITS, START_OF_NODE, true,
        "mgpu-shepherd cannot switch to the user" },
    [START_SHEPHERD] = { "shepherd", START_WAITS, START_OF_NODE, true,
        "mgpu-shepherd cannot be executed, or ends before the start" },
};

static const char *const class_names[] = {
    [START_FINAL] = "final",
    [START_SOON] = "soon",
    [START_ELSEWHERE] = "elsewhere",
    [START_WAITS] = "waits",
};

static const char *const scope_names[] = {
    [START_OF_JOB] = "job",
    [START_OF_USER] = "user",
    [START_OF_NODE] = "node",
};

const struct start_row *start_row(uint32_t cause)
{
    return &rows[cause < START_CAUSES ? cause : START_UNNAMED];
}

const char *start_class_name(enum start_class class)
{
    return class_names[class];
}

const char *start_scope_name(enum start_scope scope)
{
    return scope_names[scope];
}

bool start_error_may_pass(int error)
{
    switch (error) {
    case ENOENT:
    case ESTALE:
    case EIO:
    case ETXTBSY:
    case ENODEV: // an automount that is not ready
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EREMOTEIO:
    case ESHUTDOWN: return true;
    default: return false;
    }
}
