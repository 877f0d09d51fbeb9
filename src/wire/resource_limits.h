/* SPDX-License-Identifier: MIT */
/* Limits of the kernel for each process of a job, as a site writes them:
 * "memlock=unlimited,nofile=4096:65536,stack=64M". */
#pragma once

#include "base/error.h"
#include "base/record.h"

/* A list of NAME=SOFT[:HARD] as struct launch_limit, without HARD the same as SOFT. *ret may be NULL: it is
 * only checked. The caller frees the items. -EINVAL if it is none. */
int resource_limits_parse(const char *list, const char *option, struct record_list *ret, struct error *err);
