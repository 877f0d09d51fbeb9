/* SPDX-License-Identifier: MIT */
/* What the private mgpud takes of the machine: memory, descriptors, processes, files and control groups. */
#pragma once

#include "lab/kit/kit.h"

enum figure {
    FIGURE_MGPUD_KIB, // resident
    FIGURE_AGENT_KIB, // of the agent with its helpers
    FIGURE_MGPUD_FILES,
    FIGURE_AGENT_FILES,
    FIGURE_PROCESSES, // of mgpu, those of jobs included
    FIGURE_SPOOL,     // entries
    FIGURE_CGROUPS,   // of the whole machine
    FIGURES,
};

struct figure_row {
    const char *name;  // in the report
    const char *words; // in a sentence
    double noise;      // differences that mean nothing
    bool is_counted;   // it must not grow at all; memory does, with the jobs that mgpud remembers
};

extern const struct figure_row figure_rows[FIGURES];

/* Measures all; one that cannot be read is -1. */
void figures_read(const struct kit *kit, double values[FIGURES]);
