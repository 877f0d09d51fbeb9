/* SPDX-License-Identifier: MIT */
/* Contradictions are a table of messages: check_rules. */
#include "job/ask.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/record_equal.h"
#include "job/array.h"
#include "job/ask_tries.h"
#include "job/notify.h"
#include "job/share.h"

#define ASK_HELP_TEXT(base, tag, kind, member, name, limit, text, ...) ask_help_##name[] = text

const char JOB_ASK_TABLE(ASK_HELP_TEXT, 0);

static const struct record_field ask_fields[] = { JOB_ASK_FIELDS(0) };

const struct record_type job_ask_record = RECORD_TYPE(4, "job request", struct job_ask, ask_fields);

void job_ask_init(struct job_ask *ask)
{
    *ask = (struct job_ask){ .gpus = 1 };
}

void job_ask_clear(struct job_ask *ask)
{
    record_clear(&job_ask_record, ask);
}

void job_ask_copy(struct job_ask *to, const struct job_ask *from)
{
    record_copy(&job_ask_record, to, from);
}

bool job_ask_equal(const struct job_ask *a, const struct job_ask *b)
{
    return record_equal(&job_ask_record, a, b);
}

static int check_text(const char *what, const char *text, size_t limit, struct error *err)
{
    if (text == NULL)
        return 0;
    if (text[0] == '\0')
        return error_set(err, -EINVAL, "%s is empty", what);
    if (strlen(text) > limit)
        return error_set(err, -E2BIG, "%s has %zu bytes; at most %zu", what, strlen(text), limit);
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return error_set(
                err, -EINVAL, "%s contains a control character (byte 0x%02x)", what, (unsigned)*p);
    return 0;
}

static int check_texts(const struct job_ask *ask, struct error *err)
{
    const struct {
        const char *what, *text;
        size_t limit;
    } texts[] = {
        { "gpu_ids", ask->gpu_ids, ASK_TEXT_MAX },
        { "gpu_model", ask->gpu_model, ASK_TEXT_MAX },
        { "gpu_allow", ask->gpu_allow, ASK_TEXT_MAX },
        { "after", ask->after, ASK_AFTER_TEXT_MAX },
        { "array", ask->array, ASK_TEXT_MAX },
        { "partition", ask->partition, ASK_TEXT_MAX },
        { "nodelist", ask->nodelist, ASK_TEXT_MAX },
        { "exclude", ask->exclude, ASK_TEXT_MAX },
        { "adopted_boot", ask->adopted_boot, ASK_BOOT_MAX },
        { "warn_signal", ask->warn_signal, ASK_WARN_MAX },
        { "retry_on", ask->retry_on, ASK_TEXT_MAX },
        { "notify_on", ask->notify_on, ASK_TEXT_MAX },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
        r = check_text(texts[i].what, texts[i].text, texts[i].limit, err);
    return r;
}

/* Such a name is that of no node: an exclusion would have no effect. */
static int check_nodes(const struct job_ask *ask, struct error *err)
{
    const char *const lists[][2] = { { "nodelist", ask->nodelist }, { "exclude", ask->exclude } };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (lists[i][1] != NULL && strpbrk(lists[i][1], "[]") != NULL) {
            (void)error_set(err, -EINVAL, "%s: '%.60s' is not a list of nodes", lists[i][0], lists[i][1]);
            return error_hint(err, "write all names, separated by commas: n1,n2");
        }
    return 0;
}

static int refuse_memory(uint64_t memory, struct error *err)
{
    char asked[32], least[32];
    format_size(memory, asked, sizeof(asked));
    format_size(ASK_MEMORY_MIN, least, sizeof(least));
    (void)error_set(err, -ERANGE, "memory: %s is below the minimum of %s", asked, least);
    return error_hint(err, "request more, such as -M 2G, or omit it");
}

int ask_check_log_max(const char *what, uint64_t bytes, struct error *err)
{
    char text[32];
    if (bytes >= ASK_LOG_MIN && bytes <= INT64_MAX)
        return 0;
    format_size(bytes, text, sizeof(text));
    (void)error_set(err, -ERANGE, "%s: %s is outside 64 KiB to 8 EiB", what, text);
    return error_hint(err, "give it a unit: 100M, 2G");
}

static int check_numbers(const struct job_ask *ask, struct error *err)
{
    int r;
    const struct {
        const char *what;
        int64_t value, min, max;
    } numbers[] = {
        { "gpus", ask->gpus, 0, ASK_GPUS_MAX },
        { "gpu_share", ask->gpu_share, 0, ASK_SHARE_WHOLE - 1 },
        { "priority", ask->priority, -ASK_PRIORITY_MAX, ASK_PRIORITY_MAX },
        { "nodes", ask->nodes, 0, ASK_NODES_MAX },
        { "gpus_per_node", ask->gpus_per_node, 0, ASK_GPUS_MAX },
        { "adopted_pid", ask->adopted_pid, 0, ASK_PID_MAX },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].value < numbers[i].min || numbers[i].value > numbers[i].max)
            return error_set(err, -ERANGE, "%s: %" PRId64 " is outside %" PRId64 " to %" PRId64,
                numbers[i].what, numbers[i].value, numbers[i].min, numbers[i].max);
    if (ask->cpu_milli > ASK_CPUS_MAX * 1000U)
        return error_set(err, -ERANGE, "cpus: %u is above %u", ask->cpu_milli / 1000, ASK_CPUS_MAX);
    if (ask->memory > 0 && ask->memory < ASK_MEMORY_MIN)
        return refuse_memory(ask->memory, err);
    if (ask->log_max > 0 && (r = ask_check_log_max("log_max", ask->log_max, err)) < 0)
        return r;
    if (ask->time_limit_ms < 0)
        return error_set(err, -ERANGE, "time_limit: %" PRId64 " ms is below 0", ask->time_limit_ms);
    if (ask->idle_timeout_ms < 0 || (ask->idle_timeout_ms > 0 && ask->idle_timeout_ms < ASK_IDLE_MIN_MS))
        return error_set(err, -ERANGE, "idle_timeout: %" PRId64 " ms is below %d ms", ask->idle_timeout_ms,
            ASK_IDLE_MIN_MS);
    if (ask->tty_idle_ms < 0 || (ask->tty_idle_ms > 0 && ask->tty_idle_ms < ASK_IDLE_MIN_MS))
        return error_set(
            err, -ERANGE, "tty_idle: %" PRId64 " ms is below %d ms", ask->tty_idle_ms, ASK_IDLE_MIN_MS);
    return 0;
}

