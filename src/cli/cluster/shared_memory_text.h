/* SPDX-License-Identifier: MIT */
/* What mgpu doctor says about shared memory on this machine that no process uses. */
#pragma once

/* One sentence, which the caller frees; NULL if there is none. Root is told of all users, others of what is
 * theirs. */
char *shared_memory_text(void);
