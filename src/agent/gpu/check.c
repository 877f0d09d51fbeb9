/* SPDX-License-Identifier: MIT */
/*
 * A GPU that was not seen before is unchecked too, because an earlier agent may have died before its check.
 *
 * Remains of a job are detected in two ways: a process of an ended attempt, and memory that belongs to no
 * process. The memory used on an idle GPU is measured while no job has it; slightly more than that is
 * attributed to the driver.
 *
 * Power limit, clocks and compute mode are not compared: only root can set them, and jobs are not root.
 */
#include "agent/gpu/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/fault.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/event.h"

#define LEFT_MAX  (512ULL << 20) // bytes that may be used beyond those of the idle GPU
#define IDLE_MAX  (1ULL << 30)   // bytes that may be used on a GPU that was never seen idle
#define WORDS_MAX 40             // bytes of a command line
#define TIDY_MS   500            // time that a driver may need to release a job's resources

#define ERRORS_MAX_MS 1000 // limit after an end, in case a helper hangs

enum gpu_condition { CLEAN, UNCHECKED, UNCLEAN };

struct checked_gpu {
    char *uuid;
    enum gpu_condition condition;
    uint64_t awaited; // the check that decides about it, while it is unchecked
    uint64_t answers; // number of checks that it has answered
    int64_t left_ms;  // when its last job left it; 0: before this agent started
    bool is_idle_known, is_lost, reports_errors;
    uint64_t idle_bytes;
    int64_t xid_ms; // time of the latest error seen
    char *trouble;  // while it is unclean
    char *refusal;  // why it is out of service although it is clean; NULL: it is in service
};

enum holder_phase { WAITS, RUNS, ENDED };

struct holder {
    struct spool_id id;
    enum holder_phase phase;
    struct record_list grants;
    int64_t ended_ms; // boot clock
    uint64_t awaited; // the check for errors after its end; 0: not requested yet
    bool is_waiting;  // a caller was told to wait for a check
    bool is_unclear;  // it has failed, and the reason may still be reported
    char *refusal;    // why it may not start although its GPUs are clean; NULL: it may start
};

struct gpu_check {
    gpu_ask_fn *ask;
    void *arg;
    struct checked_gpu *gpus;
    size_t n_gpus;
    struct holder *holders;
    size_t n_holders;
    struct message_gpus last; // the GPUs of the last report, for their errors
};

struct gpu_check *gpu_check_new(gpu_ask_fn *ask, void *arg)
{
    struct gpu_check *check = xcalloc(1, sizeof(*check));
    check->ask = ask;
    check->arg = arg;
    return check;
}

static void clear_holder(struct holder *holder)
{
    gpu_grants_clear(&holder->grants);
    free(holder->refusal);
}

void gpu_check_free(struct gpu_check *check)
{
    if (check == NULL)
        return;
    for (size_t i = 0; i < check->n_gpus; i++) {
        free(check->gpus[i].uuid);
        free(check->gpus[i].trouble);
        free(check->gpus[i].refusal);
    }
    for (size_t i = 0; i < check->n_holders; i++)
        clear_holder(&check->holders[i]);
    record_clear(&message_gpus_record, &check->last);
    free(check->gpus);
    free(check->holders);
    free(check);
}

/* --- attempts and their GPUs --- */

static struct holder *find_holder(const struct gpu_check *check, const struct spool_id *id)
{
    for (size_t i = 0; i < check->n_holders; i++) {
        const struct spool_id *other = &check->holders[i].id;
        if (spool_id_equal(other, id))
            return &check->holders[i];
    }
    return NULL;
}

static bool has(const struct holder *holder, const char *uuid)
{
    const struct gpu_grant *grants = holder->grants.items;
    for (size_t i = 0; i < holder->grants.count; i++)
        if (grants[i].uuid != NULL && strcmp(grants[i].uuid, uuid) == 0)
            return true;
    return false;
}

static bool is_held(const struct gpu_check *check, const char *uuid)
{
    for (size_t i = 0; i < check->n_holders; i++)
        if (check->holders[i].phase == RUNS && has(&check->holders[i], uuid))
            return true;
    return false;
}

static struct checked_gpu *find_gpu(const struct gpu_check *check, const char *uuid)
{
    for (size_t i = 0; uuid != NULL && i < check->n_gpus; i++)
        if (strcmp(check->gpus[i].uuid, uuid) == 0)
            return &check->gpus[i];
    return NULL;
}

