/* SPDX-License-Identifier: MIT */
/*
 * Files of --env-file: NAME=VALUE lines, blank lines and # comments. A value may be quoted: 'literally', or
 * "with \n, \t, \", \$ and \\". Nothing is expanded. "export " before a name is ignored.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define ENV_FILE_MAX (1U << 20) // bytes

/* The variables as an object, which the caller releases. Errors include file and line. */
int env_file_read(const char *path, json_t **ret, struct error *err);
