/* SPDX-License-Identifier: MIT */
/*
 * Position and index of a GPU are the same number. Positions in a report are those of the process that wrote
 * it, so references between positions (NVLinks, switches) are translated. The file is written when a GPU is
 * new, lost or found again, which is rare.
 */
#include "agent/gpu/roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"

#define ROSTER_FILE "gpus"
#define UUID_MAX    95U   // bytes
#define KEYS_MAX    8192U // bytes
#define LINKS_MAX   64U   // number of positions that fit into `links`
#define RELEASED    "released by an operator"

/* Information about a GPU besides its state. */
struct gpu_note {
    bool is_hung;
    bool is_released;  // requested; the GPU's state shows when no process has it open any more
    uint32_t xid_base; // errors counted by earlier processes
};

struct kept_gpu {
    char *uuid, *model, *pci;
    uint64_t memory_bytes;
    bool is_lost; // better queried after the others
    bool is_released;
    char *parent;
};

struct kept_roster {
    char *boot_id, *backend;
    struct record_list gpus; // struct kept_gpu, by index
    struct strings keys;
};

struct gpu_roster {
    int dirfd;
    char boot_id[BOOT_ID_SIZE];
    char *backend;
    struct record_list gpus; // struct gpu_state
    struct gpu_note *notes;
    struct strings keys; // where helpers hung before the GPU was known
    size_t dropped;      // of the last report: logs each change once
    bool is_source_new, is_beside;
};

static const struct record_field kept_gpu_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct kept_gpu, uuid, 96),
    RECORD_FIELD(2, RECORD_STRING, struct kept_gpu, model, 96),
    RECORD_FIELD(3, RECORD_STRING, struct kept_gpu, pci, 32),
    RECORD_FIELD(4, RECORD_SIZE, struct kept_gpu, memory_bytes, 0),
    RECORD_FIELD(5, RECORD_BOOL, struct kept_gpu, is_lost, 0),
    RECORD_FIELD(6, RECORD_BOOL, struct kept_gpu, is_released, 0),
    RECORD_FIELD(440, RECORD_STRING, struct kept_gpu, parent, 96),
};
static const struct record_type kept_gpu_record =
    RECORD_TYPE(63, "kept GPU", struct kept_gpu, kept_gpu_fields);

static const struct record_field kept_roster_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct kept_roster, boot_id, 64),
    RECORD_FIELD(2, RECORD_STRING, struct kept_roster, backend, 16),
    RECORD_SUBLIST(3, struct kept_roster, gpus, NODE_GPUS_MAX, &kept_gpu_record),
    RECORD_FIELD(4, RECORD_STRINGS, struct kept_roster, keys, KEYS_MAX),
};
const struct record_type gpu_roster_record =
    RECORD_TYPE(64, "GPU roster", struct kept_roster, kept_roster_fields);

static struct gpu_state *state_at(const struct gpu_roster *roster, size_t i)
{
    return (struct gpu_state *)roster->gpus.items + i;
}

static struct gpu_state *find(const struct gpu_roster *roster, const char *uuid, size_t *ret_i)
{
    for (size_t i = 0; i < roster->gpus.count; i++) {
        *ret_i = i;
        if (strcmp(state_at(roster, i)->uuid, uuid) == 0)
            return state_at(roster, i);
    }
    return NULL;
}

static void set_trouble(struct gpu_state *gpu, const char *why)
{
    char *text = xstrdup(why);
    free(gpu->trouble);
    gpu->trouble = text;
}

static void lose(struct gpu_state *gpu, const char *why)
{
    gpu->is_lost = 1;
    gpu->is_released = 0;
    gpu->valid = 0;
    gpu_processes_cut(&gpu->processes, 0);
    set_trouble(gpu, why);
}