static struct checked_gpu *take_gpu(struct gpu_check *check, const char *uuid)
{
    struct checked_gpu *known = find_gpu(check, uuid);
    if (known != NULL)
        return known;
    check->gpus = xreallocarray(check->gpus, check->n_gpus + 1, sizeof(*check->gpus));
    struct checked_gpu *gpu = &check->gpus[check->n_gpus++];
    *gpu = (struct checked_gpu){ .uuid = xstrdup(uuid), .condition = UNCHECKED };
    return gpu;
}

void gpu_check_take(struct gpu_check *check, const struct spool_id *id, const struct record_list *grants)
{
    if (grants->count == 0 || find_holder(check, id) != NULL)
        return;
    check->holders = xreallocarray(check->holders, check->n_holders + 1, sizeof(*check->holders));
    struct holder *holder = &check->holders[check->n_holders++];
    *holder = (struct holder){ .id = *id };
    gpu_grants_copy(&holder->grants, grants);
}

void gpu_check_drop(struct gpu_check *check, const struct spool_id *id)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL)
        return;
    gpu_check_end(check, id, 0);
    clear_holder(holder);
    *holder = check->holders[--check->n_holders];
}

/* --- start and end --- */

/* A caller waits for a GPU that was not clean when last checked. */
static void ask_again(struct gpu_check *check, struct gpu_grant *grant)
{
    struct checked_gpu *gpu = find_gpu(check, grant->uuid);
    if (gpu->answers >= gpu->awaited)
        gpu->awaited = check->ask(check->arg, &(struct record_list){ grant, 1 });
}

static int check_gpus(struct gpu_check *check, struct holder *holder, struct error *err)
{
    struct gpu_grant *grants = holder->grants.items;
    for (size_t i = 0; i < holder->grants.count; i++) {
        const struct checked_gpu *gpu = find_gpu(check, grants[i].uuid);
        if (gpu == NULL)
            continue;
        if (gpu->condition == UNCLEAN)
            return error_set(err, -EBUSY, "GPU %u is not clean: %s", grants[i].index, gpu->trouble);
        if (gpu->condition == UNCHECKED && gpu->is_lost)
            return error_set(err, -EBUSY, "GPU %u does not respond", grants[i].index);
        if (gpu->condition == UNCHECKED) {
            ask_again(check, &grants[i]);
            holder->is_waiting = true;
            return error_set(err, -EINPROGRESS, "GPU %u is being checked", grants[i].index);
        }
    }
    return 0;
}

static bool overlaps(const struct holder *holder, const struct gpu_grant *grant)
{
    const struct gpu_grant *grants = holder->grants.items;
    for (size_t i = 0; i < holder->grants.count; i++)
        if (grants[i].uuid != NULL && grant->uuid != NULL && strcmp(grants[i].uuid, grant->uuid) == 0 &&
            (grants[i].slot == 0 || grant->slot == 0))
            return true;
    return false;
}

/* Another attempt that runs on one of its GPUs (and not on another share of it), or that has failed there
 * while it is not known yet whether the GPU has failed too; NULL: there is none. There is one for an element
 * that is committed behind it, or if mgpud was restored from a backup in which that attempt was parked and
 * has assigned its GPUs. */
static const struct holder *find_other(
    const struct gpu_check *check, const struct holder *holder, const struct gpu_grant **ret_grant)
{
    const struct gpu_grant *grants = holder->grants.items;
    for (size_t i = 0; i < check->n_holders; i++)
        for (size_t k = 0; k < holder->grants.count; k++) {
            const struct holder *other = &check->holders[i];
            bool is_there = other->phase == RUNS || other->is_unclear;
            if (other == holder || !is_there || !overlaps(other, &grants[k]))
                continue;
            *ret_grant = &grants[k];
            return other;
        }
    return NULL;
}

/* -EALREADY if it has to wait for another one. */
static int check_others(const struct gpu_check *check, const struct holder *holder, struct error *err)
{
    const struct gpu_grant *grant;
    const struct holder *other = find_other(check, holder, &grant);
    if (other == NULL)
        return 0;
    return error_set(err, -EALREADY, "job %" PRIu64 " still uses GPU %u", other->id.job, grant->index);
}

