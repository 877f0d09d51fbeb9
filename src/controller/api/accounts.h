/* SPDX-License-Identifier: MIT */
/* Names of groups in answers. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* The name of a group, or its number as text if it has none. The caller owns it. */
json_t *accounts_group_name(uint32_t gid);
