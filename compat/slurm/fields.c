/* SPDX-License-Identifier: MIT */
#include "compat/slurm/fields.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/state.h"
#include "compat/slurm/steps.h"
#include "job/array.h"
#include "job/slurm.h"

#define SUBMIT_LINE_SHOWN 512 // bytes
#define MINUTE_S          60
#define HOUR_S            3600
#define MILLI             1000
#define SHOWN_MAX         4096

#define PRIORITY_FIRST INT64_C(4294901760)
#define PRIORITY_ONE   4294967296.0

#define TEXT(name) char *slurm_text_##name(const json_t *job, int64_t now_ms)

/* --- forms --- */

void slurm_print_cell(const char *text, int width)
{
    if (width == 0)
        (void)fputs(text, stdout);
    else if (width > 0)
        (void)printf("%-*.*s", width, width, text);
    else
        (void)printf("%*.*s", -width, -width, text);
}

static char *shown(const json_t *job, const char *key, const char *otherwise)
{
    const char *text = field_text(job, key);
    return text == NULL ? xstrdup(otherwise) : text_escape(text, SHOWN_MAX);
}

static char *noted(const json_t *job, const char *note, const char *otherwise)
{
    const char *text = slurm_job_note(job, note);
    return text == NULL ? xstrdup(otherwise) : text_escape(text, SHOWN_MAX);
}

static char *number(int64_t value)
{
    return xasprintf("%" PRId64, value);
}

static bool is_waiting(const json_t *job)
{
    return field_is(job, "state", "queued");
}

/* --- identity --- */

#define ARRAY_STEP_SPAN 10 // a step is shown as one if the list spans more
#define ARRAY_LIST_BYTES                                                                                     \
    64 // length of a list in Slurm, with its NUL, unless SLURM_BITSTR_LEN is set; 0: unlimited

static void cut_list(struct buffer *list)
{
    const char *text = getenv("SLURM_BITSTR_LEN");
    int64_t most = ARRAY_LIST_BYTES;
    if (text != NULL)
        (void)parse_integer(text, "SLURM_BITSTR_LEN", 0, INT32_MAX, &most, NULL);
    if (most < 4 || list->length < (size_t)most)
        return;
    list->length = (size_t)most - 4;
    buffer_append_text(list, "...");
}

/* "0-4:2" as "0,2,4", without the limit of tasks. Slurm lists the elements of a range with a step, unless it
 * is the whole of a long list, and cuts a list that is too long. */
static char *plain_list(const char *text)
{
    struct array all = { 0 };
    struct buffer out = { 0 };
    _cleanup_free_ char *list = text != NULL ? xstrndup(text, strcspn(text, "%")) : NULL;
    if (text == NULL || parse_array(list, &all, NULL) < 0)
        return take_ptr(list);
    bool is_whole = all.count == 1 && all.ranges[0].last - all.ranges[0].first > ARRAY_STEP_SPAN;
    for (size_t i = 0; !is_whole && i < all.count; i++) {
        const char *comma = i > 0 ? "," : "";
        uint64_t first = all.ranges[i].first, last = all.ranges[i].last, step = all.ranges[i].step;
        if (step <= 1 && last > first)
            buffer_printf(&out, "%s%" PRIu64 "-%" PRIu64, comma, first, last);
        for (uint64_t k = first; (step > 1 || last == first) && k <= last; k += step > 0 ? step : 1)
            buffer_printf(&out, "%s%" PRIu64, k > first ? "," : comma, k);
    }
    array_clear(&all);
    if (is_whole)
        return take_ptr(list);
    cut_list(&out);
    return buffer_take(&out);
}

static char *job_id_text(const json_t *job)
{
    _cleanup_free_ char *plain = plain_list(field_text(job, "array_left"));
    const char *left = plain, *array = field_text(job, "array");
    if (field_is_known(job, "array_job"))
        return xasprintf(
            "%" PRId64 "_%" PRId64, field_integer(job, "array_job", 0), field_integer(job, "array_index", 0));
    if (left == NULL)
        return number(field_integer(job, "id", 0));
    if (left[0] == '\0' && array != NULL) { // cancelled before it began
        _cleanup_free_ char *whole = plain_list(array);
        return xasprintf("%" PRId64 "_[%s]", field_integer(job, "id", 0), whole);
    }
    const char *limit = array != NULL ? strchr(array, '%') : NULL;
    return xasprintf("%" PRId64 "_[%s%s]", field_integer(job, "id", 0), left, limit != NULL ? limit : "");
}

/* "12.0" for a step. */
static char *add_step(char *id, const json_t *job)
{
    _cleanup_free_ char *owned = id;
    const char *step = field_text(job, SLURM_STEP_WORD);
    return step != NULL ? xasprintf("%s.%s", owned, step) : take_ptr(owned);
}

FIELD(job_id, add_step(job_id_text(job), job))
FIELD(raw_id, add_step(number(field_integer(job, "id", 0)), job))
FIELD(array_job_id, number(field_integer(job, "array_job", field_integer(job, "id", 0))))

