/* SPDX-License-Identifier: MIT */
/*
 * What one user may have in the queue, and may have stored within a day. The requests of jobs are kept long
 * after their jobs have ended, so it is the flow of bytes that is bounded: a bucket that empties evenly
 * within a day and is empty when mgpud starts. Administrators may do both without limit.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/private.h"
#include "job/spec.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct core_quota {
    struct core_quota *next;
    uint32_t uid;
    size_t open;     // jobs not done
    uint64_t stored; // bytes in the bucket at `at_ms`
    int64_t at_ms;   // boot clock
};

static struct core_quota *find(const struct core *core, uint32_t uid)
{
    struct core_quota *quota = core->quotas[uid % CORE_QUOTA_CHAINS];
    while (quota != NULL && quota->uid != uid)
        quota = quota->next;
    return quota;
}

static struct core_quota *make(struct core *core, uint32_t uid)
{
    struct core_quota *quota = find(core, uid), **chain = &core->quotas[uid % CORE_QUOTA_CHAINS];
    if (quota == NULL) {
        quota = xcalloc(1, sizeof(*quota));
        *quota = (struct core_quota){ .uid = uid, .next = *chain };
        *chain = quota;
    }
    return quota;
}

static uint64_t stored_now(const struct core *core, const struct core_quota *quota)
{
    double emptied = (double)core->options.user_day_bytes * (double)(core->boot_ms - quota->at_ms) / DAY_MS;
    return emptied < (double)quota->stored ? quota->stored - (uint64_t)emptied : 0;
}

static uint64_t size_of(const struct job_spec *spec)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_spec_record, spec, &bytes);
    return bytes.length;
}

int core_check_quota(
    const struct core *core, const struct identity *who, const struct job_spec *spec, struct error *err)
{
    static const struct core_quota none;
    const struct core_options *options = &core->options;
    const struct core_quota *found = find(core, who->uid), *quota = found != NULL ? found : &none;
    if (who->role == ROLE_ADMIN)
        return 0;
    if (options->user_queue_max > 0 && quota->open >= options->user_queue_max) {
        (void)error_set(
            err, -EDQUOT, "you have %zu jobs that wait or run, as many as one user may have", quota->open);
        return error_hint(err, "submit again when some have ended; many alike fit into one array (--array)");
    }
    uint64_t size = options->user_day_bytes > 0 ? size_of(spec) : 0;
    if (size == 0 || stored_now(core, quota) + size <= options->user_day_bytes)
        return 0;
    char most[32];
    format_size(options->user_day_bytes, most, sizeof(most));
    (void)error_set(
        err, -EDQUOT, "your jobs have taken %s of the store within a day, as much as one user may", most);
    return error_hint(err, "most of it is often the environment: `--export minimal`, or submit again later");
}

void core_charge_quota(struct core *core, uint32_t uid, const struct job_spec *spec)
{
    struct core_quota *quota = make(core, uid);
    if (core->options.user_day_bytes == 0)
        return;
    quota->stored = stored_now(core, quota) + size_of(spec);
    quota->at_ms = core->boot_ms;
}

void core_count_open(struct core *core, uint32_t uid)
{
    core->n_undone++;
    make(core, uid)->open++;
}

void core_count_done(struct core *core, uint32_t uid)
{
    core->n_undone--;
    make(core, uid)->open--;
}

void core_clear_quotas(struct core *core)
{
    for (size_t i = 0; i < CORE_QUOTA_CHAINS; i++) {
        while (core->quotas[i] != NULL) {
            struct core_quota *quota = core->quotas[i];
            core->quotas[i] = quota->next;
            free(quota);
        }
    }
}