static struct gpu_state *add(struct gpu_roster *roster, const char *uuid, size_t *ret_i)
{
    size_t i = roster->gpus.count++;
    roster->gpus.items = xreallocarray(roster->gpus.items, i + 1, sizeof(struct gpu_state));
    roster->notes = xreallocarray(roster->notes, i + 1, sizeof(*roster->notes));
    roster->notes[i] = (struct gpu_note){ 0 };
    *state_at(roster, i) = (struct gpu_state){
        .index = (uint32_t)i,
        .uuid = xstrdup(uuid),
        .numa = -1,
        .pcie_switch = -1,
        .minor = -1,
        .render_minor = -1,
    };
    *ret_i = i;
    return state_at(roster, i);
}

static void forget_all(struct gpu_roster *roster)
{
    for (size_t i = 0; i < roster->gpus.count; i++)
        record_clear(&gpu_state_record, state_at(roster, i));
    free(take_ptr(roster->gpus.items));
    free(take_ptr(roster->notes));
    roster->gpus.count = 0;
}

/* --- what outlives an agent --- */

static bool is_kept(const struct gpu_roster *roster)
{
    return roster->dirfd >= 0 && roster->backend != NULL && strcmp(roster->backend, "sim") != 0;
}

static void save(struct gpu_roster *roster)
{
    if (!is_kept(roster))
        return;
    struct kept_gpu *gpus = xcalloc(roster->gpus.count + 1, sizeof(*gpus));
    for (size_t i = 0; i < roster->gpus.count; i++) {
        const struct gpu_state *gpu = state_at(roster, i);
        const struct gpu_note *note = &roster->notes[i];
        gpus[i] = (struct kept_gpu){ gpu->uuid, gpu->model, gpu->pci, gpu->memory_bytes,
            gpu->is_lost != 0 && gpu->parent == NULL && !note->is_released, note->is_released, gpu->parent };
    }
    struct kept_roster kept = { roster->boot_id, roster->backend, { gpus, roster->gpus.count },
        roster->keys };
    int r = file_write_record(roster->dirfd, ROSTER_FILE, &gpu_roster_record, &kept, false);
    if (r < 0)
        log_warning("cannot store the numbers of the GPUs: %s", strerror(-r));
    free(gpus);
}

static void restore(struct gpu_roster *roster, const struct kept_roster *kept)
{
    const struct kept_gpu *gpus = kept->gpus.items;
    roster->backend = xstrdup(kept->backend);
    strings_copy(&roster->keys, &kept->keys);
    for (size_t i = 0; i < kept->gpus.count; i++) {
        size_t at;
        if (gpus[i].uuid == NULL)
            continue;
        struct gpu_state *gpu = add(roster, gpus[i].uuid, &at);
        gpu->model = xstrdup(gpus[i].model);
        gpu->pci = xstrdup(gpus[i].pci);
        gpu->memory_bytes = gpus[i].memory_bytes;
        gpu->parent = xstrdup(gpus[i].parent);
        roster->notes[at].is_hung = gpus[i].is_lost;
        roster->notes[at].is_released = gpus[i].is_released;
        lose(gpu, gpus[i].is_released ? RELEASED
                  : gpus[i].is_lost   ? "it was lost before the agent started"
                                      : "it has not been seen since the agent started");
    }
}

struct gpu_roster *gpu_roster_new(int dirfd, const char *boot_id)
{
    struct gpu_roster *roster = xcalloc(1, sizeof(*roster));
    struct kept_roster kept = { 0 };
    roster->dirfd = dirfd;
    (void)strncpy(roster->boot_id, boot_id, BOOT_ID_SIZE - 1);
    if (dirfd >= 0 && file_read_record(dirfd, ROSTER_FILE, &gpu_roster_record, &kept, NULL) == 0) {
        if (text_equal(kept.boot_id, roster->boot_id) && kept.backend != NULL)
            restore(roster, &kept);
        record_clear(&gpu_roster_record, &kept);
    }
    return roster;
}

