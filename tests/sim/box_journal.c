/* SPDX-License-Identifier: MIT */
/* Each event goes through its JSON form, as on the way from mgpud to mgpu-sim. */
#include "box_journal.h"

#include "base/memory.h"
#include "box.h"
#include "controller/core/core.h"
#include "lab/sim/replay/replay.h"
#include "wire/json_journal.h"
#include "wire/json_text.h"

static int replay_one(struct replay *replay, const struct job_event *event, uint64_t command_hash,
    uint64_t *digest, struct error *err)
{
    _cleanup_json_ json_t *written = json_journal_write(event, command_hash);
    _cleanup_free_ char *text = json_text_format(written);
    *digest = 31 * *digest + store_key_hash(0, text);
    _cleanup_json_ json_t *object = json_loads(text, 0, NULL);
    _cleanup_(job_event_clear) struct job_event read;
    uint64_t read_stem;
    int r = json_journal_read(object, &read, &read_stem, err);
    if (r == 0)
        r = replay_event(replay, &read, read_stem, err);
    return r;
}

char *box_replay(const struct change *events, size_t count, struct job *const *jobs, struct tally *tally)
{
    _cleanup_(replay_freep) struct replay *replay = replay_new();
    struct error err = { 0 };
    uint64_t digest = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct job_event *event = &events[i].event;
        r = replay_one(replay, event, event->job != 0 ? core_command_hash(jobs[box_index(event->job)]) : 0,
            &digest, &err);
    }
    if (r == 0)
        r = replay_end(replay, &err);
    tally->counts[TALLY_DECISIONS] += replay_counts(replay).decisions;
    tally->digest += digest;
    return r < 0 ? xasprintf("%s (%s)", err.message, err.hint) : NULL;
}
