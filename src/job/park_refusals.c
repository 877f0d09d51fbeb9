/* SPDX-License-Identifier: MIT */
#include "job/park_refusals.h"

#include <stdlib.h>

#include "base/memory.h"
#include "job/event.h"

#define REFUSALS_MAX 4096U
#define MINUTE_MS    60000LL

/* The first pause, the second, and so on; the last one repeats. */
static const int64_t pauses_ms[] = { 10 * MINUTE_MS, 60 * MINUTE_MS, 24 * 60 * MINUTE_MS,
    7 * 24 * 60 * MINUTE_MS };
#define PAUSES (sizeof(pauses_ms) / sizeof(pauses_ms[0]))

static const struct record_field refusal_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct park_refusal, command_hash, 0),
    RECORD_FIELD(2, RECORD_STRING, struct park_refusal, text, EVENT_TEXT_MAX),
    RECORD_FIELD(3, RECORD_U32, struct park_refusal, count, 0),
    RECORD_FIELD(4, RECORD_I64, struct park_refusal, at_ms, 0),
    RECORD_FIELD(5, RECORD_BOOL, struct park_refusal, is_lost, 0),
};

const struct record_type park_refusal_record =
    RECORD_TYPE(496, "refusal to be parked", struct park_refusal, refusal_fields);

struct park_refusal *park_refusals_find(const struct park_refusals *refusals, uint64_t command_hash)
{
    for (size_t i = 0; i < refusals->count; i++)
        if (refusals->items[i].command_hash == command_hash)
            return &refusals->items[i];
    return NULL;
}

static uint64_t find_earliest(const struct park_refusals *refusals)
{
    const struct park_refusal *earliest = &refusals->items[0];
    for (size_t i = 1; i < refusals->count; i++) {
        const struct park_refusal *item = &refusals->items[i];
        bool is_earlier = item->at_ms != earliest->at_ms ? item->at_ms < earliest->at_ms
                                                         : item->command_hash < earliest->command_hash;
        earliest = is_earlier ? item : earliest;
    }
    return earliest->command_hash;
}

uint64_t park_refusals_put(struct park_refusals *refusals, const struct park_refusal *refusal)
{
    struct park_refusal copy;
    record_copy(&park_refusal_record, &copy, refusal);
    (void)park_refusals_drop(refusals, refusal->command_hash);
    uint64_t gone = refusals->count == REFUSALS_MAX ? find_earliest(refusals) : 0;
    if (gone != 0)
        (void)park_refusals_drop(refusals, gone);
    refusals->items = xreallocarray(refusals->items, refusals->count + 1, sizeof(*refusals->items));
    refusals->items[refusals->count++] = copy;
    return gone;
}

struct park_refusal park_refusals_next(const struct park_refusals *refusals, uint64_t command_hash,
    const char *text, bool is_lost, int64_t wall_ms)
{
    const struct park_refusal *before = park_refusals_find(refusals, command_hash);
    struct park_refusal next = {
        .command_hash = command_hash, .count = 1, .at_ms = wall_ms, .is_lost = is_lost
    };
    next.text = (char *)(uintptr_t)text;
    if (before == NULL)
        return next;
    bool is_within = wall_ms < park_refusal_until_ms(before);
    next.count = before->count + !is_within;
    next.at_ms = is_within ? before->at_ms : wall_ms;
    next.is_lost |= before->is_lost;
    return next;
}

bool park_refusals_drop(struct park_refusals *refusals, uint64_t command_hash)
{
    struct park_refusal *refusal = park_refusals_find(refusals, command_hash);
    if (refusal == NULL)
        return false;
    record_clear(&park_refusal_record, refusal);
    *refusal = refusals->items[--refusals->count];
    return true;
}

void park_refusals_clear(struct park_refusals *refusals)
{
    for (size_t i = 0; i < refusals->count; i++)
        record_clear(&park_refusal_record, &refusals->items[i]);
    free(refusals->items);
    *refusals = (struct park_refusals){ 0 };
}

int64_t park_refusal_until_ms(const struct park_refusal *refusal)
{
    size_t pause = refusal->count > 0 && refusal->count < PAUSES ? refusal->count - 1 : PAUSES - 1;
    if (refusal->is_lost)
        return INT64_MAX;
    return refusal->count == 0 ? 0 : refusal->at_ms + pauses_ms[pause];
}

bool park_refusals_bar(const struct park_refusals *refusals, uint64_t command_hash, int64_t wall_ms)
{
    const struct park_refusal *refusal =
        refusals->count > 0 ? park_refusals_find(refusals, command_hash) : NULL;
    return refusal != NULL && wall_ms < park_refusal_until_ms(refusal);
}
