/* SPDX-License-Identifier: MIT */
/*
 * Options of #SBATCH lines, set as options of submit. Options without effect are reported once, with the
 * reason if that changes what runs; options whose meaning cannot be expressed (--dependency=singleton) are
 * refused.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options/call.h"

/* Begins with the call alone. */
struct sbatch {
    struct call *call;
    unsigned line;                // being parsed
    int64_t nodes, gpus_per_node; // 0: not specified
    bool has_gpus_per_node;
    char *model;            // of the GPUs per node
    char *mail_on;          // events to send mail for; NULL: none
    char *mail_user;        // recipient; NULL: the submitter
    struct buffer left_out; // "--partition (line 3), ..."
};

/* Parses the options of one line, given as text. */
int sbatch_read(struct sbatch *sbatch, const char *text, unsigned number, struct error *err);

/* Combines the options of several lines, and reports those without effect. */
int sbatch_settle(struct sbatch *sbatch, const char *path, struct error *err);

void sbatch_clear(struct sbatch *sbatch);
