/* SPDX-License-Identifier: MIT */
/*
 * Options of #SBATCH lines that mean something here, set as those of submit. What means nothing here is told
 * once, and why where that changes what runs; what would mean something but cannot be said here
 * (--dependency=singleton) is refused.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options/call.h"

/* Begins with the call alone. */
struct sbatch {
    struct call *call;
    unsigned line;                // that is being read
    int64_t nodes, gpus_per_node; // 0: not said
    bool has_gpus_per_node;
    char *model;            // of the GPUs per node
    char *mail_on;          // what mail is sent of; NULL: nothing
    char *mail_user;        // to whom; NULL: the submitter
    struct buffer left_out; // "--partition (line 3), ..."
};

/* The options of one line, which is that text. */
int sbatch_read(struct sbatch *sbatch, const char *text, unsigned number, struct error *err);

/* What several lines say together; and tells what was left out. */
int sbatch_settle(struct sbatch *sbatch, const char *path, struct error *err);

void sbatch_clear(struct sbatch *sbatch);
