/* SPDX-License-Identifier: MIT */
/*
 * Values are turned into what the API takes without looking at a clock or a zone: bytes, seconds, RFC 3339 in
 * UTC, numbers of jobs. What only mgpud can know (whether a GPU exists, the syntax of arrays) is left to it.
 */
#include "cli/options/ask.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utc.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/term/field.h"
#include "cli/options/selector.h"
#include "cli/term/when.h"
#include "job/array.h"
#include "job/ask.h"
#include "job/notify.h"

#define THOUSANDTHS 1000
#define NUMBER_MAX  1000000000 // of GPUs or CPUs, far above what any limit allows
#define FRACTION    "a part of a GPU is 0.001 to 0.999, such as -g 0.5; several GPUs must be whole: -g 2"

/* A number with at most three decimals, as thousandths; -1 when it is none. */
static int64_t read_thousandths(const char *text, const char **ret_end)
{
    char *end = NULL;
    int64_t value = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    if (value < 0 || value > NUMBER_MAX)
        return -1;
    value *= THOUSANDTHS;
    if (*end == '.') {
        int64_t scale = THOUSANDTHS / 10;
        const char *digit = end + 1;
        if (!isdigit((unsigned char)*digit))
            return -1;
        for (; isdigit((unsigned char)*digit); digit++, scale /= 10) {
            if (scale == 0 && *digit != '0')
                return -1;
            value += (*digit - '0') * scale;
        }
        *ret_end = digit;
        return value;
    }
    *ret_end = end;
    return value;
}

static json_t *make_number(int64_t thousandths)
{
    return thousandths % THOUSANDTHS == 0 ? json_integer(thousandths / THOUSANDTHS)
                                          : json_real((double)thousandths / THOUSANDTHS);
}

/* The job's own checks name the key; here the option that was typed takes its place. */
static int name_option(const char *key, const char *what, struct error *err)
{
    size_t length = strlen(key);
    if (err == NULL)
        return -EINVAL;
    if (strncmp(err->message, key, length) == 0 && strncmp(err->message + length, ": ", 2) == 0)
        memmove(err->message, err->message + length + 2, strlen(err->message + length + 2) + 1);
    return error_wrap(err, "%s", what);
}

static int refuse_gpus(const char *what, const char *text, struct error *err)
{
    if (strpbrk(text, ",-") != NULL && isdigit((unsigned char)text[0])) {
        (void)error_set(err, -EINVAL, "%s: '%.60s' is a list, but a number of GPUs is required", what, text);
        return error_hint(err, "for exactly these GPUs, use -G %.60s", text);
    }
    if (isalpha((unsigned char)text[0])) {
        (void)error_set(err, -EINVAL, "%s: '%.60s' is not a number of GPUs", what, text);
        return error_hint(err, "put the number before the model: -g 2:h200");
    }
    (void)error_set(err, -EINVAL, "%s: '%.60s' is neither a number of GPUs nor a part of a GPU", what, text);
    return error_hint(err, FRACTION);
}

/* "2", "0.5" or "2:h200". */
static int read_gpus(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    const char *end = text;
    int64_t thousandths = read_thousandths(text, &end);
    (void)client;
    if (thousandths < 0 || (*end != '\0' && *end != ':'))
        return refuse_gpus(what, text, err);
    bool is_whole = thousandths % THOUSANDTHS == 0;
    if (!is_whole && thousandths > THOUSANDTHS)
        return refuse_gpus(what, text, err);
    if (is_whole && (thousandths / THOUSANDTHS > ASK_GPUS_MAX))
        return error_set(err, -ERANGE, "%s: %.60s is outside 0 to %u", what, text, ASK_GPUS_MAX);
    if (*end == ':' && end[1] == '\0')
        return error_set(err, -EINVAL, "%s: '%.60s' has no model after the colon", what, text);
    if (*end == ':' && thousandths == 0)
        return error_set(err, -EINVAL, "%s: '%.60s' names a model, but no GPU", what, text);
    *ret = *end == ':' ? json_string(text) : make_number(thousandths);
    return *ret == NULL ? error_set(err, -EINVAL, "%s: the model is not UTF-8 text", what) : 0;
}

static int read_text(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    if (text[0] == '\0')
        return error_set(err, -EINVAL, "%s: the value is empty", what);
    *ret = json_string(text);
    return *ret == NULL ? error_set(err, -EINVAL, "%s: the value is not UTF-8 text", what) : 0;
}

