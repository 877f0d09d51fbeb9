/* SPDX-License-Identifier: MIT */
/*
 * User names of uids at the time of a submit. A uid may be assigned to another user later, who must neither
 * control the jobs nor read their output. A row is added when a uid submits under another name than before;
 * jobs from before the first row have no known owner name.
 */
#include "controller/core/owners.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/state.h"

struct owner {
    uint32_t uid;
    uint64_t first_job; // up to the next row of this number
    char *name;
};

/* The first position behind those of this job. */
static size_t place_after(const struct core *core, uint32_t uid, uint64_t job)
{
    size_t low = 0, high = core->n_owners;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct owner *owner = &core->owners[middle];
        if (owner->uid < uid || (owner->uid == uid && owner->first_job <= job))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct owner *find(const struct core *core, uint32_t uid, uint64_t job)
{
    size_t place = place_after(core, uid, job);
    return place > 0 && core->owners[place - 1].uid == uid ? &core->owners[place - 1] : NULL;
}

static void add(struct core *core, uint32_t uid, uint64_t first_job, char *name)
{
    size_t place = place_after(core, uid, first_job);
    core->owners = xreallocarray(core->owners, core->n_owners + 1, sizeof(*core->owners));
    memmove(core->owners + place + 1, core->owners + place, (core->n_owners - place) * sizeof(*core->owners));
    core->owners[place] = (struct owner){ .uid = uid, .first_job = first_job, .name = name };
    core->n_owners++;
}

static void keep(struct core *core, uint32_t uid)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char key[16];
    (void)snprintf(key, sizeof(key), "%" PRIu32, uid);
    for (size_t i = place_after(core, uid, 0); i < core->n_owners && core->owners[i].uid == uid; i++)
        buffer_printf(&text, "%" PRIu64 " %s\n", core->owners[i].first_job, core->owners[i].name);
    store_batch_put(core_batch(core)->changes, CORE_OWNER, key, &text);
}

void core_note_owner(struct core *core, uint32_t uid, uint64_t job)
{
    const struct owner *last = find(core, uid, UINT64_MAX);
    _cleanup_free_ char *name = core_user_name(core, uid);
    if (name == NULL || strchr(name, '\n') != NULL || (last != NULL && strcmp(last->name, name) == 0))
        return;
    add(core, uid, job, xstrdup(name));
    keep(core, uid);
}

void core_load_owners(struct core *core, const char *key, const uint8_t *bytes, size_t length)
{
    uint32_t uid = (uint32_t)strtoul(key, NULL, 10);
    _cleanup_free_ char *text = xstrndup((const char *)bytes, length);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *name = NULL;
        uint64_t first_job = strtoull(line, &name, 10);
        if (name != line && name[0] == ' ' && name[1] != '\0')
            add(core, uid, first_job, xstrdup(name + 1));
    }
}

void core_clear_owners(struct core *core)
{
    for (size_t i = 0; i < core->n_owners; i++)
        free(core->owners[i].name);
    free(core->owners);
}

const char *core_owner_name(const struct core *core, const struct job *job)
{
    const struct owner *owner = find(core, job->uid, job_submitted_as(job));
    return owner != NULL ? owner->name : NULL;
}

uint64_t core_first_own(struct core *core, uint32_t uid)
{
    const struct owner *last = find(core, uid, UINT64_MAX);
    _cleanup_free_ char *name = last != NULL ? core_user_name(core, uid) : NULL;
    if (name == NULL)
        return 0;
    if (strcmp(name, last->name) != 0)
        return UINT64_MAX;
    bool was_another = last > core->owners && last[-1].uid == uid;
    return was_another ? last->first_job : 0;
}

uint32_t core_account(const struct core *core, const struct identity *who)
{
    const struct core_effects *effects = &core->effects;
    if (effects->group_of == NULL)
        return 0;
    uint32_t group = effects->group_of(effects->arg, who->uid, who->gid);
    return group != who->gid ? group + 1 : 0;
}

char *core_user_name(struct core *core, uint32_t uid)
{
    return core->effects.user_name != NULL ? xstrdup(core->effects.user_name(core->effects.arg, uid)) : NULL;
}
