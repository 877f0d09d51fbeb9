/* SPDX-License-Identifier: MIT */
/*
 * Requests are compared and hashed by value: the queue keeps jobs with equal requests in one class, and
 * placements cache results per request.
 */
#include "sched/cluster/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "job/share.h"

bool request_is_shared(const struct sched_request *request)
{
    return request->gpus > 0 && (request->share > 0 || request->gpu_mem > 0);
}

bool request_may_span(const struct sched_request *request)
{
    if (request->n_picks == 0)
        return request->nodes != 1;
    const char *node = NULL;
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        if (name != NULL && node != NULL && strcmp(name, node) != 0)
            return true;
        if (name != NULL)
            node = name;
    }
    return false;
}

void request_copy(struct sched_request *to, const struct sched_request *from)
{
    *to = *from;
    to->model = xstrdup(from->model);
    to->partition = xstrdup(from->partition);
    to->nodelist = xstrdup(from->nodelist);
    to->exclude = xstrdup(from->exclude);
    to->picks = NULL;
    to->allow = NULL;
    if (from->n_picks > 0)
        to->picks = xcalloc(from->n_picks, sizeof(*to->picks));
    for (size_t i = 0; i < from->n_picks; i++)
        to->picks[i] = (struct gpu_pick){ xstrdup(from->picks[i].node), from->picks[i].index };
    if (from->n_allow > 0)
        to->allow = xcalloc(from->n_allow, sizeof(*to->allow));
    for (size_t i = 0; i < from->n_allow; i++)
        to->allow[i] = from->allow[i];
}

void request_clear(struct sched_request *request)
{
    for (size_t i = 0; i < request->n_picks; i++)
        free(request->picks[i].node);
    free(request->picks);
    free(request->allow);
    free(request->model);
    free(request->partition);
    free(request->nodelist);
    free(request->exclude);
    *request = (struct sched_request){ 0 };
}

bool request_equal(const struct sched_request *a, const struct sched_request *b)
{
    if (a->gpus != b->gpus || a->nodes != b->nodes || a->gpus_per_node != b->gpus_per_node ||
        a->share != b->share || a->gpu_mem != b->gpu_mem || a->cpu_milli != b->cpu_milli ||
        a->memory != b->memory || a->adopted_pid != b->adopted_pid || a->n_picks != b->n_picks ||
        a->n_allow != b->n_allow || a->is_exclusive != b->is_exclusive || a->share_kind != b->share_kind ||
        !text_equal(a->model, b->model) || !text_equal(a->partition, b->partition) ||
        !text_equal(a->nodelist, b->nodelist) || !text_equal(a->exclude, b->exclude))
        return false;
    for (size_t i = 0; i < a->n_picks; i++)
        if (a->picks[i].index != b->picks[i].index || !text_equal(a->picks[i].node, b->picks[i].node))
            return false;
    return a->n_allow == 0 || memcmp(a->allow, b->allow, a->n_allow * sizeof(*a->allow)) == 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    hash = mix(hash, text != NULL);
    for (; text != NULL && *text != '\0'; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

uint64_t request_hash(const struct sched_request *request)
{
    const uint64_t numbers[] = { request->gpus, request->nodes, request->gpus_per_node, request->share,
        request->gpu_mem, request->cpu_milli, request->memory, request->n_picks, request->n_allow,
        request->adopted_pid, request->is_exclusive, request->share_kind };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        hash = mix(hash, numbers[i]);
    for (size_t i = 0; i < request->n_picks; i++)
        hash = mix_text(mix(hash, request->picks[i].index), request->picks[i].node);
    for (size_t i = 0; i < request->n_allow; i++)
        hash = mix(hash, request->allow[i]);
    const char *const texts[] = { request->model, request->partition, request->nodelist, request->exclude };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        hash = mix_text(hash, texts[i]);
    return hash;
}

static size_t text_cpus(uint32_t cpu_milli, char *text, size_t size)
{
    int length = cpu_milli % 1000 == 0
                     ? snprintf(text, size, "%u CPU%s", cpu_milli / 1000, cpu_milli == 1000 ? "" : "s")
                     : snprintf(text, size, "%u.%03u CPUs", cpu_milli / 1000, cpu_milli % 1000);
    return length < 0 ? 0 : (size_t)length;
}

/* "2 GPUs (h200)", "0.25 of a GPU". */
static void text_gpus(const struct sched_request *request, char *text, size_t size)
{
    char count[32];
    if (request->share > 0)
        (void)snprintf(count, sizeof(count), "%g of a GPU", request->share / 1000.0);
    else
        (void)snprintf(count, sizeof(count), "%u GPU%s", request->gpus, request->gpus == 1 ? "" : "s");
    (void)snprintf(text, size, "%s%s%.60s%s", count, request->model != NULL ? " (" : "",
        request->model != NULL ? request->model : "", request->model != NULL ? ")" : "");
}

static void text_host(const struct sched_request *request, char *text, size_t size)
{
    char memory[32];
    size_t length = text_cpus(request->cpu_milli, text, size);
    if (request->memory == 0)
        return;
    format_size(request->memory, memory, sizeof(memory));
    (void)snprintf(text + length, size - length, " and %s of host memory", memory);
}

void request_text(const struct sched_request *request, char *text, size_t size)
{
    char gpus[96] = "", part[64] = "", memory[32];
    if (request->gpus == 0)
        text_host(request, gpus, sizeof(gpus));
    else
        text_gpus(request, gpus, sizeof(gpus));
    const char *each = request->gpus > 1 ? " each" : "";
    if (request->gpu_mem > 0 && request->gpus > 0) {
        format_size(request->gpu_mem, memory, sizeof(memory));
        (void)snprintf(part, sizeof(part), " with %s%s", memory, each);
    }
    bool has_kind = request->share_kind != SHARE_NONE && request->share_kind < SHARE_AUTO;
    (void)snprintf(text, size, "%s%s%s%s%.60s%s%s", gpus, part,
        request->is_exclusive ? " on a whole node" : "", request->partition != NULL ? " in partition " : "",
        request->partition != NULL ? request->partition : "",
        has_kind ? " on nodes that enforce shares by " : "",
        has_kind ? share_kind_name((enum share_kind)request->share_kind) : "");
}
