/* SPDX-License-Identifier: MIT */
#include "agent/gpu/chores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/test_results.h"
#include "agent/gpu/tools.h"
#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/event.h"
#include "wire/message.h"

#define PROGRAM      "mgpu-gpu-test"
#define RETRY_S      30     // a GPU that could not be overwritten is tried again after this time
#define TEST_MS      120000 // for a test
#define IDLE_SAMPLES 3      // consecutive samples without a process, before a test

enum chore { CHORE_NONE, CHORE_SCRUB, CHORE_TEST };

struct chore_gpu {
    char *uuid;
    uint32_t index;
    struct gpu_chores *chores;
    enum chore chore;
    bool can_be_tested, is_cleared;
    bool is_user_known; // only `last_uid` has had it since it was cleared
    uid_t last_uid;
    char *failure;       // why it was not overwritten, until that has been reported to a waiting attempt
    struct event *retry; // ends the time out of service
    int64_t begin_ms;    // when the chore began, boot clock
    unsigned idle;       // samples
};

/* An attempt on a GPU, or one that waits for it. */
struct chore_user {
    struct spool_id id;
    uid_t uid;
    char *uuid;
    bool is_waiting;
};

struct gpu_chores {
    struct event_base *base;
    struct gpu_check *check;
    int64_t scrub_ms, test_every_ms; // 0: never
    gpu_chores_ready_fn *on_ready;
    void *arg;
    struct gpu_tools *tools;
    struct test_results *results;
    struct chore_gpu **gpus;
    size_t n_gpus;
    struct chore_user *users;
    size_t n_users;
};

struct gpu_chores *gpu_chores_new(struct event_base *base, const struct agent_options *options,
    struct gpu_check *check, int state_fd, gpu_chores_ready_fn *on_ready, void *arg)
{
    if (options->gpu_scrub_ms == 0 && options->gpu_test_every_ms == 0)
        return NULL;
    struct gpu_chores *chores = xcalloc(1, sizeof(*chores));
    const char *slash = strrchr(options->shepherd, '/');
    _cleanup_free_ char *program = xasprintf(
        "%.*s" PROGRAM, slash != NULL ? (int)(slash + 1 - options->shepherd) : 0, options->shepherd);
    *chores = (struct gpu_chores){ .base = base,
        .check = check,
        .scrub_ms = options->gpu_scrub_ms,
        .test_every_ms = options->gpu_test_every_ms,
        .on_ready = on_ready,
        .arg = arg,
        .tools = gpu_tools_new(base, program, options->cuda_library),
        .results = test_results_new(state_fd) };
    return chores;
}

void gpu_chores_free(struct gpu_chores *chores)
{
    if (chores == NULL)
        return;
    gpu_tools_free(chores->tools);
    test_results_free(chores->results);
    for (size_t i = 0; i < chores->n_gpus; i++) {
        event_free(chores->gpus[i]->retry);
        free(chores->gpus[i]->failure);
        free(chores->gpus[i]->uuid);
        free(chores->gpus[i]);
    }
    for (size_t i = 0; i < chores->n_users; i++)
        free(chores->users[i].uuid);
    free(chores->users);
    free(chores->gpus);
    free(chores);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct chore_gpu *gpu = arg;
    free(take_ptr(gpu->failure));
    gpu_check_refuse(gpu->chores->check, gpu->uuid, NULL);
}

static struct chore_gpu *find_gpu(const struct gpu_chores *chores, const char *uuid)
{
    for (size_t i = 0; uuid != NULL && i < chores->n_gpus; i++)
        if (strcmp(chores->gpus[i]->uuid, uuid) == 0)
            return chores->gpus[i];
    return NULL;
}

static struct chore_gpu *take_gpu(struct gpu_chores *chores, const char *uuid, uint32_t index)
{
    struct chore_gpu *gpu = find_gpu(chores, uuid);
    if (gpu != NULL)
        return gpu;
    gpu = xcalloc(1, sizeof(*gpu));
    *gpu = (struct chore_gpu){ .uuid = xstrdup(uuid), .index = index, .chores = chores };
    gpu->retry = evtimer_new(chores->base, on_retry, gpu);
    chores->gpus = xreallocarray(chores->gpus, chores->n_gpus + 1, sizeof(struct chore_gpu *));
    chores->gpus[chores->n_gpus++] = gpu;
    return gpu;
}

/* --- users --- */

static struct chore_user *find_user(
    const struct gpu_chores *chores, const struct spool_id *id, const char *uuid)
{
    for (size_t i = 0; i < chores->n_users; i++)
        if (spool_id_equal(&chores->users[i].id, id) && strcmp(chores->users[i].uuid, uuid) == 0)
            return &chores->users[i];
    return NULL;
}