static int check_times(const struct job_ask *ask, struct error *err)
{
    const struct {
        const char *what;
        int64_t ms;
    } times[] = { { "begin", ask->begin_ms }, { "deadline", ask->deadline_ms } };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i].ms < 0 || times[i].ms > ASK_YEAR_9999_MS)
            return error_set(err, -ERANGE, "%s is outside the years 1970 to 9999", times[i].what);
    if (ask->deadline_ms == 0 || ask->deadline_ms > ask->begin_ms)
        return 0;
    (void)error_set(err, -EINVAL, "deadline is not after begin, so the job could never start");
    return error_hint(err, "give a later deadline or an earlier begin");
}

static int check_model(const char *model, struct error *err)
{
    if (model == NULL)
        return 0;
    size_t length = strlen(model);
    if (model[0] != '|' && model[length - 1] != '|' && strstr(model, "||") == NULL)
        return 0;
    (void)error_set(err, -EINVAL, "gpu_model: '%.60s' has an empty name", model);
    return error_hint(err, "write h200, or a100|h100 for one of them");
}

static int check_lists(const struct job_ask *ask, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    struct ask_after *after = NULL;
    _cleanup_(array_clear) struct array array = { 0 };
    uint32_t *allow = NULL;
    size_t n_gpus = 0, count = 0;
    int r = check_model(ask->gpu_model, err);
    if (r == 0 && ask->gpu_ids != NULL)
        r = parse_gpu_ids(ask->gpu_ids, &gpus, &n_gpus, err);
    if (r == 0 && ask->gpu_allow != NULL)
        r = parse_id_list(ask->gpu_allow, "gpu_allow", ASK_GPU_INDEX_MAX, &allow, &count, err);
    if (r == 0 && ask->after != NULL)
        r = parse_after(ask->after, &after, &count, err);
    if (r == 0 && ask->array != NULL)
        r = parse_array(ask->array, &array, err);
    if (r == 0 && ask->gpu_ids != NULL && n_gpus != ask->gpus)
        r = error_set(err, -EINVAL, "gpu_ids lists %zu GPU%s, but gpus is %u", n_gpus, n_gpus == 1 ? "" : "s",
            ask->gpus);
    ask_gpus_free(gpus, n_gpus);
    free(allow);
    free(after);
    return r;
}

