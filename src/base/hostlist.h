/* SPDX-License-Identifier: MIT */
/* Lists of host names in Slurm's short form: "gpu[1-3,7],login". */
#pragma once

#include "base/error.h"
#include "base/strings.h"

#define HOSTLIST_MAX 65536U // names of one list

/* Appends the names of "gpu[1-3,07],login" in the order written. -EINVAL for invalid or unclosed brackets,
 * -E2BIG above HOSTLIST_MAX names; `ret` may then contain some of them. */
int hostlist_expand(const char *text, struct strings *ret, struct error *err);

/* The same, each name once, at the position of the first of its group as in hostlist_compress(). */
int hostlist_expand_once(const char *text, struct strings *ret, struct error *err);

/* The names, each once, as a short list. Names that differ only in their final number are combined into one
 * item, at the position of the first. The caller frees it. */
char *hostlist_compress(const struct strings *names);
