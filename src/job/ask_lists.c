/* SPDX-License-Identifier: MIT */
/* The lists in a request: GPUs by index, and dependencies. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "job/after.h"
#include "job/ask.h"

/* --- GPUs by name --- */

struct gpu_list {
    struct ask_gpu *gpus;
    size_t count;
};

void ask_gpus_free(struct ask_gpu *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(gpus[i].node);
    free(gpus);
}

static void clear_gpus(struct gpu_list *list)
{
    ask_gpus_free(list->gpus, list->count);
}

static int add_gpu(struct gpu_list *list, const char *node, uint32_t index, struct error *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->gpus[i].index == index && text_equal(list->gpus[i].node, node))
            return error_set(err, -EINVAL, "gpu_ids: id %u of node %.60s is listed twice", index, node);
    if (list->count >= ASK_GPUS_MAX)
        return error_set(err, -ERANGE, "gpu_ids lists more than %u GPUs", ASK_GPUS_MAX);
    list->gpus = xreallocarray(list->gpus, list->count + 1, sizeof(*list->gpus));
    list->gpus[list->count++] = (struct ask_gpu){ .node = xstrdup(node), .index = index };
    return 0;
}

/* "0,2-3" or "node1:0,1". */
static int add_part(struct gpu_list *list, const char *part, bool has_nodes, struct error *err)
{
    const char *colon = strchr(part, ':');
    if (has_nodes != (colon != NULL) || colon == part) {
        (void)error_set(err, -EINVAL, "gpu_ids: '%.60s' has no node, although others do", part);
        if (!has_nodes || colon == part)
            (void)error_set(err, -EINVAL, "gpu_ids: '%.60s' is not a list of GPUs", part);
        return error_hint(err, "write 0,2-3, or node1:0,1;node2:0 for GPUs of named nodes");
    }
    _cleanup_free_ char *node = colon != NULL ? xstrndup(part, (size_t)(colon - part)) : NULL;
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    if (node != NULL && strlen(node) > ASK_NODE_NAME_MAX)
        return error_set(
            err, -E2BIG, "gpu_ids: a node's name has %zu bytes; at most %u", strlen(node), ASK_NODE_NAME_MAX);
    int r = parse_id_list(colon != NULL ? colon + 1 : part, "gpu_ids", ASK_GPU_INDEX_MAX, &ids, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_gpu(list, node, ids[i], err);
    return r;
}

int parse_gpu_ids(const char *text, struct ask_gpu **ret, size_t *ret_count, struct error *err)
{
    _cleanup_(clear_gpus) struct gpu_list list = { 0 };
    bool has_nodes = strchr(text, ':') != NULL;
    for (const char *p = text, *end = p;; p = end + 1) {
        end = p + strcspn(p, ";");
        _cleanup_free_ char *part = xstrndup(p, (size_t)(end - p));
        int r = add_part(&list, part, has_nodes, err);
        if (r < 0)
            return r;
        if (*end == '\0')
            break;
    }
    *ret_count = list.count;
    *ret = take_ptr(list.gpus);
    list.count = 0;
    return 0;
}

/* --- jobs that are waited for --- */

static const char *const after_names[AFTER_KINDS] = {
    [AFTER_OK] = "ok",
    [AFTER_ANY] = "any",
    [AFTER_FAIL] = "fail",
    [AFTER_START] = "start",
    [AFTER_CORR] = "corr",
};

const char *after_kind_name(enum after_kind kind)
{
    return (size_t)kind < AFTER_KINDS ? after_names[kind] : "invalid";
}

bool after_comes_true(enum after_kind kind, bool is_ok)
{
    return kind == AFTER_ANY || kind == AFTER_START || (kind != AFTER_FAIL) == is_ok;
}

/* "start+10m" as "start" and its delay. */
static int read_delay(char *kind, int64_t *ret_ms, struct error *err)
{
    char *plus = strchr(kind, '+');
    if (plus == NULL)
        return 0;
    *plus = '\0';
    if (strcmp(kind, after_names[AFTER_START]) != 0)
        return error_set(err, -EINVAL, "after: a delay is possible for start only, not for '%.60s'", kind);
    return parse_duration(plus + 1, "after", ret_ms, err);
}

/* "41", "41:ok" or "41:start+10m". */
static int read_after(char *word, struct ask_after *ret, struct error *err)
{
    char *colon = strchr(word, ':');
    int64_t job = 0, delay_ms = 0;
    size_t kind = AFTER_OK;
    int r = colon != NULL ? read_delay(colon + 1, &delay_ms, err) : 0;
    if (r < 0)
        return r;
    if (colon != NULL) {
        *colon = '\0';
        for (kind = 0; kind < AFTER_KINDS && strcmp(after_names[kind], colon + 1) != 0;)
            kind++;
    }
    if (kind == AFTER_KINDS) {
        (void)error_set(err, -EINVAL, "after: '%.60s' is not a condition", colon + 1);
        return error_hint(err,
            "write 41:ok (job 41 succeeds), 41:any (it ends), 41:fail (it fails), 41:start (it starts), "
            "41:start+10m, or 41:corr (elements of arrays wait for each other)");
    }
    r = parse_integer(word, "after", 1, INT64_MAX, &job, err);
    if (r == 0)
        *ret =
            (struct ask_after){ .job = (uint64_t)job, .kind = (enum after_kind)kind, .delay_ms = delay_ms };
    return r;
}

int after_compare(const void *one, const void *other)
{
    const struct ask_after *a = one, *b = other;
    return a->job < b->job ? -1 : a->job > b->job;
}

static int check_distinct(const struct ask_after *list, size_t count, struct error *err)
{
    if (count < 2)
        return 0;
    _cleanup_free_ struct ask_after *sorted = xcalloc(count, sizeof(*sorted));
    memcpy(sorted, list, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), after_compare);
    for (size_t i = 1; i < count; i++)
        if (sorted[i - 1].job == sorted[i].job)
            return error_set(err, -EINVAL, "after: job %" PRIu64 " is listed twice", sorted[i].job);
    return 0;
}

int parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err)
{
    _cleanup_free_ struct ask_after *list = NULL;
    size_t count = 0;
    bool is_any = strchr(text, '?') != NULL;
    if (is_any && strchr(text, ',') != NULL)
        return error_set(err, -EINVAL, "after: ',' (all of them) and '?' (one of them) cannot be mixed");
    for (const char *p = text, *end = p; end != NULL; p = end != NULL ? end + 1 : NULL) {
        struct ask_after item;
        size_t length = strcspn(p, ",?");
        _cleanup_free_ char *word = xstrndup(p, length);
        end = p[length] != '\0' ? p + length : NULL;
        bool is_singleton = strcmp(word, AFTER_SINGLETON) == 0;
        if (is_singleton && is_any)
            return error_set(err, -EINVAL, "after: singleton and '?' (one of them) cannot be mixed");
        if (is_singleton)
            continue;
        int r = read_after(word, &item, err);
        if (r < 0)
            return r;
        if (count >= ASK_AFTER_MAX)
            return error_set(err, -E2BIG, "after: more than %u jobs", ASK_AFTER_MAX);
        list = xreallocarray(list, count + 1, sizeof(*list));
        list[count] = item;
        list[count++].is_any = is_any;
    }
    int r = check_distinct(list, count, err);
    if (r < 0)
        return r;
    *ret = take_ptr(list);
    *ret_count = count;
    return 0;
}
