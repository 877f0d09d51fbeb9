/* SPDX-License-Identifier: MIT */
/*
 * Values are converted to the API's form without a clock or time zone: bytes, seconds, RFC 3339 in UTC, job
 * numbers. What only mgpud can check (whether a GPU exists, the syntax of arrays) is left to it.
 */
#include "cli/options/ask.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/options/ask_job.h"
#include "cli/term/when.h"
#include "job/after.h"
#include "job/array.h"
#include "job/ask.h"
#include "job/gpu_oom.h"
#include "job/notify.h"
#include "job/share.h"

#define THOUSANDTHS 1000
#define NUMBER_MAX  1000000000 // of GPUs or CPUs, far above what any limit allows
#define FRACTION    "a part of a GPU is 0.001 to 0.999, such as -g 0.5; several GPUs must be whole: -g 2"

/* A number with at most three decimals, as thousandths; -1 when it is none. A larger one is read as
 * NUMBER_MAX. */
static int64_t read_thousandths(const char *text, const char **ret_end)
{
    char *end = NULL;
    int64_t value = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    if (value < 0)
        return -1;
    value = (value < NUMBER_MAX ? value : NUMBER_MAX) * THOUSANDTHS;
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

/* "1g.18gb" or "1c.3g.71gb": the profile of a MIG instance, which begins with a digit too. */
static bool is_profile(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && (text[digits] == 'g' || text[digits] == 'c') && text[digits + 1] == '.';
}

/* "1g.18gb", "1g.18gb:2" and "h200:2" with the number in front, as the API has it; NULL: the text is none of
 * these. The caller frees it. */
static char *turn_gpus(const char *text)
{
    const char *colon = strrchr(text, ':');
    bool is_model = is_profile(text) || isalpha((unsigned char)text[0]);
    if (is_profile(text) && colon == NULL)
        return xasprintf("1:%s", text);
    if (!is_model || colon == NULL || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
        return NULL;
    return xasprintf("%s:%.*s", colon + 1, (int)(colon - text), text);
}

/* "2", "0.5", "2:h200" or "1g.18gb:2". */
static int read_gpus(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_free_ char *turned = turn_gpus(typed->text);
    const char *text = turned != NULL ? turned : typed->text, *end = text;
    int64_t thousandths = read_thousandths(text, &end);
    if (thousandths < 0 || (*end != '\0' && *end != ':'))
        return refuse_gpus(typed->what, text, err);
    bool is_whole = thousandths % THOUSANDTHS == 0;
    if (!is_whole && thousandths > THOUSANDTHS)
        return refuse_gpus(typed->what, text, err);
    if (is_whole && (thousandths / THOUSANDTHS > ASK_GPUS_MAX))
        return error_set(err, -ERANGE, "%s: %.60s is outside 0 to %u", typed->what, text, ASK_GPUS_MAX);
    if (*end == ':' && end[1] == '\0')
        return error_set(err, -EINVAL, "%s: '%.60s' has no model after the colon", typed->what, text);
    if (*end == ':' && thousandths == 0)
        return error_set(err, -EINVAL, "%s: '%.60s' names a model, but no GPU", typed->what, text);
    *ret = *end == ':' ? json_string(text) : make_number(thousandths);
    return *ret == NULL ? error_set(err, -EINVAL, "%s: the model is not UTF-8 text", typed->what) : 0;
}

static int read_text(const struct ask_value *typed, json_t **ret, struct error *err)
{
    if (typed->text[0] == '\0')
        return error_set(err, -EINVAL, "%s: the value is empty", typed->what);
    *ret = json_string(typed->text);
    return *ret == NULL ? error_set(err, -EINVAL, "%s: the value is not UTF-8 text", typed->what) : 0;
}

/* "gpu[1-3],big" with all names. */
static int read_node_names(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_buffer_ struct buffer out = { 0 };
    int r = hostlist_expand_once(typed->text, &names, err);
    if (r < 0)
        return error_wrap(err, "%s", typed->what);
    for (size_t i = 0; i < names.count; i++)
        buffer_printf(&out, "%s%s", i > 0 ? "," : "", names.items[i]);
    struct ask_value all = *typed;
    all.text = buffer_text(&out);
    return read_text(&all, ret, err);
}

/* One that commands would take for a number, a range or the newest job could not be used instead of them. */
static int read_name(const struct ask_value *typed, json_t **ret, struct error *err)
{
    bool is_number = typed->text[0] != '\0' && typed->text[strspn(typed->text, "0123456789.-")] == '\0';
    if (!is_number && strcmp(typed->text, "@") != 0)
        return read_text(typed, ret, err);
    _cleanup_free_ char *shown = text_escape(typed->text, 40);
    (void)error_set(
        err, -EINVAL, "%s: '%s' is not a valid name: it looks like a job number", typed->what, shown);
    return error_hint(
        err, "a name needs at least one letter, such as run-%s", strcmp(typed->text, "@") == 0 ? "1" : shown);
}

static int read_gpu_ids(const struct ask_value *typed, json_t **ret, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    int r = parse_gpu_ids(typed->text, &gpus, &count, err);
    if (r < 0)
        return name_option("gpu_ids", typed->what, err);
    ask_gpus_free(gpus, count);
    return read_text(typed, ret, err);
}

static int read_gpu_allow(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    int r = parse_id_list(typed->text, typed->what, ASK_GPU_INDEX_MAX, &ids, &count, err);
    return r < 0 ? r : read_text(typed, ret, err);
}

static int read_size(const struct ask_value *typed, json_t **ret, struct error *err)
{
    uint64_t bytes = 0;
    int r = parse_size(typed->text, typed->what, &bytes, err);
    if (r == 0)
        *ret = json_integer((json_int_t)bytes);
    return r;
}

static int read_number(const struct ask_value *typed, json_t **ret, struct error *err)
{
    int64_t value = 0;
    int r = parse_integer(typed->text, typed->what, typed->key->least, typed->key->most, &value, err);
    if (r == 0)
        *ret = json_integer(value);
    return r;
}

static int read_retry_oom(const struct ask_value *typed, json_t **ret, struct error *err)
{
    struct gpu_oom_retry retry;
    int r = gpu_oom_parse_retry(typed->text, &retry, err);
    return r < 0 ? name_option("retry_oom", typed->what, err) : read_text(typed, ret, err);
}

/* "auto" is settled before the request is sent (cli/submit/gpu_peak.h). */
static int read_gpu_mem(const struct ask_value *typed, json_t **ret, struct error *err)
{
    return strcmp(typed->text, "auto") == 0 ? read_text(typed, ret, err) : read_size(typed, ret, err);
}

static int read_share(const struct ask_value *typed, json_t **ret, struct error *err)
{
    if (share_kind_from_name(typed->text) != SHARE_KINDS)
        return read_text(typed, ret, err);
    (void)error_set(err, -EINVAL, "%s: '%.40s' is not " SHARE_NAMES, typed->what, typed->text);
    return error_hint(err, "%s",
        strcmp(typed->text, "mig") == 0 ? "a MIG instance counts as a GPU: request it as one"
                                        : "auto uses the strongest that works on the node");
}

static int read_warn_signal(const struct ask_value *typed, json_t **ret, struct error *err)
{
    int signal = 0;
    int64_t before_ms = 0;
    int r = parse_warn_signal(typed->text, &signal, &before_ms, err);
    return r < 0 ? name_option("warn_signal", typed->what, err) : read_text(typed, ret, err);
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
static int read_notify(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *list = json_array();
    _cleanup_strings_ struct strings parts = { 0 };
    _cleanup_free_ char *copy = xstrdup(typed->text);
    char *rest = copy;
    bool is_list = true;
    for (char *part = NULL; (part = strsep(&rest, ",")) != NULL;) {
        is_list = is_list && !is_command(part);
        strings_add(&parts, part);
    }
    int r = is_list ? 0 : add_target(list, typed->what, typed->text, err);
    for (size_t i = 0; is_list && r == 0 && i < parts.count; i++)
        r = add_target(list, typed->what, parts.items[i], err);
    if (r == 0)
        *ret = take_ptr(list);
    return r;
}

static int read_notify_on(const struct ask_value *typed, json_t **ret, struct error *err)
{
    uint32_t events = 0;
    int r = parse_notify_on(typed->text, &events, err);
    return r < 0 ? name_option("notify_on", typed->what, err) : read_text(typed, ret, err);
}

static int read_codes(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_free_ uint32_t *codes = NULL;
    size_t count = 0;
    int r = parse_id_list(typed->text, typed->what, 255, &codes, &count, err);
    return r < 0 ? r : read_text(typed, ret, err);
}

static int read_cpus(const struct ask_value *typed, json_t **ret, struct error *err)
{
    const char *end = typed->text;
    int64_t thousandths = read_thousandths(typed->text, &end);
    if (thousandths < 0 || *end != '\0')
        return error_set(
            err, -EINVAL, "%s: '%.60s' is not a number of CPUs, such as 4 or 2.5", typed->what, typed->text);
    if (thousandths == 0 || thousandths > (int64_t)ASK_CPUS_MAX * THOUSANDTHS)
        return error_set(
            err, -ERANGE, "%s: %.60s is outside 0.001 to %u", typed->what, typed->text, ASK_CPUS_MAX);
    *ret = make_number(thousandths);
    return 0;
}

/* Seconds, or text for the server when they are no whole number. */
static int read_duration(const struct ask_value *typed, json_t **ret, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(typed->text, typed->what, &ms, err);
    if (r < 0)
        return r;
    if (ms == 0)
        return error_set(
            err, -ERANGE, "%s: %.60s is too short; the shortest time is 1ms", typed->what, typed->text);
    if (ms % 1000 == 0) {
        *ret = json_integer(ms / 1000);
        return 0;
    }
    _cleanup_free_ char *exact = xasprintf("%" PRId64 "ms", ms);
    *ret = json_string(exact);
    return 0;
}

static int read_time_limit(const struct ask_value *typed, json_t **ret, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(typed->text, typed->what, &ms, err);
    if (r == 0 && ms == 0)
        r = error_set(err, -ERANGE, "%s: a limit of %.60s leaves no time to run", typed->what, typed->text);
    return r < 0 ? r : read_duration(typed, ret, err);
}

static int read_when(const struct ask_value *typed, json_t **ret, struct error *err)
{
    char utc[64];
    int64_t ms = 0;
    int r = when_parse(typed->text, typed->what, clock_wall_ms(), &when_local, &ms, err);
    if (r < 0)
        return r;
    utc_format(ms, utc, sizeof(utc));
    *ret = json_string(utc);
    return 0;
}

static int read_flag(const struct ask_value *typed, json_t **ret, struct error *err)
{
    static const char *const words[2][3] = { { "no", "false", "0" }, { "yes", "true", "1" } };
    for (int value = 0; value < 2; value++)
        for (size_t i = 0; i < 3; i++)
            if (strcmp(typed->text, words[value][i]) == 0) {
                *ret = json_boolean(value);
                return 0;
            }
    return error_set(err, -EINVAL, "%s: '%.60s' is not yes or no", typed->what, typed->text);
}

static int read_array(const struct ask_value *typed, json_t **ret, struct error *err)
{
    struct array array = { 0 };
    int r = parse_array(typed->text, &array, err);
    if (r < 0)
        return name_option("array", typed->what, err);
    array_clear(&array);
    return read_text(typed, ret, err);
}

/* "41:ok,train:any" with numbers instead of names. */
static int read_after(const struct ask_value *typed, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_strings_ struct strings listed = { 0 };
    _cleanup_free_ char *copy = xstrdup(typed->text);
    const char *separator = strchr(typed->text, '?') != NULL && strchr(typed->text, ',') == NULL ? "?" : ",";
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, separator)) != NULL;) {
        int64_t id = 0;
        if (strcmp(word, AFTER_SINGLETON) == 0) {
            buffer_printf(&out, "%s%s", out.length > 0 ? separator : "", word);
            continue;
        }
        char *colon = strrchr(word, ':');
        const char *kind = colon == NULL ? "ok" : colon + 1;
        if (colon != NULL)
            *colon = '\0';
        bool is_array = false;
        int r = ask_find_job(typed->client, typed->what, word, &id, &is_array, err);
        if (r < 0)
            return r;
        _cleanup_free_ char *number = xasprintf("%" PRId64, id);
        if (is_array && strings_have(&listed, number))
            continue; // after another element of it
        strings_add(&listed, number);
        buffer_printf(&out, "%s%" PRId64 ":%s", out.length > 0 ? separator : "", id, kind);
    }
    struct ask_after *jobs = NULL;
    size_t count = 0;
    int r = parse_after(buffer_text(&out), &jobs, &count, err);
    if (r < 0)
        return name_option("after", typed->what, err);
    free(jobs);
    *ret = json_string(buffer_text(&out));
    return 0;
}