int gpu_check_start(struct gpu_check *check, const struct spool_id *id, struct error *err)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL)
        return 0;
    if (holder->refusal != NULL)
        return error_set(err, -EBUSY, "%s", holder->refusal);
    int r = check_others(check, holder, err);
    holder->is_waiting = holder->is_waiting || r < 0;
    if (r == 0)
        r = check_gpus(check, holder, err);
    if (r == 0)
        holder->phase = RUNS;
    return r;
}

int gpu_check_left(struct gpu_check *check, const struct spool_id *id, struct error *err)
{
    struct holder *holder = find_holder(check, id);
    return holder != NULL && holder->phase == ENDED ? check_gpus(check, holder, err) : 0;
}

int gpu_check_return(struct gpu_check *check, const struct spool_id *id, struct error *err)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL || holder->phase == RUNS)
        return 0;
    return check_others(check, holder, err) < 0 ? -EBUSY : gpu_check_start(check, id, err);
}

void gpu_check_keep(struct gpu_check *check, const struct spool_id *id)
{
    struct holder *holder = find_holder(check, id);
    if (holder != NULL)
        holder->phase = RUNS;
}

void gpu_check_leave(struct gpu_check *check, const struct spool_id *id)
{
    struct holder *holder = find_holder(check, id);
    if (holder != NULL && holder->phase == WAITS)
        holder->phase = ENDED;
}

bool gpu_check_is_away(const struct gpu_check *check, const struct spool_id *id)
{
    const struct holder *holder = find_holder(check, id);
    return holder != NULL && holder->phase == ENDED;
}

void gpu_check_move(struct gpu_check *check, const struct spool_id *id, const struct record_list *grants)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL || holder->phase == RUNS)
        return;
    gpu_grants_clear(&holder->grants);
    gpu_grants_copy(&holder->grants, grants);
}

void gpu_check_resume(struct gpu_check *check, const struct spool_id *id)
{
    struct holder *holder = find_holder(check, id);
    if (holder != NULL && holder->phase == WAITS)
        holder->phase = RUNS;
}

void gpu_check_end(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL || holder->phase != RUNS)
        return;
    uint64_t awaited = check->ask(check->arg, &holder->grants);
    holder->phase = ENDED;
    holder->ended_ms = boot_ms;
    const struct gpu_grant *grants = holder->grants.items;
    for (size_t i = 0; i < holder->grants.count; i++) {
        if (grants[i].uuid == NULL || is_held(check, grants[i].uuid))
            continue; // the last one to leave a shared GPU triggers its check
        struct checked_gpu *gpu = take_gpu(check, grants[i].uuid);
        gpu->condition = gpu->condition == UNCLEAN ? UNCLEAN : UNCHECKED;
        gpu->awaited = awaited;
        gpu->left_ms = boot_ms;
    }
}

static bool reports_errors(const struct gpu_check *check, const struct holder *holder)
{
    for (size_t i = 0; i < check->n_gpus; i++)
        if (check->gpus[i].reports_errors && has(holder, check->gpus[i].uuid))
            return true;
    return false;
}

/* True if each of its GPUs that can has answered the check for errors. */
static bool is_answered(const struct gpu_check *check, const struct holder *holder)
{
    for (size_t i = 0; i < check->n_gpus; i++)
        if (!check->gpus[i].is_lost && check->gpus[i].answers < holder->awaited &&
            has(holder, check->gpus[i].uuid))
            return false;
    return true;
}

bool gpu_check_awaits_errors(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms)
{
    struct holder *holder = find_holder(check, id);
    if (holder == NULL || holder->phase != ENDED || !reports_errors(check, holder))
        return false;
    int64_t since_ms = boot_ms - holder->ended_ms;
    holder->is_unclear = true;
    if (since_ms < GPU_CHECK_GRACE_MS)
        return true;
    if (holder->awaited == 0)
        holder->awaited = check->ask(check->arg, &holder->grants);
    holder->is_waiting = holder->is_unclear = !is_answered(check, holder) && since_ms < ERRORS_MAX_MS;
    return holder->is_waiting;
}

