/* SPDX-License-Identifier: MIT */
/* Lists of host names in the short form that Slurm has for them: "gpu[1-3,7],login". */
#pragma once

#include "base/error.h"
#include "base/strings.h"

#define HOSTLIST_MAX 65536U // names of one list

/* Appends the names of "gpu[1-3,07],login", in the order written. -EINVAL for brackets that are not closed or
 * hold something else, -E2BIG above HOSTLIST_MAX names; `ret` may then hold some of them. */
int hostlist_expand(const char *text, struct strings *ret, struct error *err);

/* The names, each once, as a short list: names that differ in the number at their end alone are one item, at
 * the place of the first of them. The caller frees it. */
char *hostlist_compress(const struct strings *names);