/* One that commands would take for a number, a range or the newest job could not be used instead of them. */
static int read_name(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    bool is_number = text[0] != '\0' && text[strspn(text, "0123456789.-")] == '\0';
    if (!is_number && strcmp(text, "@") != 0)
        return read_text(client, what, text, ret, err);
    _cleanup_free_ char *shown = text_escape(text, 40);
    (void)error_set(err, -EINVAL, "%s: '%s' is not a valid name: it looks like a job number", what, shown);
    return error_hint(
        err, "a name needs at least one letter, such as run-%s", strcmp(text, "@") == 0 ? "1" : shown);
}

static int read_gpu_ids(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    int r = parse_gpu_ids(text, &gpus, &count, err);
    if (r < 0)
        return name_option("gpu_ids", what, err);
    ask_gpus_free(gpus, count);
    return read_text(client, what, text, ret, err);
}

static int read_gpu_allow(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    int r = parse_id_list(text, what, ASK_GPU_INDEX_MAX, &ids, &count, err);
    return r < 0 ? r : read_text(client, what, text, ret, err);
}

static int read_size(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    uint64_t bytes = 0;
    (void)client;
    int r = parse_size(text, what, &bytes, err);
    if (r == 0)
        *ret = json_integer((json_int_t)bytes);
    return r;
}

static int read_integer(
    const char *what, const char *text, int64_t min, int64_t max, json_t **ret, struct error *err)
{
    int64_t value = 0;
    int r = parse_integer(text, what, min, max, &value, err);
    if (r == 0)
        *ret = json_integer(value);
    return r;
}

static int read_priority(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    return read_integer(what, text, -ASK_PRIORITY_MAX, ASK_PRIORITY_MAX, ret, err);
}

static int read_nodes(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    return read_integer(what, text, 1, ASK_NODES_MAX, ret, err);
}

static int read_gpus_per_node(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    return read_integer(what, text, 1, ASK_GPUS_MAX, ret, err);
}

static int read_requeues(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    return read_integer(what, text, 1, ASK_REQUEUES_MAX, ret, err);
}

static int read_retry(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    (void)client;
    return read_integer(what, text, 0, ASK_RETRY_MAX, ret, err);
}

static int read_warn_signal(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    int signal = 0;
    int64_t before_ms = 0;
    int r = parse_warn_signal(text, &signal, &before_ms, err);
    return r < 0 ? name_option("warn_signal", what, err) : read_text(client, what, text, ret, err);
}

static bool is_command(const char *text)
{
    struct notify_target target = { .way = NOTIFY_COMMAND };
    return parse_notify(text, &target, NULL) < 0 || target.way == NOTIFY_COMMAND;
}

static int add_target(json_t *list, const char *what, const char *text, struct error *err)
{
    struct notify_target target;
    int r = parse_notify(text, &target, err);
    if (r < 0)
        return name_option("notify", what, err);
    if (json_array_append_new(list, json_string(text)) < 0)
        return error_set(err, -EINVAL, "%s: the value is not UTF-8 text", what);
    return 0;
}

/* Commas stand between addresses and URLs; in a command they are its own. */
static int read_notify(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *list = json_array();
    _cleanup_strings_ struct strings parts = { 0 };
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    bool is_list = true;
    (void)client;
    for (char *part = NULL; (part = strsep(&rest, ",")) != NULL;) {
        is_list = is_list && !is_command(part);
        strings_add(&parts, part);
    }
    int r = is_list ? 0 : add_target(list, what, text, err);
    for (size_t i = 0; is_list && r == 0 && i < parts.count; i++)
        r = add_target(list, what, parts.items[i], err);
    if (r == 0)
        *ret = take_ptr(list);
    return r;
}

static int read_notify_on(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    uint32_t events = 0;
    int r = parse_notify_on(text, &events, err);
    return r < 0 ? name_option("notify_on", what, err) : read_text(client, what, text, ret, err);
}

static int read_codes(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    _cleanup_free_ uint32_t *codes = NULL;
    size_t count = 0;
    int r = parse_id_list(text, what, 255, &codes, &count, err);
    return r < 0 ? r : read_text(client, what, text, ret, err);
}

