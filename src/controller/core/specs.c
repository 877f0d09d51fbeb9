/* SPDX-License-Identifier: MIT */
/* The encoded specs of jobs that will start soon are cached; all others are fetched from the store. */
#include "controller/core/specs.h"

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define RESIDENT_SPECS_MAX (16U << 20) // bytes of specs kept in memory for jobs that will start soon

static size_t kept_size(const struct spec_bytes *spec)
{
    return sizeof(*spec) + spec->length;
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

void core_keep_spec(struct core *core, struct core_entry *entry, struct spec_bytes *spec)
{
    core_drop_spec(core, entry);
    bool has_room = core->resident_spec_bytes + kept_size(spec) <= RESIDENT_SPECS_MAX;
    if (entry->job->state == JOB_DONE || (!has_room && !is_starting(entry)))
        return;
    entry->spec = spec_bytes_hold(spec);
    core->resident_spec_bytes += kept_size(spec);
}

void core_drop_spec(struct core *core, struct core_entry *entry)
{
    if (entry->spec == NULL)
        return;
    core->resident_spec_bytes -= kept_size(entry->spec);
    spec_bytes_drop(take_ptr(entry->spec));
}

bool core_has_room_for_specs(const struct core *core)
{
    return core->resident_spec_bytes <= RESIDENT_SPECS_MAX;
}

void core_on_spec(struct core *core, uint64_t job, struct spec_bytes *spec)
{
    _cleanup_(spec_bytes_dropp) struct spec_bytes *bytes = spec != NULL ? spec : spec_bytes_new(NULL);
    struct core_entry *entry = core_find(core, job);
    if (entry == NULL)
        return;
    entry->is_fetching = false;
    core_keep_spec(core, entry, bytes);
    core_act(core, entry);
    for (struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        core_act(core, member);
}
