/* SPDX-License-Identifier: MIT */
/*
 * Which variables a job gets: those of this process that --export lets through, over them those of --env-file
 * in the order of the files, over them -e.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

/* Checks a value of --export: "all", "minimal" or names. */
int environment_check(const char *what, struct error *err);

/*
 * The variables as an object, which the caller releases. `what` is a value of --export or NULL, `inherited`
 * an environment, `files` an object or NULL. Entries that are no UTF-8 cannot be said in JSON and are left
 * out: *ret_left_out counts them. -ENOENT when a name of --export is not there.
 */
int environment_make(const char *what, char *const *inherited, json_t *files, const struct strings *given,
    json_t **ret, unsigned *ret_left_out, struct error *err);
