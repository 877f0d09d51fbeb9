/* SPDX-License-Identifier: MIT */
/* The verbs of mgpu-sim, one file each. */
#pragma once

enum sim_exit { SIM_OK = 0, SIM_FAILED = 1, SIM_USAGE = 2 };

struct sim_command {
    const char *name;
    const char *summary;
    const char *usage;
    int (*run)(int argc, char **argv); // argv[0] is the verb; an exit status
};

extern const struct sim_command command_run, command_check, command_bench, command_pack, command_journal,
    command_tune;
