/* SPDX-License-Identifier: MIT */
/* Options of the verbs that join a terminal. */
#pragma once

#include <stdbool.h>

#include "base/options.h"
#include "cli/follow/follow.h"

struct terminal_options {
    const char *detach_keys; // NULL: the default
    enum ctrl_c ctrl_c;
    bool is_interactive;
    uint32_t rank;         // of a job on several nodes: on which
    uint64_t output_begin; // bytes that the file of -o held before the job
};

int terminal_options_set_keys(struct terminal_options *options, const char *value, struct error *err);
int terminal_options_set_rank(struct terminal_options *options, const char *value, struct error *err);
int terminal_options_set_ctrl_c(struct terminal_options *options, const char *value, struct error *err);
