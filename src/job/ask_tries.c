/* SPDX-License-Identifier: MIT */
#include "job/ask_tries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/signals.h"
#include "job/gpu_oom.h"

#define EXIT_CODE_MAX 255

int parse_warn_signal(const char *text, int *ret_signal, int64_t *ret_before_ms, struct error *err)
{
    const char *at = strchr(text, '@');
    _cleanup_free_ char *name = at != NULL ? xstrndup(text, (size_t)(at - text)) : xstrdup(text);
    int64_t before_ms = ASK_WARN_MS;
    int signal = signal_find(name);
    if (signal == 0) {
        (void)error_set(err, -EINVAL, "warn_signal: '%.60s' is not a signal", name);
        return error_hint(err, "write USR1@60 for SIGUSR1 60 seconds before the time limit");
    }
    int r = at != NULL ? parse_duration(at + 1, "warn_signal", &before_ms, err) : 0;
    if (r < 0)
        return r;
    if (before_ms <= 0)
        return error_set(err, -ERANGE, "warn_signal: %.60s is not before the time limit", text);
    *ret_signal = signal;
    *ret_before_ms = before_ms;
    return 0;
}

static int read_codes(const char *text, uint32_t **ret, size_t *ret_count, struct error *err)
{
    return parse_id_list(text, "retry_on", EXIT_CODE_MAX, ret, ret_count, err);
}

static int check_codes(const struct job_ask *ask, struct error *err)
{
    _cleanup_free_ uint32_t *codes = NULL;
    size_t count = 0;
    if (ask->retry_on == NULL)
        return 0;
    int r = read_codes(ask->retry_on, &codes, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (codes[i] == 0)
            return error_set(err, -EINVAL, "retry_on: exit code 0 means success");
    if (r == 0 && ask->retry == 0) {
        (void)error_set(err, -EINVAL, "retry_on requires retry");
        return error_hint(err, "add retry: --retry 3");
    }
    return r;
}

static int check_warning(const struct job_ask *ask, struct error *err)
{
    int signal = 0;
    int64_t before_ms = 0;
    return ask->warn_signal != NULL ? parse_warn_signal(ask->warn_signal, &signal, &before_ms, err) : 0;
}

/* The resource of which the next try would request more. */
static int check_memory(const struct job_ask *ask, struct error *err)
{
    struct gpu_oom_retry retry;
    if (ask->retry_oom == NULL)
        return 0;
    int r = gpu_oom_parse_retry(ask->retry_oom, &retry, err);
    if (r < 0)
        return r;
    if (ask->gpu_mem == 0 && ask->gpu_share == 0) {
        (void)error_set(err, -EINVAL, "retry_oom requires a share of a GPU: a whole GPU has no more memory");
        return error_hint(err, "request a share: -m 8G or -g 0.5");
    }
    if (retry.max_bytes != 0 && ask->gpu_mem > retry.max_bytes)
        return error_set(err, -ERANGE, "retry_oom: max is less than the memory requested first");
    return 0;
}

/* Kinds of parking that a job can request, but not together with "never parked". */
static int check_parking(const struct job_ask *ask, struct error *err)
{
    const struct {
        bool is_set;
        const char *name;
    } ways[] = {
        { ask->park_on_timeout, "park_on_timeout" },
        { ask->park_on_preempt, "park_on_preempt" },
        { ask->park_anywhere, "park_anywhere" },
    };
    for (size_t i = 0; ask->no_park && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (ways[i].is_set) {
            (void)error_set(err, -EINVAL, "no_park and %s cannot be combined", ways[i].name);
            return error_hint(err, "omit one of them");
        }
    if (ask->park_on_timeout && ask->requeue_on_timeout)
        return error_set(err, -EINVAL, "park_on_timeout and requeue_on_timeout cannot be combined");
    if (ask->park_anywhere && (ask->gpu_share != 0 || ask->gpu_mem != 0))
        return error_set(err, -EINVAL, "park_anywhere needs whole GPUs: a share returns on its own GPU");
    if (ask->park_anywhere && (ask->nodes > 1 || ask->adopted_pid != 0))
        return error_set(err, -EINVAL, "park_anywhere needs a job on one node: NCCL would find other GPUs");
    return 0;
}

static int check_early(const struct job_ask *ask, struct error *err)
{
    if (ask->early && ask->no_early)
        return error_set(err, -EINVAL, "early and no_early cannot be combined");
    if (ask->early && ask->gpus == 0 && ask->gpu_ids == NULL && ask->gpus_per_node == 0) {
        (void)error_set(err, -EINVAL, "early needs a job with GPUs: without, it waits for none");
        return error_hint(err, "omit early, or request GPUs");
    }
    if (ask->early && ask->adopted_pid != 0)
        return error_set(err, -EINVAL, "an adopted process runs already: early is for jobs that mgpu starts");
    return 0;
}

int ask_check_tries(const struct job_ask *ask, struct error *err)
{
    bool is_adopted = ask->adopted_pid != 0;
    if (ask->grace_ms < 0 || ask->grace_ms > ASK_GRACE_MAX_MS)
        return error_set(err, -ERANGE, "grace: %" PRId64 " ms is outside 0 to 24 h", ask->grace_ms);
    if (ask->retry > ASK_RETRY_MAX)
        return error_set(err, -ERANGE, "retry: %u is outside 0 to %u", ask->retry, ASK_RETRY_MAX);
    if (ask->max_requeues > ASK_REQUEUES_MAX)
        return error_set(
            err, -ERANGE, "max_requeues: %u is outside 0 to %u", ask->max_requeues, ASK_REQUEUES_MAX);
    int r = check_parking(ask, err);
    if (r == 0)
        r = check_early(ask, err);
    if (r < 0)
        return r;
    bool is_requeued =
        ask->park_on_timeout || ask->park_on_preempt || ask->requeue_on_timeout || ask->requeue_on_node_lost;
    if (is_adopted && (ask->retry > 0 || is_requeued || ask->warn_signal != NULL || ask->checkpoint ||
                          ask->retry_oom != NULL)) {
        (void)error_set(err, -EINVAL, "an adopted process cannot be restarted or signalled by mgpu");
        return error_hint(err,
            "omit retry, requeue_on_timeout, requeue_on_node_lost, retry_oom, warn_signal and checkpoint");
    }
    r = check_warning(ask, err);
    if (r == 0)
        r = check_codes(ask, err);
    return r == 0 ? check_memory(ask, err) : r;
}

bool ask_retries_on(const struct job_ask *ask, int32_t exit_code)
{
    _cleanup_free_ uint32_t *codes = NULL;
    size_t count = 0;
    struct error err;
    if (ask->retry_on == NULL || read_codes(ask->retry_on, &codes, &count, &err) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (exit_code == (int32_t)codes[i])
            return true;
    return false;
}
