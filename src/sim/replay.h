/* SPDX-License-Identifier: MIT */
/*
 * What a live box did, event by event, told to another scheduler, whose decisions are compared with the ones
 * that were taken. docs/journal.md is the rule; no code of the controller takes part, so that the rule itself
 * is tested.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/event.h"

struct replay;

struct replay_counts {
    size_t events, decisions;
    size_t starts; // of mgpud
};

struct replay *replay_new(void);
void replay_freep(struct replay **replay);

/*
 * The next event, in order of `seq`; its text is taken over, `event` is empty then. -EBADMSG with the first
 * decision that differs, -EPROTO with an event that cannot be.
 */
int replay_event(struct replay *replay, struct job_event *event, uint64_t stem, struct error *err);

/* There are no more. */
int replay_end(struct replay *replay, struct error *err);

struct replay_counts replay_counts(const struct replay *replay);
