/* SPDX-License-Identifier: MIT */
/* Options of the verbs that attach to a terminal. */
#pragma once

#include <stdbool.h>

#include "base/options.h"
#include "cli/follow/follow.h"

/* --ctrl-c */
enum ctrl_c { CTRL_C_FORWARD, CTRL_C_DETACH, CTRL_C_CANCEL, CTRL_C_CHOICES };

struct terminal_options {
    const char *detach_keys; // NULL: the default
    enum ctrl_c ctrl_c;
    enum leaver leaver;                    // of this program, for struct follow_options
    void (*show_state)(const json_t *job); // these three: as in struct follow_options
    void (*show_end)(const json_t *job);
    bool passes_signals;
    bool is_interactive;
    bool is_input_sent;    // standard input goes to a job without a terminal
    uint32_t rank;         // of a job on several nodes
    uint64_t output_begin; // size of the file of -o before the job
};

/* The ends of rows (base/options.h) of a verb whose options contain these as `terminal`. */
#define TERMINAL_KEYS(type)                                                                                  \
    .set_key = terminal_options_set_keys, .member = offsetof(type, terminal), .is_inner = true
#define TERMINAL_RANK(type)                                                                                  \
    .set_key = terminal_options_set_rank, .member = offsetof(type, terminal), .is_inner = true
#define TERMINAL_CTRL_C(type)                                                                                \
    .set_key = terminal_options_set_ctrl_c, .member = offsetof(type, terminal), .is_inner = true

int terminal_options_set_keys(
    void *target, const struct option_row *row, const char *value, struct error *err);
int terminal_options_set_rank(
    void *target, const struct option_row *row, const char *value, struct error *err);
int terminal_options_set_ctrl_c(
    void *target, const struct option_row *row, const char *value, struct error *err);
