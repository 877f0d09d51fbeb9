/* SPDX-License-Identifier: MIT */
/* Reservations, for the core as a whole. */
#pragma once

#include <stdint.h>

void core_unreserved(void *core, uint64_t reservation); // the scheduler has ended it
