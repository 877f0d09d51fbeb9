/* SPDX-License-Identifier: MIT */
/* The reasons for which a job waits, as codes with which clients compare: the list is closed. The scheduler
 * (sched/why.h) finds them and adds a sentence about the particular job. */
#pragma once

/* X(code, name in the API, title, meaning), in the order of `mgpu help reasons`. */
#define WHY_TABLE(X)                                                                                         \
    X(RESOURCES, "resources", "Resources", "not enough GPUs, CPUs or host memory are free")                  \
    X(GPU_MEMORY, "gpu_memory", "GPU memory", "not enough memory is free on the GPUs")                       \
    X(GPU_EXTERNAL, "gpu_external", "External use", "a GPU is used by external processes")                   \
    X(GPU_PAUSED, "gpu_paused", "Paused GPU", "a GPU is out of service: paused, failed, or not clean yet")   \
    X(NODE_DOWN, "node_down", "Node down", "a node cannot be reached")                                       \
    X(NODE_DRAINED, "node_drained", "Node drained", "a node is out of service")                              \
    X(PRIORITY, "priority", "Priority", "other jobs come first")                                             \
    X(USER_LIMIT, "user_limit", "Limit", "you have reached a limit for users, or the array its own limit")   \
    X(GROUP_LIMIT, "group_limit", "Group limit", "your group has reached a limit")                           \
    X(QUOTA, "quota", "Quota", "the GPU-hours are used up")                                                  \
    X(DEPENDENCY, "dependency", "Dependency", "a job it depends on has not ended")                           \
    X(DEPENDENCY_NEVER, "dependency_never", "Dependency", "it can never be satisfied: mgpu edit JOB after=") \
    X(BEGIN_TIME, "begin_time", "Begin time", "its time has not come")                                       \
    X(RESERVATION, "reservation", "Reservation", "GPUs are reserved for other users")                        \
    X(HELD_USER, "held_user", "Held", "you hold it: mgpu release JOB")                                       \
    X(HELD_ADMIN, "held_admin", "Held", "an operator holds it")                                              \
    X(BACKOFF, "backoff", "Backing off", "it could not be started and will be retried")                      \
    X(STARTING, "starting", "Starting", "it is being started")                                               \
    X(PARTITION, "partition", "Partition", "its partition has no nodes, or is no longer configured")         \
    X(NODE_STARTING, "node_starting", "Node starting", "its node is starting the maximum number of jobs")    \
    X(NEVER_FITS, "never_fits", "Never fits", "no node can satisfy its request any more")

#define WHY_CODE(code, name, title, meaning) WHY_##code,
enum why_code { WHY_TABLE(WHY_CODE) WHY_CODES };
#undef WHY_CODE

const char *why_code_name(enum why_code code);    // "resources", ...; "invalid" for another number
const char *why_code_title(enum why_code code);   // "Resources"
const char *why_code_meaning(enum why_code code); // "not enough GPUs, CPUs or host memory are free"

/* The code with this name; WHY_CODES: there is none, as for those of a newer mgpud. */
enum why_code why_code_find(const char *name);
