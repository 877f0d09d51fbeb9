/* SPDX-License-Identifier: MIT */
/*
 * Why no running job is parked for a waiting one, with `park: auto`. The reason is that of the decision
 * itself (sched_guest.c, sched_hosts.c); here it becomes a sentence.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

struct sentence {
    const struct guest *guest;
    const struct sched_run *host;
    char *text;
    size_t size;
};

struct length {
    char text[32];
};

static struct length length_of(int64_t ms)
{
    struct length length;
    format_duration(ms > 0 ? ms : 0, length.text, sizeof(length.text));
    return length;
}

static void describe_ends_soon(const struct sentence *to)
{
    const struct sched *sched = to->guest->sched;
    uint32_t gpus = (uint32_t)to->host->allocation.n_gpus;
    bool is_wide = gpus > to->guest->class->key.request.gpus;
    (void)snprintf(to->text, to->size,
        "it probably ends in %s, and this one probably needs %s: more than 1/%" PRIu32 " of that%s",
        length_of(to->host->expected_end_ms - sched->now_ms).text, length_of(to->guest->needs_ms).text,
        sched->settings.park_ratio, is_wide ? ", or too much while its other GPUs would stay idle" : "");
}

static void describe_narrow(const struct sentence *to)
{
    (void)snprintf(to->text, to->size, "it has %zu of the %" PRIu32 " GPUs that this one needs%s",
        to->host->allocation.n_gpus, to->guest->class->key.request.gpus,
        to->guest->sched->cluster.n_nodes == 1 ? ", and too few others can be parked with it" : "");
}

static void describe_new(const struct sentence *to)
{
    const struct sched *sched = to->guest->sched;
    (void)snprintf(to->text, to->size, "it has had its GPUs for only %s",
        length_of(sched->now_ms - to->host->allocated_ms).text);
}

static void describe_bound(const struct sentence *to)
{
    const struct sched *sched = to->guest->sched;
    (void)snprintf(to->text, to->size,
        "it may be parked for at most %s more, given its run time, and this one probably needs %s, "
        "and its return up to %s",
        length_of(sched_run_budget(sched, to->host)).text, length_of(to->guest->needs_ms).text,
        length_of(sched_host_spare(sched, to->host)).text);
}

static void describe_layers(const struct sentence *to)
{
    uint32_t most = to->guest->sched->settings.park_layers;
    (void)snprintf(to->text, to->size, "%" PRIu32 " job%s already parked from one of its GPUs, the maximum",
        most, most == 1 ? " is" : "s are");
}

static const struct {
    const char *text;
    void (*say)(const struct sentence *to);
} bars[HOST_BARS] = {
    [HOST_LEAVING] = { "it already returns its GPUs", NULL },
    [HOST_PRIORITY] = { "it has a higher priority", NULL },
    [HOST_PREFERRED] = { "its owner has given it a higher priority", NULL },
    [HOST_ENDS_SOON] = { NULL, describe_ends_soon },
    [HOST_NARROW] = { NULL, describe_narrow },
    [HOST_NEW] = { NULL, describe_new },
    [HOST_BOUND] = { NULL, describe_bound },
    [HOST_LAYERS] = { NULL, describe_layers },
    [HOST_CANNOT_PARK] = { "it cannot be parked", NULL },
    [HOST_NO_START] = { "this one still could not start on its GPUs: its CPUs and host memory stay in use, "
                        "and the GPUs may be needed back too soon",
        NULL },
};

/* The job itself, or one that comes before it, permits no park. */
static bool explain_guest(struct sched *sched, const struct sched_job *job, struct why_park *park)
{
    const char *bar = sched_guest_bar(job->class);
    const struct sched_job *over = sched->guests_over != 0 ? sched_find(sched, sched->guests_over) : NULL;
    uint64_t position = over != NULL ? sched_position(sched, over) : 0;
    if (bar != NULL)
        (void)snprintf(park->text, sizeof(park->text), "%s", bar);
    else if (position == 0 || position > sched_position(sched, job))
        return false;
    else if (over->class == job->class)
        (void)snprintf(park->text, sizeof(park->text),
            "it has no time limit and cannot be parked itself, and no other GPUs can be promised to parked "
            "jobs");
    else
        (void)snprintf(park->text, sizeof(park->text),
            "job %" PRIu64 " ahead of it has no time limit and cannot be parked itself", over->entry.job);
    return true;
}

static void explain_hosts(struct sched *sched, const struct sched_job *job, struct why_park *park)
{
    uint64_t reservations[16];
    struct fit fit;
    struct sched_run **runs;
    struct guest guest = { .sched = sched, .class = job->class, .fit = &fit };
    enum host_bar bar = HOST_BARS;
    sched_fit_of(sched, job->class, reservations, 16, &fit);
    guest.needs_ms = sched_job_needs(sched, job);
    fit.end_ms = sched->now_ms + guest.needs_ms;
    size_t count = why_holders(sched, job->class, &runs);
    const struct sched_run *host = sched_hosts_nearest(&guest, runs, count, &bar);
    free(runs);
    if (host == NULL)
        return;
    park->host = host->job->entry.job;
    park->is_barred = bar == HOST_CANNOT_PARK;
    const struct sentence to = { &guest, host, park->text, sizeof(park->text) };
    if (bars[bar].say != NULL)
        bars[bar].say(&to);
    else
        (void)snprintf(park->text, sizeof(park->text), "%s", bars[bar].text);
}

void why_explain_park(struct sched *sched, const struct sched_job *job, struct why *why)
{
    enum why_code code = why->n_reasons > 0 ? why->reasons[0].code : WHY_CODES;
    bool is_parked = job->rules != NULL && job->rules->parked != NULL;
    bool waits_for_gpus = code == WHY_RESOURCES || code == WHY_GPU_MEMORY || code == WHY_PRIORITY;
    if (!sched_parks(sched) || !waits_for_gpus || is_parked || job->class->key.request.gpus == 0 ||
        sched_guest_has_asked(sched, job->class))
        return;
    if (!explain_guest(sched, job, &why->park))
        explain_hosts(sched, job, &why->park);
}
