/* SPDX-License-Identifier: MIT */
/* The connections of places to the controller. */
#pragma once

#include "box.h"

#define SILENCE_MAX_MS 5000

/* Has the node's agent connect, in a while, again and again until the controller is there. */
void line_dial(struct place *place);

void line_cut(struct place *place);     // both ends are notified, perhaps late
void line_lose(struct place *place);    // the agent has died: the controller hears of it
void line_vanish(struct place *place);  // its machine is off: nobody tells the controller
void line_silence(struct place *place); // its packets are lost for a while, and sent again by the kernels

/* Effects of the agent's core. */
void line_send(void *arg, const struct record_type *type, const void *message);
void line_hang_up(void *arg);

void lines_free(struct box *box);
