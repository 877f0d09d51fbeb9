/* SPDX-License-Identifier: MIT */
/* An mgpud that does not answer: was there one, and is it worth waiting for? */
#pragma once

#include <stdint.h>

#define ABSENCE_RESTART_MS 30000 // the longest time that a restart takes

/* For how long clients of this socket wait for the mgpud that listened there: ABSENCE_RESTART_MS after it was
 * stopped, or from now if it was killed. 0: none has listened there since the machine was started, or it was
 * stopped longer ago. */
int64_t absence_wait_ms(const char *socket_path);
