/* SPDX-License-Identifier: MIT */
/* What mgpud requires of the libraries that it uses. */
#pragma once

/* To be called before any of them: without memory they end mgpud, as it would itself. jansson would leave out
 * what it has no memory for, so that a request could be stored without a part of it. */
void libraries_end_without_memory(void);