/* Each row is a contradiction; the first match is reported. */
static int check_rules(const struct job_ask *ask, struct error *err)
{
    bool has_gpus = ask->gpus > 0, has_ids = ask->gpu_ids != NULL;
    uint64_t product = (uint64_t)ask->nodes * ask->gpus_per_node;
    const char *no_gpu = "request a GPU as well: -g 1";
    const char *by_name = "omit it: gpu_ids lists the GPUs";
    const struct {
        bool is_broken;
        const char *sentence, *hint;
    } rows[] = {
        { !has_gpus && ask->gpu_mem > 0, "gpu_mem requires a GPU", no_gpu },
        { !has_gpus && ask->gpu_model != NULL, "gpu_model requires a GPU", no_gpu },
        { !has_gpus && ask->gpu_allow != NULL, "gpu_allow requires a GPU", no_gpu },
        { !has_gpus && ask->gpus_per_node > 0, "gpus_per_node requires a GPU", no_gpu },
        { !has_gpus && ask->gpu_share > 0, "gpu_share requires a GPU", no_gpu },
        { !has_gpus && ask->idle_timeout_ms > 0, "idle_timeout requires a GPU", no_gpu },
        { !has_gpus && ask->idle_ok, "idle_ok requires a GPU", no_gpu },
        { ask->idle_ok && ask->idle_timeout_ms > 0, "idle_ok and idle_timeout are mutually exclusive",
            "use one of them" },
        { ask->gpu_share > 0 && ask->gpus != 1, "a fraction of a GPU and several GPUs are mutually exclusive",
            "request -g 0.5 or whole GPUs; to share several, request memory: -g 2 -m 8G" },
        { has_ids && ask->gpu_model != NULL, "gpu_ids and gpu_model are mutually exclusive", by_name },
        { has_ids && ask->gpu_allow != NULL, "gpu_ids and gpu_allow are mutually exclusive", by_name },
        { has_ids && ask->nodes > 0, "gpu_ids and nodes are mutually exclusive", by_name },
        { has_ids && ask->gpus_per_node > 0, "gpu_ids and gpus_per_node are mutually exclusive", by_name },
        { ask->nodes > ask->gpus && has_gpus, "more nodes than GPUs requested",
            "request at least one GPU per node" },
        { product > 0 && product != ask->gpus, "gpus is not nodes times gpus_per_node",
            "omit gpus: it follows from the other two" },
        { ask->adopted_pid == 0 && (ask->adopted_start != 0 || ask->adopted_boot != NULL),
            "adopted_start and adopted_boot require adopted_pid", "add adopted_pid" },
        { ask->adopted_pid != 0 && !has_gpus, "an adoption requires at least one GPU", no_gpu },
        { ask->adopted_pid != 0 && ask->array != NULL, "an adoption cannot be an array",
            "adopt each process separately" },
        { ask->adopted_pid != 0 && ask->preemptible, "an adopted process cannot be preempted",
            "omit preemptible" },
        { ask->adopted_pid != 0 && ask->nodes > 1, "an adopted process runs on one node", "omit nodes" },
        { ask->gpus_per_node > 0 && ask->gpus % ask->gpus_per_node != 0,
            "gpus is not a multiple of gpus_per_node", "request the same number on each node" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].is_broken)
            continue;
        (void)error_set(err, -EINVAL, "%s (gpus %u, nodes %u, gpus_per_node %u)", rows[i].sentence, ask->gpus,
            ask->nodes, ask->gpus_per_node);
        return error_hint(err, "%s", rows[i].hint);
    }
    return 0;
}

int job_ask_validate(const struct job_ask *ask, struct error *err)
{
    int r = check_texts(ask, err);
    if (r == 0)
        r = check_nodes(ask, err);
    if (r == 0)
        r = check_numbers(ask, err);
    if (r == 0)
        r = check_times(ask, err);
    if (r == 0)
        r = check_rules(ask, err);
    if (r == 0)
        r = ask_check_tries(ask, err);
    if (r == 0)
        r = share_check(ask, err);
    if (r == 0)
        r = ask_check_notify(ask, err);
    return r == 0 ? check_lists(ask, err) : r;
}
