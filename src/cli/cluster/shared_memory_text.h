/* SPDX-License-Identifier: MIT */
/* mgpu doctor's sentence about shared memory on this machine that no process uses. */
#pragma once

/* One sentence, which the caller frees; NULL if there is none. Root sees that of all users, others only their
 * own. */
char *shared_memory_text(void);