/* For keys that are typed in a special form. The others are read as their kind is. */
static const struct ask_key forms[] = {
    { "name", NULL, "NAME", "job name", read_name },
    { "gpus", NULL, "N|0.5|N:TYPE", "GPUs; 0 for none, part of one, or of a model", read_gpus },
    { "gpu_ids", NULL, "LIST", NULL, read_gpu_ids },
    { "gpu_share", NULL, NULL, NULL, NULL }, // by gpus
    { "gpu_allow", NULL, "LIST", NULL, read_gpu_allow },
    { "gpu_model", "model", "TYPE", NULL, read_text },
    { "gpu_mem", "mem", "SIZE", NULL, read_gpu_mem },
    { "memory", "ram", "SIZE", NULL, read_size },
    { "nodes", NULL, "N", NULL, read_number, 1, ASK_NODES_MAX },
    { "gpus_per_node", NULL, "N", NULL, read_number, 1, ASK_GPUS_MAX },
    { "time_limit", "time", "TIME", NULL, read_time_limit },
    { "priority", NULL, "N", NULL, read_number, -ASK_PRIORITY_MAX, ASK_PRIORITY_MAX },
    { "after", NULL, "JOB[:ok|any|fail|start[+TIME]|corr],...", "start after these jobs have ended",
        read_after },
    { "begin", NULL, "TIME", "earliest start: 18:00, 'Fri 18:00', +2h", read_when },
    { "array", NULL, "LIST", NULL, read_array },
    { "warn_signal", "signal", "SIGNAL[@TIME]", NULL, read_warn_signal },
    { "max_requeues", NULL, "N", NULL, read_number, 1, ASK_REQUEUES_MAX },
    { "retry", NULL, "N", NULL, read_number, 0, ASK_RETRY_MAX },
    { "retry_on", NULL, "LIST", NULL, read_codes },
    { "share", NULL, "KIND", NULL, read_share },
    { "retry_oom", NULL, "FACTOR[,max=SIZE]", NULL, read_retry_oom },
    { "notify", NULL, "TARGET", NULL, read_notify },
    { "notify_on", NULL, "EVENTS", NULL, read_notify_on },
    { "nodelist", NULL, "NODE[,NODE]", NULL, read_node_names },
    { "exclude", NULL, "NODE[,NODE]", NULL, read_node_names },
    { "slurm", NULL, NULL, NULL, NULL },       // by the commands of Slurm
    { "adopted_pid", NULL, NULL, NULL, NULL }, // these three: by adopt
    { "adopted_start", NULL, NULL, NULL, NULL },
    { "adopted_boot", NULL, NULL, NULL, NULL },
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

static const struct ask_key by_kind[RECORD_LIST + 1] = {
    [RECORD_BOOL] = { .argument = "yes|no", .read = read_flag },
    [RECORD_U32] = { .argument = "N", .read = read_number, .most = UINT32_MAX },
    [RECORD_SIZE] = { .argument = "SIZE", .read = read_size },
    [RECORD_MILLI] = { .argument = "N", .read = read_cpus },
    [RECORD_DURATION] = { .argument = "TIME", .read = read_duration },
    [RECORD_TIME] = { .argument = "TIME", .read = read_when },
    [RECORD_STRING] = { .argument = "TEXT", .read = read_text },
};

static struct ask_key key_of(const struct record_field *field)
{
    struct ask_key key = by_kind[field->kind];
    for (size_t i = 0; i < FORMS; i++)
        if (strcmp(forms[i].key, field->name) == 0)
            key = forms[i];
    key.key = field->name;
    if (key.help == NULL)
        key.help = field->help;
    return key;
}

bool ask_key(size_t i, struct ask_key *ret)
{
    if (i == 0) {
        *ret = forms[0]; // the name is no part of what a job asks for
        return true;
    }
    for (size_t f = 0, found = 0; f < job_ask_record.n_fields; f++) {
        *ret = key_of(&job_ask_record.fields[f]);
        if (ret->read != NULL && ++found == i)
            return true;
    }
    return false;
}

bool ask_find(const char *name, struct ask_key *ret)
{
    for (size_t i = 0; i < FORMS; i++)
        if (text_equal(forms[i].alias, name))
            name = forms[i].key;
    *ret = forms[0];
    if (strcmp(name, ret->key) == 0)
        return true;
    for (size_t f = 0; f < job_ask_record.n_fields; f++)
        if (strcmp(job_ask_record.fields[f].name, name) == 0) {
            *ret = key_of(&job_ask_record.fields[f]);
            return ret->read != NULL;
        }
    return false;
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
    struct ask_key row = { 0 };
    int64_t value = field_integer(request, key, 0);
    bool is_known = ask_find(key, &row);
    if (is_known && value > 0 && (row.read == read_size || row.read == read_gpu_mem))
        return in_units(value, sizes, size_names);
    if (is_known && value > 0 && (row.read == read_duration || row.read == read_time_limit))
        return in_units(value, times, time_names);
    return field_shown(request, key);
}

int ask_set(json_t *request, struct client *client, const char *key, const char *what, const char *text,
    struct error *err)
{
    json_t *value = NULL;
    struct ask_key row;
    if (!ask_find(key, &row))
        return error_set(err, -EINVAL, "%s: there is no key '%s'", what, key);
    int r = row.read(&(struct ask_value){ &row, what, text, client }, &value, err);
    if (r < 0)
        return r;
    (void)json_object_set_new(request, key, value);
    return 0;
}
