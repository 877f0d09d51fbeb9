/* SPDX-License-Identifier: MIT */
/* Names of nodes, and compatibility of mgpu versions. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define NODE_NAME_MAX 64U

/* Letters, digits, '-', '_' and '.'. */
int node_name_check(const char *name, struct error *err);

/* Checks whether `who`, such as "node gpu1", with this protocol and version of mgpu works with this one. The
 * minor version may differ by one. */
int node_version_check(uint32_t protocol, const char *version, const char *who, struct error *err);
