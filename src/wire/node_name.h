/* SPDX-License-Identifier: MIT */
/* What a node may be called, and which versions of mgpu work together. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define NODE_NAME_MAX 64U

/* Letters, digits, '-', '_' and '.'. */
int node_name_check(const char *name, struct error *err);

/* `who`, such as "node gpu1", speaks this protocol and has this version of mgpu: does it work with ours? One
 * minor version more or less does. */
int node_version_check(uint32_t protocol, const char *version, const char *who, struct error *err);
