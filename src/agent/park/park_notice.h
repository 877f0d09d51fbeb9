/* SPDX-License-Identifier: MIT */
/* Notices to a job about its parking: lines in $MGPU_NOTICES, which it can read when it runs again. */
#pragma once

#include "job/park.h"
#include "wire/message.h"

struct launcher;

/* Writes a notice after an order to the attempt with this outcome. Failure to write it has no other
 * effect. */
void park_notice_write(
    const struct launcher *launcher, const struct message_park *order, enum park_outcome outcome);
