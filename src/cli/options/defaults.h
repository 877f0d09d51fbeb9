/* SPDX-License-Identifier: MIT */
/*
 * Defaults of options for a user or the site: /etc/mgpu/client.yaml and the file mgpu/client.yaml in the
 * user's configuration directory, which takes precedence. A file maps verbs to options by their long names;
 * "submit" also applies to the other verbs that submit, "all" to every verb:
 *
 *     submit: { time: 4h, env: [OMP_NUM_THREADS=8] }
 *     ps: { output: "id,name,state,gpus" }
 *     all: { color: never }
 */
#pragma once

#include "cli/options/call.h"

/* Sets the options of `call->command` from the files, before the command line is parsed. -EINVAL with file
 * and line. The values live as long as the call. */
int defaults_apply(struct call *call, struct error *err);

/* Appends an object {key, value, origin} for every option in the files to the array. */
int defaults_list(json_t *settings, struct error *err);
