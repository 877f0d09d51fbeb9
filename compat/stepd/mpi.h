/* SPDX-License-Identifier: MIT */
/*
 * The process manager's side of MPI, on one node of a step: "pmi2" (PMI-1 and PMI-2, the protocols of MPICH
 * and its relatives, over PMI_FD) and "pmix" (by libpmix, for Open MPI). Each kind gives its tasks variables
 * and descriptors, stores the data that they publish, and exchanges it with the other nodes through srun.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

struct mpi;

/* The data about the step that the kinds get. Tasks of a node have consecutive numbers. */
struct mpi_setup {
    const char *name;     // of the job and step
    struct strings nodes; // names
    uint32_t *first;      // for each node its first task, followed by the total number of tasks
    uint32_t here;        // place of this node
};

/* How a kind reaches the other nodes, and what it reports. May be called in any thread. */
struct mpi_acts {
    void *arg;
    /* Sends `data` to the nodes at these places; gathered() follows when each has called this with the same
     * key. */
    void (*gather)(void *arg, const void *key, size_t key_length, const uint32_t *nodes, size_t n_nodes,
        const void *data, size_t length);
    /* Requests the data published by a task from its node; fetched() follows. */
    void (*fetch)(void *arg, uint32_t task, uint64_t request);
    void (*answer)(void *arg, uint64_t request, int status, const void *data, size_t length);
    void (*abort)(void *arg, int code, const char *message);
};

struct mpi_kind {
    const char *name;

    /* 0 if this kind works on this node; else `err` has a sentence about what is missing. */
    int (*check)(struct error *err);

    int (*open)(const struct mpi_setup *setup, const struct mpi_acts *acts, void **ret, struct error *err);

    /* Variables of a task, set before it is started; *ret_fd: a descriptor that it inherits, or -1. */
    int (*prepare)(void *state, uint32_t task, struct strings *env, int *ret_fd, struct error *err);

    /* The descriptor to poll for a task; -1: none. To be called when it is readable. */
    int (*fd)(const void *state, uint32_t task);
    void (*readable)(void *state, uint32_t task);

    /* The data of all nodes of a gather(), concatenated. */
    void (*gathered)(void *state, const void *key, size_t key_length, const void *data, size_t length);

    /* Another node requests the data published by a task here: mpi_acts.answer() follows. */
    void (*asked)(void *state, uint32_t task, uint64_t request);
    void (*fetched)(void *state, uint64_t request, int status, const void *data, size_t length);

    /* True if the task takes part in MPI and has not left it: if it ends, the others wait for it. */
    bool (*is_member)(const void *state, uint32_t task);

    void (*close)(void *state);
};

extern const struct mpi_kind mpi_pmi2, mpi_pmix;

/* The kind of that name; "pmix_v4" is "pmix". NULL: there is none. */
const struct mpi_kind *mpi_kind_find(const char *name);

/* The place of the node that has a task. */
uint32_t mpi_node_of(const struct mpi_setup *setup, uint32_t task);

/* "(vector,(0,2,4))": the distribution of tasks on the nodes, in MPICH's form. The caller frees it. */
char *mpi_process_mapping(const struct mpi_setup *setup);