void gpu_roster_free(struct gpu_roster *roster)
{
    if (roster == NULL)
        return;
    forget_all(roster);
    strings_clear(&roster->keys);
    free(roster->backend);
    free(roster);
}

/* --- reports --- */

/* True for an identifier that can be passed to jobs and the driver's tools: printable, without spaces. */
static bool is_uuid(const char *uuid)
{
    size_t length = uuid != NULL ? strlen(uuid) : 0;
    for (size_t i = 0; i < length; i++)
        if (uuid[i] <= ' ' || uuid[i] > '~' || uuid[i] == ',')
            return false;
    return length > 0 && length <= UUID_MAX;
}

/* Takes all values from the driver except those currently missing. */
static void update(struct gpu_roster *roster, size_t i, struct gpu_state *from)
{
    struct gpu_state *to = state_at(roster, i), old = *to;
    struct gpu_note *note = &roster->notes[i];
    *to = *from;
    *from = old; // cleared by the report's owner
    to->index = old.index;
    to->pcie_switch = old.pcie_switch;
    to->links = 0;
    if (to->memory_bytes == 0)
        to->memory_bytes = old.memory_bytes;
    if (to->pci == NULL)
        to->pci = xstrdup(old.pci);
    if (to->numa < 0)
        to->numa = old.numa;
    if (roster->is_source_new) {
        uint32_t again = roster->is_beside ? to->xid_count : 0;
        note->xid_base = old.xid_count > again ? old.xid_count - again : 0;
    }
    to->xid_count += note->xid_base;
    if (to->xid == 0) {
        to->xid = old.xid;
        to->xid_wall_ms = old.xid_wall_ms;
    }
    /* A new helper starts with none. */
    if (to->xids.count == 0) {
        struct record_list none = to->xids;
        to->xids = from->xids;
        from->xids = none;
    }
    if (to->is_lost)
        lose(to, to->trouble != NULL ? to->trouble : "the driver cannot reach it");
}

/* Fills `places`: the roster's position of each GPU of the report, or -1 if it is dropped. */
static bool place_all(struct gpu_roster *roster, struct record_list *gpus, int *places)
{
    struct gpu_state *states = gpus->items;
    size_t dropped = 0, known = roster->gpus.count, at;
    bool *is_taken = xcalloc(known + gpus->count + 1, sizeof(*is_taken));
    for (size_t i = 0; i < gpus->count; i++) {
        places[i] = -1;
        const struct gpu_state *gpu = is_uuid(states[i].uuid) ? find(roster, states[i].uuid, &at) : NULL;
        if (gpu == NULL && is_uuid(states[i].uuid) && roster->gpus.count < NODE_GPUS_MAX)
            gpu = add(roster, states[i].uuid, &at);
        if (gpu == NULL || is_taken[at]) {
            dropped++;
            continue;
        }
        if (roster->notes[at].is_released)
            continue;
        is_taken[at] = true;
        places[i] = (int)at;
    }
    free(is_taken);
    if (dropped != roster->dropped && dropped > 0)
        log_warning("%zu GPU%s ignored: missing or duplicate UUID", dropped, dropped == 1 ? " is" : "s are");
    roster->dropped = dropped;
    return roster->gpus.count > known;
}

/* A group in the report keeps the number of one of its members; a new group gets a free number. */
static int32_t name_switch(const struct gpu_roster *roster, const struct gpu_state *states, size_t count,
    const int *places, size_t of)
{
    for (size_t i = 0; i < count; i++)
        if (places[i] >= 0 && states[i].pcie_switch == states[of].pcie_switch &&
            state_at(roster, (size_t)places[i])->pcie_switch >= 0)
            return state_at(roster, (size_t)places[i])->pcie_switch;
    for (int32_t number = states[of].pcie_switch;; number++) {
        bool is_free = true;
        for (size_t k = 0; k < roster->gpus.count; k++)
            is_free = is_free && state_at(roster, k)->pcie_switch != number;
        if (is_free)
            return number;
    }
}