TEXT(array_task_id)
{
    if (field_is_known(job, "array_job"))
        return number(field_integer(job, "array_index", 0));
    if (!field_is_known(job, "array_left"))
        return xstrdup("N/A");
    const char *all = field_text(job, "array"), *percent = all != NULL ? strchr(all, '%') : NULL;
    bool is_whole = field_is(job, "array_left", "") && all != NULL; // cancelled before it began
    _cleanup_free_ char *left = plain_list(is_whole ? all : field_text(job, "array_left"));
    return xasprintf("%s%s", left, percent != NULL ? percent : "");
}

FIELD(name, shown(job, "name", ""))
FIELD(user, shown(job, "user", ""))
FIELD(uid, number(field_integer(job, "uid", 0)))

TEXT(group)
{
    const struct passwd *user = getpwuid((uid_t)field_integer(job, "uid", 0));
    const struct group *group = user != NULL ? getgrgid(user->pw_gid) : NULL;
    return xstrdup(group != NULL ? group->gr_name : "nogroup");
}

FIELD(partition, shown(job, "partition", SLURM_PARTITION))
FIELD(account, noted(job, SLURM_NOTE_ACCOUNT, "default"))
FIELD(qos, noted(job, SLURM_NOTE_QOS, "normal"))
FIELD(comment, noted(job, SLURM_NOTE_COMMENT, ""))

TEXT(submit_line)
{
    const char *line = slurm_job_note(job, SLURM_NOTE_LINE);
    return line != NULL ? text_escape(line, SUBMIT_LINE_SHOWN) : shown(job, "command", "");
}

/* A script that does not come from a file has no name. */
TEXT(command)
{
    char *text = shown(job, "command", "");
    const char *slash = strrchr(text, '/');
    if (slash == NULL || strcmp(slash, "/slurm_script") != 0)
        return text;
    free(text);
    return xstrdup("(null)");
}

FIELD(directory, shown(job, "cwd", ""))
FIELD(output, shown(job, "log", ""))
FIELD(cluster, xstrdup("mgpu"))
FIELD(none, xstrdup(""))
FIELD(null, xstrdup("(null)"))
FIELD(zero, xstrdup("0"))
FIELD(unavailable, xstrdup("N/A"))
FIELD(star, xstrdup("*"))
FIELD(excluded, shown(job, "exclude", ""))
FIELD(requested_nodes, shown(job, "nodelist", ""))

TEXT(gid)
{
    const struct passwd *user = getpwuid((uid_t)field_integer(job, "uid", 0));
    return number(user != NULL ? (int64_t)user->pw_gid : 0);
}

FIELD(licenses, noted(job, "licenses", "(null)"))
FIELD(wckey, noted(job, "wckey", "(null)"))

TEXT(oversubscribe)
{
    bool is_alone = json_is_true(json_object_get(job, "exclusive"));
    return xstrdup(is_alone ? "NO" : slurm_job_note(job, "oversubscribe") != NULL ? "YES" : "OK");
}

FIELD(requeue, xstrdup(json_is_true(json_object_get(job, "requeue_on_node_lost")) ? "1" : "0"))

TEXT(batch)
{
    const char *kind = slurm_job_note(job, SLURM_NOTE_KIND);
    return xstrdup(kind != NULL && strcmp(kind, "sbatch") == 0 ? "1" : "0");
}

FIELD(task_cpus, noted(job, SLURM_NOTE_CPUS_PER_TASK, "N/A"))
FIELD(tasks_per_node, noted(job, SLURM_NOTE_TASKS_PER_NODE, "N/A"))

/* --- states --- */

FIELD(state, xstrdup(slurm_state_of(job)->name))
FIELD(compact_state, xstrdup(slurm_state_of(job)->compact))

TEXT(account_state)
{
    const char *name = slurm_state_of(job)->name, *by = field_text(job, "stopped_by");
    const struct passwd *user = by != NULL ? getpwnam(by) : NULL;
    if (strcmp(name, "CANCELLED") != 0 || by == NULL)
        return xstrdup(name);
    return user != NULL ? xasprintf("%s by %u", name, user->pw_uid) : xasprintf("%s by %s", name, by);
}

FIELD(reason, xstrdup(slurm_reason_of(job)))

TEXT(exit)
{
    int code = 0, signal = 0;
    slurm_exit_of(job, &code, &signal);
    return xasprintf("%d:%d", code, signal);
}

/* A job without steps has zero, and steps have none. */
TEXT(derived_exit)
{
    const char *text = field_text(job, SLURM_DERIVED);
    return xstrdup(field_is_known(job, SLURM_STEP_WORD) ? "" : text != NULL ? text : "0:0");
}

/* sacct shows codes from 128 on as those of a signal. */
TEXT(account_exit)
{
    int code = 0, signal = 0;
    slurm_exit_of(job, &code, &signal);
    return xasprintf("%d:%d", code >= 128 ? code - 128 : code, signal);
}