void gpu_check_note_fault(
    const struct gpu_check *check, const struct spool_id *id, int64_t from_ms, struct job_usage **usage)
{
    const struct holder *holder = find_holder(check, id);
    struct job_usage *noted = *usage != NULL ? *usage : xcalloc(1, sizeof(**usage));
    if (holder != NULL)
        gpu_fault_note(noted, &holder->grants, &check->last.gpus, from_ms);
    if (*usage != NULL || noted->xid != 0)
        *usage = noted;
    else
        job_usage_free(noted);
}

/* --- what a report shows --- */

/* Memory of the listed processes; false if unknown. */
static bool add_processes(const struct gpu_state *gpu, uint64_t *ret)
{
    const struct gpu_process *processes = gpu->processes.items;
    uint64_t sum = 0;
    for (size_t i = 0; i < gpu->processes.count; i++) {
        if (processes[i].is_memory_known == 0)
            return false;
        uint64_t room = gpu->memory_bytes > sum ? gpu->memory_bytes - sum : 0;
        sum += processes[i].memory_bytes < room ? processes[i].memory_bytes : room;
    }
    *ret = sum;
    return gpu->is_host_memory == 0 && (gpu->valid & GPU_MEMORY_USED) != 0 &&
           (gpu->valid & GPU_PROCESSES) != 0;
}

/* Memory that belongs to no process; false if unknown. */
static bool read_loose(const struct gpu_state *gpu, uint64_t *ret)
{
    uint64_t owned;
    if (!add_processes(gpu, &owned))
        return false;
    *ret = gpu->memory_used_bytes > owned ? gpu->memory_used_bytes - owned : 0;
    return true;
}

static const struct gpu_process *find_remnant(const struct gpu_check *check, const struct gpu_state *gpu)
{
    const struct gpu_process *processes = gpu->processes.items;
    for (size_t i = 0; i < gpu->processes.count; i++)
        for (size_t k = 0; k < check->n_holders; k++)
            if (check->holders[k].phase == ENDED && processes[i].job == check->holders[k].id.job &&
                processes[i].attempt == check->holders[k].id.attempt && processes[i].start != 0 &&
                has(&check->holders[k], gpu->uuid))
                return &processes[i];
    return NULL;
}

/* A sentence about what is wrong with the GPU, or NULL. The caller frees it. */
static char *judge(
    const struct gpu_check *check, const struct checked_gpu *gpu, const struct gpu_state *state)
{
    char size[32];
    uint64_t loose, idle = gpu->is_idle_known ? gpu->idle_bytes : IDLE_MAX;
    const struct gpu_process *remnant = find_remnant(check, state);
    if (remnant != NULL)
        return xasprintf("process %u (%.*s) of job %llu is still there", remnant->pid, WORDS_MAX,
            remnant->command != NULL ? remnant->command : "?", (unsigned long long)remnant->job);
    if (!read_loose(state, &loose) || loose <= idle + LEFT_MAX)
        return NULL;
    format_size(loose, size, sizeof(size));
    return xasprintf("%s still used by no process", size);
}

/* Keeps the minimum of memory seen while the GPU was unused. */
static void learn_idle(struct checked_gpu *gpu, const struct gpu_state *state)
{
    uint64_t loose;
    if (!read_loose(state, &loose))
        return;
    uint64_t most = gpu->is_idle_known ? gpu->idle_bytes : IDLE_MAX;
    gpu->idle_bytes = loose < most ? loose : most;
    gpu->is_idle_known = true;
}

static void set_trouble(struct checked_gpu *gpu, struct gpu_state *state, char *trouble)
{
    gpu->condition = trouble != NULL ? UNCLEAN : CLEAN;
    free(gpu->trouble);
    gpu->trouble = trouble;
    state->is_unclean = trouble != NULL;
    free(state->trouble);
    state->trouble = xstrdup(trouble);
}

/* Nothing may start on a GPU that has just failed before the controller has been informed. */
static bool note_errors(struct gpu_check *check, struct checked_gpu *gpu, const struct gpu_state *state)
{
    const struct gpu_xid *xids = state->xids.items;
    bool is_news = false;
    for (size_t i = xid_first_new(xids, state->xids.count, gpu->xid_ms); i < state->xids.count; i++) {
        gpu->xid_ms = xids[i].wall_ms;
        is_news = true;
        for (size_t k = 0; k < check->n_holders; k++) {
            struct holder *holder = &check->holders[k];
            if (holder->phase == WAITS && holder->refusal == NULL && has(holder, gpu->uuid) &&
                xid_class_of(xids[i].number) >= XID_CONTAINED)
                holder->refusal =
                    xasprintf("GPU %u: Xid %u: %s", state->index, xids[i].number, xid_words(xids[i].number));
        }
    }
    return is_news;
}