static int read_cpus(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    const char *end = text;
    int64_t thousandths = read_thousandths(text, &end);
    (void)client;
    if (thousandths < 0 || *end != '\0')
        return error_set(err, -EINVAL, "%s: '%.60s' is not a number of CPUs, such as 4 or 2.5", what, text);
    if (thousandths == 0 || thousandths > (int64_t)ASK_CPUS_MAX * THOUSANDTHS)
        return error_set(err, -ERANGE, "%s: %.60s is outside 0.001 to %u", what, text, ASK_CPUS_MAX);
    *ret = make_number(thousandths);
    return 0;
}

/* Seconds, or text for the server when they are no whole number. */
static int read_duration(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    int64_t ms = 0;
    (void)client;
    int r = parse_duration(text, what, &ms, err);
    if (r < 0)
        return r;
    if (ms == 0)
        return error_set(err, -ERANGE, "%s: a limit of %.60s leaves no time to run", what, text);
    if (ms % 1000 == 0) {
        *ret = json_integer(ms / 1000);
        return 0;
    }
    _cleanup_free_ char *exact = xasprintf("%" PRId64 "ms", ms);
    *ret = json_string(exact);
    return 0;
}

static int read_when(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    char utc[64];
    int64_t ms = 0;
    (void)client;
    int r = when_parse(text, what, clock_wall_ms(), &when_local, &ms, err);
    if (r < 0)
        return r;
    utc_format(ms, utc, sizeof(utc));
    *ret = json_string(utc);
    return 0;
}

static int read_flag(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    static const char *const words[2][3] = { { "no", "false", "0" }, { "yes", "true", "1" } };
    (void)client;
    for (int value = 0; value < 2; value++)
        for (size_t i = 0; i < 3; i++)
            if (strcmp(text, words[value][i]) == 0) {
                *ret = json_boolean(value);
                return 0;
            }
    return error_set(err, -EINVAL, "%s: '%.60s' is not yes or no", what, text);
}

/* A job by any of its names; its own number even when it is an element of an array. */
static int find_job(struct client *client, const char *what, char *word, int64_t *ret_id, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    char *words[] = { word };
    struct selector selector = { 0 };
    int r = selector_parse(word, &selector, err);
    if (r == 0 && selector.first != selector.last)
        return error_set(err, -EINVAL, "%s: '%.60s' is more than one job", what, word);
    if (r == 0)
        r = selector_resolve(client, 1, words, &jobs, err);
    if (r < 0)
        return error_wrap(err, "%s", what);
    if (strchr(jobs.items[0], '.') == NULL) {
        *ret_id = strtoll(jobs.items[0], NULL, 10);
        return 0;
    }
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", jobs.items[0]);
    r = client_get(client, path, &job, err);
    if (r < 0)
        return error_wrap(err, "%s", what);
    *ret_id = field_integer(job, "id", 0);
    return 0;
}

static int read_array(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    struct array array = { 0 };
    int r = parse_array(text, &array, err);
    if (r < 0)
        return name_option("array", what, err);
    array_clear(&array);
    return read_text(client, what, text, ret, err);
}

/* "41:ok,train:any" with numbers instead of names. */
static int read_after(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        int64_t id = 0;
        char *colon = strrchr(word, ':');
        const char *kind = colon == NULL ? "ok" : colon + 1;
        if (colon != NULL)
            *colon = '\0';
        int r = find_job(client, what, word, &id, err);
        if (r < 0)
            return r;
        buffer_printf(&out, "%s%" PRId64 ":%s", out.length > 0 ? "," : "", id, kind);
    }
    struct ask_after *jobs = NULL;
    size_t count = 0;
    int r = parse_after(buffer_text(&out), &jobs, &count, err);
    if (r < 0)
        return name_option("after", what, err);
    free(jobs);
    *ret = json_string(buffer_text(&out));
    return 0;
}