/* --- order --- */

/* As in Slurm's priority/basic: the order of submission, minus Nice. It is 0 for a held job, and never for
 * others. */
static int64_t priority_of(const json_t *job)
{
    int64_t order = PRIORITY_FIRST - field_integer(job, "id", 0) + field_integer(job, "priority", 0);
    bool is_held = is_waiting(job) && field_text(job, "hold") != NULL;
    return is_held ? 0 : order < 1 ? 1 : order;
}

FIELD(priority, number(priority_of(job)))

/* The same from 0 to 1. */
FIELD(priority_part, xasprintf("%.14f", (double)priority_of(job) / PRIORITY_ONE))
FIELD(nice, number(-field_integer(job, "priority", 0)))

/* "41:ok,42:start+10m" as "afterok:41(unfulfilled),after:42+10(unfulfilled)". */
TEXT(dependency)
{
    static const char *const kinds[][2] = { { "ok", "afterok" }, { "any", "afterany" },
        { "fail", "afternotok" }, { "start", "after" }, { "corr", "aftercorr" } };
    _cleanup_buffer_ struct buffer out = { 0 };
    const char *shown = field_text(job, "after_shown"),
               *after = shown != NULL ? shown : field_text(job, "after");
    _cleanup_free_ char *copy = after != NULL && is_waiting(job) ? xstrdup(after) : NULL;
    const char *separator = copy != NULL && strchr(copy, '?') != NULL ? "?" : ",";
    char *rest = copy;
    for (char *one = NULL; rest != NULL && (one = strsep(&rest, separator)) != NULL;) {
        char *colon = strchr(one, ':');
        const char *kind = colon != NULL ? colon + 1 : "ok";
        char *plus = colon != NULL ? strchr(colon, '+') : NULL;
        int64_t delay_ms = 0;
        if (colon != NULL)
            *colon = '\0';
        if (strchr(one, '.') != NULL)
            *strchr(one, '.') = '_';
        if (plus != NULL && parse_duration(plus + 1, "", &delay_ms, NULL) == 0)
            *plus = '\0';
        _cleanup_free_ char *minutes =
            delay_ms > 0 ? xasprintf("+%" PRId64, delay_ms / (MINUTE_S * MILLI)) : xstrdup("");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
            if (strcmp(kind, kinds[i][0]) == 0)
                buffer_printf(&out, "%s%s:%s%s(unfulfilled)", out.length > 0 ? separator : "", kinds[i][1],
                    one, minutes);
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("(null)");
}

FIELD(restarts, number(field_integer(job, "restarts", 0) + field_integer(job, "preemptions", 0)))

/* --- usage --- */

static char *size(const json_t *job, const char *member)
{
    int64_t bytes = field_integer(job, member, 0);
    return bytes > 0 ? xasprintf("%" PRId64 "K", bytes >> 10) : xstrdup("");
}

FIELD(max_rss, size(job, "max_rss_bytes"))

/* For a step; the average of a single process is its own value. */
FIELD(ave_rss, size(job, field_is_known(job, "ave_rss_bytes") ? "ave_rss_bytes" : "max_rss_bytes"))
FIELD(max_rss_task,
    field_is_known(job, "max_rss_task") ? number(field_integer(job, "max_rss_task", 0)) : xstrdup(""))

/* The node of that task: tasks of a node have consecutive numbers. */
TEXT(max_rss_node)
{
    int64_t task = field_integer(job, "max_rss_task", -1);
    size_t index = 0;
    const json_t *rank = NULL;
    json_array_foreach(json_object_get(job, "ranks"), index, rank)
    {
        int64_t tasks = field_integer(rank, "tasks", 0);
        if (task >= 0 && task < tasks)
            return xstrdup(field_text(rank, "node"));
        task -= tasks;
    }
    return xstrdup("");
}

/* "01:02.345", and above an hour "02:01:02". */
static char *cpu_text(const json_t *job, const char *member)
{
    if (!field_is_known(job, member))
        return xstrdup("");
    int64_t ms = (int64_t)(field_number(job, member, 0) * 1000);
    if (ms >= HOUR_S * INT64_C(1000))
        return slurm_duration_text(ms / 1000, true);
    return xasprintf("%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms / 60000, ms / 1000 % 60, ms % 1000);
}

FIELD(total_cpu, cpu_text(job, "cpu_seconds"))
FIELD(user_cpu, cpu_text(job, "user_cpu_seconds"))
FIELD(system_cpu, cpu_text(job, "system_cpu_seconds"))

/* For each task. */
TEXT(ave_cpu)
{
    int64_t tasks = field_integer(job, SLURM_STEP_TASKS, 1);
    double seconds = 0;
    return field_measured(job, "cpu_seconds", &seconds)
               ? slurm_duration_text((int64_t)(seconds / (double)(tasks > 0 ? tasks : 1)), true)
               : xstrdup("");
}