void gpu_check_refuse(struct gpu_check *check, const char *uuid, const char *why)
{
    struct checked_gpu *gpu = take_gpu(check, uuid);
    free(gpu->refusal);
    gpu->refusal = xstrdup(why);
}

static bool check_state(struct gpu_check *check, struct gpu_state *state, int64_t boot_ms)
{
    struct checked_gpu *gpu = take_gpu(check, state->uuid);
    enum gpu_condition before = gpu->condition;
    bool is_news = note_errors(check, gpu, state) || gpu->is_lost != (state->is_lost != 0);
    gpu->is_lost = state->is_lost != 0;
    gpu->answers = state->answers > gpu->answers ? state->answers : gpu->answers;
    gpu->reports_errors = gpu_vendor_of(state->vendor)->reports_errors;
    if (gpu->is_lost)
        return is_news;
    if (gpu->condition == UNCHECKED && gpu->answers < gpu->awaited)
        return is_news;
    bool is_in_use = is_held(check, gpu->uuid);
    bool is_refused = gpu->refusal != NULL && !is_in_use;
    char *trouble = is_refused                             ? xstrdup(gpu->refusal)
                    : gpu->condition == CLEAN || is_in_use ? NULL
                                                           : judge(check, gpu, state);
    if (trouble != NULL && !is_refused && gpu->condition == UNCHECKED && boot_ms - gpu->left_ms < TIDY_MS) {
        free(trouble);
        return is_news;
    }
    if (gpu->condition != CLEAN || is_refused)
        set_trouble(gpu, state, trouble);
    if (gpu->condition == CLEAN && !is_in_use)
        learn_idle(gpu, state);
    return is_news || (gpu->condition == UNCLEAN) != (before == UNCLEAN);
}

bool gpu_check_report(struct gpu_check *check, struct record_list *gpus, int64_t boot_ms)
{
    struct gpu_state *states = gpus->items;
    bool is_news = false;
    for (size_t i = 0; i < gpus->count; i++)
        if (states[i].uuid != NULL)
            is_news = check_state(check, &states[i], boot_ms) || is_news;
    const struct message_gpus seen = { .gpus = *gpus };
    record_clear(&message_gpus_record, &check->last);
    record_copy(&message_gpus_record, &check->last, &seen);
    return is_news;
}

/* True if it still cannot start, and is called again later. Each end of a job on this node is followed by a
 * report, and elements behind others wait for just one of these ends. */
static bool must_wait_on(const struct gpu_check *check, const struct holder *holder)
{
    const struct gpu_grant *grant;
    for (size_t i = 0; holder->phase == WAITS && i < check->n_gpus; i++)
        if (check->gpus[i].condition == UNCHECKED && !check->gpus[i].is_lost &&
            has(holder, check->gpus[i].uuid))
            return true;
    return holder->phase == WAITS && find_other(check, holder, &grant) != NULL;
}

static size_t list_waiting(
    const struct gpu_check *check, bool is_over, struct spool_id *waiting, size_t count)
{
    for (size_t i = 0; i < check->n_holders; i++)
        if (check->holders[i].is_waiting && (check->holders[i].phase == ENDED) == is_over)
            waiting[count++] = check->holders[i].id;
    return count;
}

/* Those that are over come first: the visit of one that has failed may end the wait of the one behind it. */
void gpu_check_each_waiting(
    struct gpu_check *check, void (*visit)(void *arg, const struct spool_id *id), void *arg)
{
    struct spool_id *waiting = xcalloc(check->n_holders + 1, sizeof(*waiting)); // a visit may change the list
    size_t count = list_waiting(check, true, waiting, 0);
    count = list_waiting(check, false, waiting, count);
    for (size_t i = 0; i < count; i++) {
        struct holder *holder = find_holder(check, &waiting[i]);
        if (holder == NULL || !holder->is_waiting || must_wait_on(check, holder))
            continue;
        holder->is_waiting = false;
        visit(arg, &waiting[i]);
    }
    free(waiting);
}
