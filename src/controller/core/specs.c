/* SPDX-License-Identifier: MIT */
/* Specs of jobs that will start soon are kept, encoded; all others are fetched from the store. */
#include "controller/core/specs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define RESIDENT_SPECS_MAX (16U << 20) // bytes of specs kept in memory for jobs that will start soon

static size_t kept_size(const struct kept_spec *spec)
{
    return sizeof(*spec) + spec->length;
}

static struct kept_spec *encode(const struct job_spec *spec)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_spec_record, spec, &bytes);
    struct kept_spec *kept = xcalloc(1, sizeof(*kept) + bytes.length);
    kept->length = bytes.length;
    memcpy(kept->bytes, bytes.bytes, bytes.length);
    return kept;
}

bool core_decode_spec(const struct kept_spec *kept, struct job_spec *ret)
{
    *ret = (struct job_spec){ 0 };
    return kept->length > 0 && record_decode(&job_spec_record, kept->bytes, kept->length, ret, NULL) == 0;
}

struct core_entry *core_spec_owner(struct core_entry *entry)
{
    struct core_entry *array = core_extra(entry)->array;
    return array != NULL ? array : entry;
}

static bool is_starting(const struct core_entry *entry)
{
    for (const struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        if (member->job->state == JOB_STARTING)
            return true;
    return entry->job->state == JOB_STARTING;
}

/* Takes it over. */
static void keep(struct core *core, struct core_entry *entry, struct kept_spec *kept)
{
    core_drop_spec(core, entry);
    bool has_room = core->resident_spec_bytes + kept_size(kept) <= RESIDENT_SPECS_MAX;
    if (entry->job->state == JOB_DONE || (!has_room && !is_starting(entry))) {
        free(kept);
        return;
    }
    entry->spec = kept;
    core->resident_spec_bytes += kept_size(kept);
}

void core_keep_spec(struct core *core, struct core_entry *entry, struct job_spec *spec)
{
    keep(core, entry, spec != NULL ? encode(spec) : xcalloc(1, sizeof(struct kept_spec)));
    job_spec_free(spec);
}

void core_drop_spec(struct core *core, struct core_entry *entry)
{
    if (entry->spec == NULL)
        return;
    core->resident_spec_bytes -= kept_size(entry->spec);
    free(take_ptr(entry->spec));
}

bool core_has_room_for_specs(const struct core *core)
{
    return core->resident_spec_bytes <= RESIDENT_SPECS_MAX;
}

void core_on_spec(struct core *core, uint64_t job, struct job_spec *spec)
{
    struct core_entry *entry = core_find(core, job);
    if (entry == NULL) {
        job_spec_free(spec);
        return;
    }
    entry->is_fetching = false;
    core_keep_spec(core, entry, spec);
    core_act(core, entry);
    for (struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        core_act(core, member);
}
