/* SPDX-License-Identifier: MIT */
/*
 * What a user, or the site, wants of mgpu's options without typing them: /etc/mgpu/client.yaml and the file
 * mgpu/client.yaml in the user's configuration directory, which counts more. A file maps verbs to options by
 * their long names; "submit" is also for the other verbs that submit, "all" for every verb:
 *
 *     submit: { time: 4h, env: [OMP_NUM_THREADS=8] }
 *     ps: { output: "id,name,state,gpus" }
 *     all: { color: never }
 */
#pragma once

#include "cli/options/call.h"

/* Sets the options of `call->command` as the files say; the command line comes after it. -EINVAL with file
 * and line. The values live as long as the call. */
int defaults_apply(struct call *call, struct error *err);

/* Appends an object {key, value, origin} for every option in the files to the array. */
int defaults_list(json_t *settings, struct error *err);
