/* SPDX-License-Identifier: MIT */
/* Configures the libraries that mgpud uses. */
#pragma once

/* To be called before any of them: when out of memory they end mgpud, as mgpud's own allocations do. jansson
 * would otherwise omit a member, and a request could be stored incompletely. */
void libraries_end_without_memory(void);
