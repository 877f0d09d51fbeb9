/* SPDX-License-Identifier: MIT */
/*
 * The environment of a job: variables of this process allowed by --export, overridden by --env-file in the
 * order of the files, overridden by -e.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

/* Checks a value of --export: "all", "minimal" or names. */
int environment_check(const char *what, struct error *err);

/* True if an inherited variable is exported by that value of --export; NULL means "all". mgpu's own variables
 * are exported only if they are named. */
bool environment_is_exported(const char *what, const char *name);

/*
 * The variables as an object, which the caller releases. `what` is a value of --export or NULL, `inherited`
 * an environment, `files` an object or NULL. Entries that are not UTF-8 cannot be sent in JSON and are
 * omitted; *ret_left_out is their number. -ENOENT if a name of --export is not set.
 */
int environment_make(const char *what, char *const *inherited, json_t *files, const struct strings *given,
    json_t **ret, unsigned *ret_left_out, struct error *err);