const struct ask_key ask_keys[] = {
    { "gpus", NULL, "N|0.5|N:TYPE", "GPUs; 0 for none, part of one, or of a model", read_gpus },
    { "gpu_ids", NULL, "LIST", "exactly these GPUs: 0,2-3 or gpu1:0,1;gpu2:0", read_gpu_ids },
    { "gpu_allow", NULL, "LIST", "only GPUs with these numbers: 0-3,5", read_gpu_allow },
    { "gpu_model", "model", "TYPE", "only GPUs of this model: h200, or a100|h100", read_text },
    { "gpu_mem", "mem", "SIZE", "memory on each GPU, which can then be shared: 8G", read_size },
    { "cpus", NULL, "N", "CPUs per node: 8, 2.5", read_cpus },
    { "memory", "ram", "SIZE", "host memory per node: 64G", read_size },
    { "nodes", NULL, "N", "exact number of nodes", read_nodes },
    { "gpus_per_node", NULL, "N", "GPUs per node", read_gpus_per_node },
    { "time_limit", "time", "TIME", "time limit: 90m, 4h, 2-00:00:00", read_duration },
    { "priority", NULL, "N", "priority, higher runs first", read_priority },
    { "name", NULL, "NAME", "job name", read_name },
    { "after", NULL, "JOB[:ok|any|fail],...", "start after these jobs have ended", read_after },
    { "begin", NULL, "TIME", "earliest start: 18:00, 'Fri 18:00', +2h", read_when },
    { "deadline", NULL, "TIME", "give up if not started by then", read_when },
    { "array", NULL, "LIST", "elements: 0-99, 0-99:2, 0-99%8", read_array },
    { "cancel_if_never", NULL, "yes|no", "end the job if its dependency can never be satisfied", read_flag },
    { "preemptible", NULL, "yes|no", "yield to other jobs", read_flag },
    { "idle_timeout", NULL, "TIME", "end the job if it leaves its GPUs unused for this long: 30m",
        read_duration },
    { "idle_ok", NULL, "yes|no", "exempt from idle handling", read_flag },
    { "tty_idle", NULL, "TIME", "end the job if its terminal is unused for this long: 30m", read_duration },
    { "warn_signal", "signal", "SIGNAL[@TIME]", "signal before the time limit: USR1@60", read_warn_signal },
    { "grace", NULL, "TIME", "time between SIGTERM and SIGKILL when it is ended", read_duration },
    { "checkpoint", NULL, "yes|no", "save work on request, and report CHECKPOINTED", read_flag },
    { "requeue_on_timeout", NULL, "yes|no", "requeue at the time limit", read_flag },
    { "requeue_on_node_lost", NULL, "yes|no", "requeue if the node is lost", read_flag },
    { "max_requeues", NULL, "N", "maximum requeues at the time limit, and after lost nodes", read_requeues },
    { "retry", NULL, "N", "number of retries after failures", read_retry },
    { "retry_on", NULL, "LIST", "also retry after these exit codes: 75,137", read_codes },
    { "notify", NULL, "TARGET", "notify: mail, mail:ADDRESS, a URL, or a command", read_notify },
    { "notify_on", NULL, "EVENTS", "events to notify of: start,end,fail,requeue,preempt", read_notify_on },
    { 0 },
};

const struct ask_key *ask_find(const char *name)
{
    for (const struct ask_key *row = ask_keys; row->key != NULL; row++)
        if (strcmp(row->key, name) == 0 || text_equal(row->alias, name))
            return row;
    return NULL;
}

/* The number in the largest of the units that divides it. */
static char *in_units(int64_t value, const int64_t *units, const char *const *names)
{
    size_t i = 0;
    while (units[i] > 1 && value % units[i] != 0)
        i++;
    return xasprintf("%" PRId64 "%s", value / units[i], names[i]);
}

char *ask_text(const char *key, const json_t *request)
{
    static const int64_t sizes[] = { INT64_C(1) << 30, INT64_C(1) << 20, INT64_C(1) << 10, 1 };
    static const char *const size_names[] = { "G", "M", "K", "B" };
    static const int64_t times[] = { 3600, 60, 1 };
    static const char *const time_names[] = { "h", "m", "s" };
    const struct ask_key *row = ask_find(key);
    int64_t value = field_integer(request, key, 0);
    if (row != NULL && value > 0 && row->read == read_size)
        return in_units(value, sizes, size_names);
    if (row != NULL && value > 0 && row->read == read_duration)
        return in_units(value, times, time_names);
    return field_shown(request, key);
}

int ask_set(json_t *request, struct client *client, const char *key, const char *what, const char *text,
    struct error *err)
{
    json_t *value = NULL;
    int r = ask_find(key)->read(client, what, text, &value, err);
    if (r < 0)
        return r;
    (void)json_object_set_new(request, key, value);
    return 0;
}

