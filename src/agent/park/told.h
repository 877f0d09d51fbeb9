/* SPDX-License-Identifier: MIT */
/* What a job is told of its being parked: lines in $MGPU_NOTICES, which it reads when it runs again. */
#pragma once

#include "job/park.h"
#include "wire/message.h"

struct launcher;

/* After an order to the attempt that was carried out with this outcome. A notice that cannot be written is
 * missing: it costs nothing else. */
void told_outcome(
    const struct launcher *launcher, const struct message_park *order, enum park_outcome outcome);
