/* SPDX-License-Identifier: MIT */
/* Runs a verb in this process, without an mgpud, and keeps its output. */
#pragma once

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/options/call.h"
#include "unit_test.h"

#define NOBODY_HERE "/nonexistent/mgpud.sock"

/* Runs a verb and returns all that it said; the caller frees it. */
static inline char *run_verb(const struct command *command, int argc, char **argv, int *ret_status)
{
    struct call call = { .socket = NOBODY_HERE };
    int kept_out = dup(STDOUT_FILENO), kept_err = dup(STDERR_FILENO), said = memfd_create("stderr", 0);
    char *text = xcalloc(1, 4096);
    (void)fflush(stdout);
    (void)dup2(said, STDERR_FILENO);
    (void)dup2(said, STDOUT_FILENO);
    *ret_status = call_run(&call, command, argc, argv);
    (void)fflush(stdout);
    (void)dup2(kept_out, STDOUT_FILENO);
    (void)dup2(kept_err, STDERR_FILENO);
    assert_true(pread(said, text, 4095, 0) >= 0);
    (void)close(kept_out), (void)close(kept_err), (void)close(said);
    return text;
}
