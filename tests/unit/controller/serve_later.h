/* SPDX-License-Identifier: MIT */
/* Work that the stand-ins do in a later turn of the loop, so that no answer comes from within a call. */
#pragma once

#include "serve_harness.h"

enum later_kind { LATER_REPLY, LATER_BARRIER, LATER_CALL };

struct later {
    struct later *next;
    enum later_kind kind;
    void *request; // LATER_REPLY, LATER_BARRIER
    struct core_answer answer;
    void (*call)(struct later *later); // LATER_CALL, with what the call needs
    void *arg;
    void (*callback)(void);
    uint64_t number, second;
    size_t limit;
    uint8_t hash[32];
};

struct waiter {
    struct waiter *next;
    void *request;
    uint64_t job;
    uint32_t states;
};

/* The one harness there is: the stand-ins have no other way to it. */
extern struct harness *current;

struct later *later_add(enum later_kind kind);

/* Does what is due; callback of harness->later_event. */
void later_run(int fd, short what, void *arg);