/* Options that say nothing without a GPU. */
static int check_no_gpu(const json_t *request, struct error *err)
{
    static const struct {
        const char *key, *option;
    } rows[] = { { "gpu_ids", "-G" }, { "gpu_mem", "-m" }, { "gpu_allow", "--gpu-allow" },
        { "gpus_per_node", "--gpus-per-node" }, { "idle_timeout", "--idle-timeout" },
        { "idle_ok", "--idle-ok" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_object_get(request, rows[i].key) != NULL)
            return error_set(err, -EINVAL, "%s has no effect with -g 0", rows[i].option);
    return 0;
}

/* Options that contradict -G, which says all about the GPUs. */
static int check_named_gpus(const json_t *request, struct error *err)
{
    static const struct {
        const char *key, *option;
    } rows[] = { { "gpu_allow", "--gpu-allow" }, { "gpu_model", "a model" }, { "nodes", "-N" },
        { "gpus_per_node", "--gpus-per-node" } };
    const json_t *gpus = json_object_get(request, "gpus");
    const char *ids = field_text(request, "gpu_ids");
    struct ask_gpu *named = NULL;
    size_t count = 0;
    int r = ids != NULL ? parse_gpu_ids(ids, &named, &count, err) : 0;
    ask_gpus_free(named, count);
    if (r < 0 || ids == NULL)
        return r;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_object_get(request, rows[i].key) != NULL)
            return error_set(err, -EINVAL, "%s cannot be combined with -G", rows[i].option);
    if (json_is_string(gpus))
        return error_set(err, -EINVAL, "a model cannot be combined with -G");
    if (!json_is_integer(gpus) || json_integer_value(gpus) == (json_int_t)count)
        return 0;
    (void)error_set(err, -EINVAL, "-G names %zu GPU%s, but -g requests %" JSON_INTEGER_FORMAT, count,
        count == 1 ? "" : "s", json_integer_value(gpus));
    return error_hint(err, "omit -g: -G implies it");
}

/* -N and --gpus-per-node together are a number of GPUs. */
static int settle_nodes(json_t *request, int64_t gpus, struct error *err)
{
    int64_t nodes = field_integer(request, "nodes", 1);
    int64_t each = field_integer(request, "gpus_per_node", 0);
    bool has_gpus = json_object_get(request, "gpus") != NULL || json_object_get(request, "gpu_ids") != NULL;
    if (each > 0 && !has_gpus) {
        if (nodes * each > ASK_GPUS_MAX)
            return error_set(err, -ERANGE,
                "%" PRId64 " nodes with %" PRId64 " GPUs each are more than %u GPUs", nodes, each,
                ASK_GPUS_MAX);
        return json_object_set_new(request, "gpus", json_integer(nodes * each));
    }
    if (each > 0 && gpus > 0 && nodes * each != gpus && json_object_get(request, "nodes") != NULL)
        return error_set(err, -EINVAL,
            "-g %" PRId64 " contradicts -N %" PRId64 " with --gpus-per-node %" PRId64 ", which are %" PRId64
            " GPUs",
            gpus, nodes, each, nodes * each);
    if (each > 0 && gpus % each != 0)
        return error_set(
            err, -EINVAL, "-g %" PRId64 " cannot be divided into %" PRId64 " GPUs a node", gpus, each);
    bool is_short = nodes > 1 && gpus > 0 && gpus < nodes && json_object_get(request, "gpu_ids") == NULL;
    if (!is_short)
        return 0;
    (void)error_set(err, -EINVAL, "-N %" PRId64 " needs a GPU on each node, but -g is %" PRId64, nodes, gpus);
    return error_hint(err, "-g %" PRId64 ", or --gpus-per-node 1, or -g 0 for no GPU", nodes);
}

int ask_settle(json_t *request, struct error *err)
{
    const json_t *gpus = json_object_get(request, "gpus");
    const char *begin = field_text(request, "begin"), *deadline = field_text(request, "deadline");
    bool is_none = json_is_integer(gpus) && json_integer_value(gpus) == 0;
    int64_t count = 1;
    if (json_is_string(gpus))
        count = strtoll(json_string_value(gpus), NULL, 10);
    else if (json_is_integer(gpus))
        count = json_integer_value(gpus);
    int r = is_none ? check_no_gpu(request, err) : 0;
    if (r < 0)
        return r;
    r = check_named_gpus(request, err);
    if (r < 0)
        return r;
    if (json_is_real(gpus) && json_object_get(request, "nodes") != NULL &&
        field_integer(request, "nodes", 1) > 1)
        return error_set(err, -EINVAL, "-g %g is a part of a single GPU on one node", json_real_value(gpus));
    /* Both are UTC in the same form, so that they compare as text. */
    if (begin != NULL && deadline != NULL && strcmp(deadline, begin) <= 0)
        return error_set(err, -EINVAL, "--deadline is not after --begin, so the job could never start");
    return settle_nodes(request, count, err);
}
