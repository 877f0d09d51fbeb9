/* SPDX-License-Identifier: MIT */
/* scontrol show. */
#pragma once

#include "base/error.h"
#include "cli/api/client.h"
#include "compat/slurm/control/scontrol_pairs.h"

/* "show WORD [NAME]"; `name` may be NULL. Returns the exit status, or a negative errno. */
int scontrol_show(struct client *client, const char *word, const char *name, const struct scontrol_form *form,
    struct error *err);

/* The object with that name, or all if it is NULL. */
int scontrol_show_jobs(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err);
int scontrol_show_nodes(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err);
int scontrol_show_partitions(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err);
