/* SPDX-License-Identifier: MIT */
/* scontrol show hostlist, hostlistsorted. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Prints the names of a list (NULL: missing) in the short form: in their order, or sorted; none is left out.
 */
int scontrol_hostlist(const char *list, bool is_sorted, struct error *err);