static void name_switches(
    struct gpu_roster *roster, const struct gpu_state *states, size_t count, const int *places)
{
    for (size_t i = 0; i < count; i++)
        if (places[i] >= 0 && states[i].pcie_switch >= 0)
            state_at(roster, (size_t)places[i])->pcie_switch = name_switch(roster, states, count, places, i);
}

static uint64_t translate_links(uint64_t links, const int *places, size_t count)
{
    uint64_t translated = 0;
    for (size_t k = 0; k < count && k < LINKS_MAX; k++)
        if ((links >> k & 1) != 0 && places[k] >= 0 && places[k] < (int)LINKS_MAX)
            translated |= UINT64_C(1) << places[k];
    return translated;
}

/* True if the report has its GPU and all of that GPU's instances except this one: the layout was changed. */
static bool has_gone(const struct gpu_roster *roster, size_t i, const struct gpu_state *states, size_t count)
{
    const char *parent = state_at(roster, i)->parent;
    for (size_t k = 0; parent != NULL && k < count; k++)
        if (text_equal(states[k].uuid, parent))
            return (states[k].valid & GPU_LAYOUT) != 0;
    return false;
}

/* Marks GPUs that are missing from the report as lost. */
static void lose_missing(
    struct gpu_roster *roster, const struct gpu_state *states, const int *places, size_t count)
{
    _cleanup_free_ bool *is_seen = xcalloc(roster->gpus.count + 1, sizeof(*is_seen));
    for (size_t i = 0; i < count; i++)
        if (places[i] >= 0)
            is_seen[places[i]] = true;
    for (size_t i = 0; i < roster->gpus.count; i++) {
        struct gpu_note *note = &roster->notes[i];
        bool is_gone = !is_seen[i] && has_gone(roster, i, states, count);
        note->is_hung = note->is_hung && !is_seen[i] && !is_gone;
        if (is_seen[i] || note->is_hung || note->is_released)
            continue;
        state_at(roster, i)->is_gone |= is_gone;
        lose(state_at(roster, i), state_at(roster, i)->is_gone != 0
                                      ? "this MIG instance does not exist any more"
                                      : "the driver no longer lists it");
    }
}

static size_t count_lost(const struct gpu_roster *roster)
{
    size_t lost = 0;
    for (size_t i = 0; i < roster->gpus.count; i++)
        lost += state_at(roster, i)->is_lost != 0;
    return lost;
}

void gpu_roster_take(struct gpu_roster *roster, struct gpu_report *report)
{
    struct gpu_state *states = report->gpus.items;
    size_t count = report->gpus.count;
    int *places = xcalloc(count + 1, sizeof(*places));
    if (!text_equal(roster->backend, report->backend)) {
        forget_all(roster);
        strings_clear(&roster->keys);
        free(roster->backend);
        roster->backend = xstrdup(report->backend);
    }
    size_t lost = count_lost(roster);
    bool is_changed = place_all(roster, &report->gpus, places);
    lose_missing(roster, states, places, count);
    name_switches(roster, states, count, places);
    for (size_t i = 0; i < count; i++) {
        uint64_t links = states[i].links;
        if (places[i] < 0)
            continue;
        update(roster, (size_t)places[i], &states[i]);
        state_at(roster, (size_t)places[i])->links = translate_links(links, places, count);
    }
    roster->is_source_new = roster->is_beside = false;
    free(places);
    if (is_changed || lost != count_lost(roster))
        save(roster);
}

void gpu_roster_change_source(struct gpu_roster *roster, bool is_beside)
{
    roster->is_source_new = true;
    roster->is_beside = is_beside;
}

