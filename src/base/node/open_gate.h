/* SPDX-License-Identifier: MIT */
/*
 * Processes that ask before they open a device: a seccomp filter with user notification, which answers
 * nothing but "go on". It refuses nothing, and so nothing depends on it for safety: what a process may open
 * is decided by the device filter of its cgroup. The gate only makes an open wait until that filter allows
 * it.
 *
 * Only an open for reading and writing of a file that is not created is asked for: drivers of GPUs are opened
 * that way, and libraries and data are not. Descendants of the process inherit the filter, set-user-id
 * programs included; io_uring and 32-bit programs go past it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OPEN_GATE_WAITING_FIRST 1024U   // maximum number of opens that wait
#define OPEN_GATE_WAITING_MAX   262144U // a further one is answered immediately

/* Does the device wait? Called with the `arg` of the gate; the numbers are those of a character device. */
typedef bool open_gate_waits_fn(const void *arg, uint32_t major_number, uint32_t minor_number);

struct open_gate {
    int listener_fd; // -1: there is no gate
    open_gate_waits_fn *waits;
    const void *arg;
    bool is_open; // nothing waits any more
    uint64_t *waiting;
    size_t n_waiting, n_room;
};

void open_gate_close(struct open_gate *gate);

/*
 * Puts the calling process, which has CAP_SYS_ADMIN, and its descendants behind the gate. From then on this
 * process must not open an existing file for reading and writing: it would wait for its own answer. Returns 0
 * or a negative errno.
 */
int open_gate_enter(struct open_gate *gate, open_gate_waits_fn *waits, const void *arg);

/* Answers one notification; called when `listener_fd` is readable. True: it was about a device that
 * waits. */
bool open_gate_answer(struct open_gate *gate);

/* Lets all waiting opens continue, and later ones pass immediately. */
void open_gate_open(struct open_gate *gate);

/* Tests the gate in child processes, as user `uid`. Returns 0, or a negative errno with the reason in
 * `err`. */
int open_gate_probe(uint32_t uid, struct error *err);
