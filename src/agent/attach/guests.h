/* SPDX-License-Identifier: MIT */
/* Answers OPEN_GUEST (`mgpu exec`): steps beside a job's own, each with a shepherd of its own. */
#pragma once

#include <event2/event.h>

#include "agent/launch/launcher.h"
#include "base/spool.h"
#include "wire/message.h"

#define GUESTS_MAX 256U // on this node at once; more are refused

struct guests;

/* `link_path` is the controller's socket, relative to the working directory. Both are borrowed. */
struct guests *guests_new(struct event_base *base, struct launcher *launcher, const char *link_path);
void guests_free(struct guests *guests);

void guests_open(struct guests *guests, const struct message_open_guest *request);

/* An entry of an earlier agent, found in the spool: watched while it lives, else removed. */
void guests_find(struct guests *guests, const struct spool_id *id);

/* Something may have changed about this one. */
void guests_look(struct guests *guests, const struct spool_id *id);
