/* SPDX-License-Identifier: MIT */
/* The answer to GET /api/v1/cluster. */
#pragma once

#include <jansson.h>

#include "controller/cluster/cluster.h"

/* The caller owns the result. */
json_t *cluster_status_write(const struct cluster_status *status);

/* A string. Bytes that are not UTF-8, such as those of a character that was cut, become \xNN. */
json_t *cluster_status_text(const char *text);
