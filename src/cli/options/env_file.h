/* SPDX-License-Identifier: MIT */
/*
 * Files of --env-file: NAME=VALUE lines, blank lines and # comments. A value may stand in quotes: 'as it is',
 * or "with \n, \t, \", \$ and \\". Nothing is expanded. "export " before a name is passed over.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define ENV_FILE_MAX (1U << 20) // bytes

/* An object of the variables, which the caller releases. The error has file and line. */
int env_file_read(const char *path, json_t **ret, struct error *err);