static void take_user(
    struct gpu_chores *chores, const struct spool_id *id, uid_t uid, const char *uuid, bool is_waiting)
{
    struct chore_user *user = find_user(chores, id, uuid);
    if (user == NULL) {
        chores->users = xreallocarray(chores->users, chores->n_users + 1, sizeof(*chores->users));
        user = &chores->users[chores->n_users++];
        *user = (struct chore_user){ .id = *id, .uid = uid, .uuid = xstrdup(uuid) };
    }
    user->is_waiting = is_waiting;
}

void gpu_chores_drop(struct gpu_chores *chores, const struct spool_id *id)
{
    for (size_t i = chores != NULL ? chores->n_users : 0; i-- > 0;)
        if (spool_id_equal(&chores->users[i].id, id)) {
            free(chores->users[i].uuid);
            chores->users[i] = chores->users[--chores->n_users];
        }
}

/* The number of other attempts running on it; *ret_has_others is set if one is another user's. */
static size_t count_beside(const struct gpu_chores *chores, const struct spool_id *id, uid_t uid,
    const char *uuid, bool *ret_has_others)
{
    size_t count = 0;
    *ret_has_others = false;
    for (size_t i = 0; i < chores->n_users; i++) {
        const struct chore_user *user = &chores->users[i];
        if (user->is_waiting || strcmp(user->uuid, uuid) != 0 || spool_id_equal(&user->id, id))
            continue;
        count++;
        *ret_has_others |= user->uid != uid;
    }
    return count;
}

static bool is_wanted(const struct gpu_chores *chores, const char *uuid)
{
    for (size_t i = 0; i < chores->n_users; i++)
        if (strcmp(chores->users[i].uuid, uuid) == 0)
            return true;
    return false;
}

/* The callbacks may change the list. */
static void wake(struct gpu_chores *chores, const char *uuid)
{
    _cleanup_free_ struct spool_id *ids = xcalloc(chores->n_users + 1, sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; i < chores->n_users; i++)
        if (chores->users[i].is_waiting && strcmp(chores->users[i].uuid, uuid) == 0)
            ids[count++] = chores->users[i].id;
    for (size_t i = 0; i < count; i++)
        chores->on_ready(chores->arg, &ids[i]);
}

/* --- overwriting --- */

static void on_scrubbed(void *arg, const char *uuid, const char *output, const char *why)
{
    static const struct timeval after = { .tv_sec = RETRY_S };
    struct chore_gpu *gpu = arg;
    struct gpu_chores *chores = gpu->chores;
    char size[32], time[32];
    double bytes = 0;
    bool is_proven =
        why == NULL && output != NULL && test_results_number(output, "cleared_bytes", &bytes) && bytes > 0;
    gpu->chore = CHORE_NONE;
    gpu->is_cleared = is_proven;
    format_size((uint64_t)bytes, size, sizeof(size));
    format_duration(clock_boot_ms() - gpu->begin_ms, time, sizeof(time));
    if (is_proven) {
        log_info("GPU %u: %s of memory (%.0f bytes) overwritten in %s for the next user", gpu->index, size,
            bytes, time);
    } else {
        free(gpu->failure);
        gpu->failure = xasprintf("its memory could not be overwritten after another user's job: %s",
            why != NULL ? why : "mgpu-gpu-test did not confirm it");
        log_error("GPU %u: %s", gpu->index, gpu->failure);
        gpu_check_refuse(chores->check, uuid, gpu->failure);
        (void)evtimer_add(gpu->retry, &after);
    }
    wake(chores, uuid);
}

static void scrub(struct chore_gpu *gpu)
{
    gpu->chore = CHORE_SCRUB;
    gpu->begin_ms = clock_boot_ms();
    gpu_tools_run(gpu->chores->tools, "scrub", gpu->uuid, gpu->chores->scrub_ms, on_scrubbed, gpu);
}

/* -EINPROGRESS while a chore is running on it, or is started. */
static int admit_on(
    struct gpu_chores *chores, struct chore_gpu *gpu, const struct spool_id *id, uid_t uid, struct error *err)
{
    bool has_others;
    if (gpu->failure != NULL)
        return error_set(err, -EBUSY, "GPU %u: %s", gpu->index, gpu->failure);
    if (gpu->chore == CHORE_TEST)
        gpu_tools_kill(chores->tools, gpu->uuid);
    if (gpu->chore != CHORE_NONE)
        return error_set(err, -EINPROGRESS, "GPU %u is being prepared", gpu->index);
    if (chores->scrub_ms == 0 || !gpu->can_be_tested ||
        count_beside(chores, id, uid, gpu->uuid, &has_others) > 0)
        return 0;
    if (gpu->is_cleared || (gpu->is_user_known && gpu->last_uid == uid))
        return 0;
    scrub(gpu);
    return error_set(err, -EINPROGRESS, "the memory of GPU %u is being overwritten", gpu->index);
}

