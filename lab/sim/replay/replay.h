/* SPDX-License-Identifier: MIT */
/*
 * Replays the journal of a live system through another scheduler and compares their decisions. The rules are
 * in docs/journal.md; no code of the controller is used, so the rules themselves are tested.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/event.h"

struct replay;

struct replay_counts {
    size_t events, decisions;
    size_t starts; // starts of mgpud
};

struct replay *replay_new(void);
void replay_freep(struct replay **replay);

/*
 * The next event, in order of `seq`; takes ownership of its contents, so `event` is then empty. -EBADMSG with
 * the first decision that differs, -EPROTO for an impossible event.
 */
int replay_event(struct replay *replay, struct job_event *event, uint64_t command_hash, struct error *err);

/* End of the journal. */
int replay_end(struct replay *replay, struct error *err);

/* All of a file that `mgpu journal export` wrote, with its end. -EINVAL if it is none; else as above. */
int replay_file(struct replay *replay, const char *path, struct error *err);

struct replay_counts replay_counts(const struct replay *replay);