void gpu_roster_forget_key(struct gpu_roster *roster, const char *key)
{
    struct strings kept = { 0 };
    for (size_t i = 0; i < roster->keys.count; i++)
        if (strcmp(roster->keys.items[i], key) != 0)
            strings_add(&kept, roster->keys.items[i]);
    bool is_changed = kept.count != roster->keys.count;
    strings_clear(&roster->keys);
    roster->keys = kept;
    if (is_changed)
        save(roster);
}

bool gpu_roster_hang(struct gpu_roster *roster, const char *key, const char *why)
{
    bool is_known = false;
    for (size_t i = 0; i < roster->gpus.count; i++) {
        struct gpu_state *gpu = state_at(roster, i);
        if (!text_equal(gpu->pci, key))
            continue;
        _cleanup_free_ char *text = xstrdup(why != NULL ? why : gpu->trouble);
        lose(gpu, text);
        roster->notes[i].is_hung = true;
        is_known = true;
    }
    if (is_known) {
        save(roster);
        return true;
    }
    gpu_roster_forget_key(roster, key);
    strings_add(&roster->keys, key);
    save(roster);
    return false;
}

const struct strings *gpu_roster_keys(const struct gpu_roster *roster)
{
    return &roster->keys;
}

void gpu_roster_lose_all(struct gpu_roster *roster, const char *why)
{
    for (size_t i = 0; i < roster->gpus.count; i++)
        if (!roster->notes[i].is_hung && !roster->notes[i].is_released)
            lose(state_at(roster, i), why);
}

/* --- release --- */

bool gpu_roster_release(struct gpu_roster *roster, const struct strings *uuids)
{
    bool is_changed = false;
    for (size_t i = 0; i < roster->gpus.count; i++) {
        struct gpu_state *gpu = state_at(roster, i);
        struct gpu_note *note = &roster->notes[i];
        bool is_wanted = strings_have(uuids, gpu->uuid);
        if (note->is_released == is_wanted)
            continue;
        is_changed = true;
        note->is_released = is_wanted;
        note->is_hung = false;
        if (is_wanted)
            lose(gpu, RELEASED);
        else
            set_trouble(gpu, "it is being reopened");
    }
    if (is_changed)
        save(roster);
    return is_changed;
}

bool gpu_roster_is_released(const struct gpu_roster *roster, size_t i)
{
    return roster->notes[i].is_released;
}

size_t gpu_roster_count_released(const struct gpu_roster *roster)
{
    size_t count = 0;
    for (size_t i = 0; i < roster->gpus.count; i++)
        count += roster->notes[i].is_released;
    return count;
}

bool gpu_roster_is_all_released(const struct gpu_roster *roster)
{
    return roster->gpus.count > 0 && gpu_roster_count_released(roster) == roster->gpus.count;
}

bool gpu_roster_set_progress(const struct gpu_roster *roster, struct gpu_progress *page)
{
    bool is_fine = true;
    if (gpu_roster_count_released(roster) == 0)
        return true;
    for (size_t i = 0; is_fine && i < roster->gpus.count; i++)
        if (state_at(roster, i)->pci != NULL && state_at(roster, i)->parent == NULL)
            is_fine = gpu_progress_know(page, state_at(roster, i)->pci, roster->notes[i].is_released);
    return is_fine;
}

bool gpu_roster_fits(const struct gpu_roster *roster, const struct gpu_progress *page)
{
    for (size_t i = 0; i < roster->gpus.count; i++) {
        const char *key = state_at(roster, i)->pci;
        if (key != NULL && state_at(roster, i)->parent == NULL &&
            gpu_progress_may_open(page, key) == roster->notes[i].is_released)
            return false;
    }
    return true;
}

struct record_list *gpu_roster_gpus(struct gpu_roster *roster)
{
    return &roster->gpus;
}

bool gpu_roster_is_hung(const struct gpu_roster *roster, size_t i)
{
    return roster->notes[i].is_hung;
}

const char *gpu_roster_backend(const struct gpu_roster *roster)
{
    return roster->backend;
}