static void have(struct gpu_chores *chores, struct chore_gpu *gpu, const struct spool_id *id, uid_t uid)
{
    bool has_others;
    size_t beside = count_beside(chores, id, uid, gpu->uuid, &has_others);
    bool was_own = gpu->is_user_known && gpu->last_uid == uid;
    gpu->is_user_known = beside == 0 || (was_own && !has_others);
    gpu->last_uid = uid;
    gpu->is_cleared = false;
    gpu->idle = 0;
    take_user(chores, id, uid, gpu->uuid, false);
}

int gpu_chores_admit(struct gpu_chores *chores, const struct spool_id *id, uid_t uid,
    const struct record_list *grants, struct error *err)
{
    const struct gpu_grant *items = grants->items;
    int result = 0;
    for (size_t i = 0; chores != NULL && i < grants->count; i++) {
        if (items[i].uuid == NULL)
            continue;
        int r = admit_on(chores, take_gpu(chores, items[i].uuid, items[i].index), id, uid, err);
        if (r == -EINPROGRESS)
            take_user(chores, id, uid, items[i].uuid, true);
        if (r < 0 && r != -EINPROGRESS)
            return r;
        result = r < 0 ? r : result;
    }
    for (size_t i = 0; result == 0 && chores != NULL && i < grants->count; i++)
        if (items[i].uuid != NULL)
            have(chores, find_gpu(chores, items[i].uuid), id, uid);
    return result;
}

void gpu_chores_resume(
    struct gpu_chores *chores, const struct spool_id *id, uid_t uid, const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; chores != NULL && i < grants->count; i++)
        if (items[i].uuid != NULL)
            have(chores, take_gpu(chores, items[i].uuid, items[i].index), id, uid);
}

/* --- tests --- */

static void on_tested(void *arg, const char *uuid, const char *output, const char *why)
{
    struct chore_gpu *gpu = arg;
    bool is_wanted_now = is_wanted(gpu->chores, uuid);
    gpu->chore = CHORE_NONE;
    gpu->idle = 0;
    if (!is_wanted_now) // it was interrupted, and is repeated later
        test_results_put(gpu->chores->results, uuid, output, why, clock_wall_ms());
    wake(gpu->chores, uuid);
}

static bool is_busy(const struct gpu_chores *chores)
{
    for (size_t i = 0; i < chores->n_gpus; i++)
        if (chores->gpus[i]->chore != CHORE_NONE)
            return true;
    return false;
}

/* One at a time: GPUs share power, and the path to memory. */
static void consider(
    struct gpu_chores *chores, struct chore_gpu *gpu, const struct gpu_state *state, int64_t wall_ms)
{
    int64_t last_ms = test_results_time(chores->results, gpu->uuid);
    bool is_idle = state->is_lost == 0 && state->is_unclean == 0 && state->refusal == NULL &&
                   state->processes.count == 0 && !is_wanted(chores, gpu->uuid);
    gpu->idle = is_idle ? gpu->idle + 1 : 0;
    if (chores->test_every_ms == 0 || gpu->idle < IDLE_SAMPLES || is_busy(chores) ||
        (last_ms <= wall_ms && wall_ms - last_ms < chores->test_every_ms))
        return;
    gpu->chore = CHORE_TEST;
    gpu_tools_run(chores->tools, "health", gpu->uuid, TEST_MS, on_tested, gpu);
}

void gpu_chores_report(struct gpu_chores *chores, struct record_list *gpus, int64_t wall_ms)
{
    struct gpu_state *states = gpus->items;
    if (chores == NULL)
        return;
    gpu_tools_hide(chores->tools, gpus);
    for (size_t i = 0; i < gpus->count; i++) {
        if (states[i].uuid == NULL)
            continue;
        struct chore_gpu *gpu = take_gpu(chores, states[i].uuid, states[i].index);
        gpu->index = states[i].index;
        gpu->can_be_tested = gpu_vendor_of(states[i].vendor)->can_be_tested;
        test_results_show(chores->results, &states[i]);
        if (gpu->can_be_tested)
            consider(chores, gpu, &states[i], wall_ms);
    }
}
