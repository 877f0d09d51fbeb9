/* SPDX-License-Identifier: MIT */
/* A value that the driver does not provide is "-": missing is not zero. */
#include "cli/show/gpu_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/options/maintenance_text.h"
#include "cli/show/gpu_past.h"
#include "cli/show/job_columns.h"
#include "cli/show/node_unreachable_text.h"

#define BAR_WIDTH 16
#define GIB       (1024.0 * 1024 * 1024)

#define BAR_SCREEN_MIN  120 // a narrower screen has better uses for the space
#define PART_SCREEN_MIN 90

/* A bar in eighths of a character, as wide as its column; dots show its full width. */
static void append_bar(struct buffer *out, double part)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    unsigned filled = part <= 0 ? 0 : (unsigned)((part > 1 ? 1 : part) * BAR_WIDTH * 8 + 0.5);
    for (unsigned i = 0; i < BAR_WIDTH; i++) {
        unsigned here = filled > i * 8 ? filled - i * 8 : 0;
        buffer_append_text(out, here == 0 ? "·" : here >= 8 ? "█" : eighths[here]);
    }
    buffer_append_text(out, " ");
}

/* On a terminal, without words that are not needed to distinguish models. */
static char *render_model(const struct view *view, const json_t *gpu, enum color *color)
{
    static const char *const words[] = { "NVIDIA ", "GeForce ", "AMD ", "Instinct ", "Radeon " };
    char *text = field_shown(gpu, "model"), *rest = text;
    for (size_t i = 0; view->screen->is_tty && i < sizeof(words) / sizeof(words[0]); i++)
        if (strncmp(rest, words[i], strlen(words[i])) == 0 && rest[strlen(words[i])] != '\0')
            rest += strlen(words[i]);
    memmove(text, rest, strlen(rest) + 1);
    return text;
}

static char *render_utilization(const struct view *view, const json_t *gpu, enum color *color)
{
    struct buffer out = { 0 };
    double part = field_number(gpu, "utilization", 0);
    if (!field_is_known(gpu, "utilization"))
        return xstrdup("-");
    if (view->screen->is_tty && view->screen->is_utf8 && view->screen->width >= BAR_SCREEN_MIN)
        append_bar(&out, part);
    buffer_printf(&out, "%3.0f%%", part * 100);
    return buffer_take(&out);
}

static char *render_memory(const struct view *view, const json_t *gpu, enum color *color)
{
    double all = field_number(gpu, "memory_bytes", 0), used = field_number(gpu, "memory_used_bytes", 0);
    if (!field_is_known(gpu, "memory_used_bytes"))
        return xasprintf("-/%.1f", all / GIB);
    if (view->screen->width > 0 && view->screen->width < PART_SCREEN_MIN)
        return xasprintf("%.1f/%.1f", used / GIB, all / GIB);
    return xasprintf("%.1f/%.1f %.0f%%", used / GIB, all / GIB, all > 0 ? used / all * 100 : 0);
}

static char *bare_memory(const json_t *gpu)
{
    return field_is_known(gpu, "memory_used_bytes")
               ? xasprintf("%.0f", field_number(gpu, "memory_used_bytes", 0))
               : xstrdup("");
}

static char *render_temperature(const struct view *view, const json_t *gpu, enum color *color)
{
    return field_is_known(gpu, "temperature_c") ? xasprintf("%.0fC", field_number(gpu, "temperature_c", 0))
                                                : xstrdup("-");
}

static char *render_power(const struct view *view, const json_t *gpu, enum color *color)
{
    return field_is_known(gpu, "power_w") ? xasprintf("%.0f", field_number(gpu, "power_w", 0)) : xstrdup("-");
}

static char *number_of(const json_t *job)
{
    _cleanup_free_ char *id = job_id(job);
    if (field_is_known(job, "adopted_pid"))
        return xasprintf("%s (pid %" PRId64 ")", id, field_integer(job, "adopted_pid", 0));
    return take_ptr(id);
}

static char *user_of(const json_t *job)
{
    return field_shown(job, "user");
}

/* A shared GPU has several jobs. */
static char *join_jobs(const json_t *gpu, char *(*text_of)(const json_t *job))
{
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(json_object_get(gpu, "jobs"), index, job)
    {
        _cleanup_free_ char *text = text_of(job);
        buffer_printf(&out, "%s%s", index > 0 ? "," : "", text);
    }
    if (out.length == 0)
        buffer_append_text(&out, "-");
    return buffer_take(&out);
}

static bool has_jobs(const json_t *gpu)
{
    return json_array_size(json_object_get(gpu, "jobs")) > 0;
}

/* Users of external processes on it, each once; NULL if there are none. */
static char *external_users(const json_t *gpu)
{
    _cleanup_strings_ struct strings users = { 0 };
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *process = NULL;
    json_array_foreach(json_object_get(gpu, "processes"), index, process)
    {
        _cleanup_free_ char *user = field_shown(process, "user");
        bool is_known = field_is_known(process, "job");
        for (size_t i = 0; !is_known && i < users.count; i++)
            is_known = strcmp(users.items[i], user) == 0;
        if (is_known)
            continue;
        strings_add(&users, user);
        buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", user);
    }
    return out.length == 0 ? NULL : buffer_take(&out);
}

/* Without a job, a symbol for the reason that keeps jobs away. */
static char *render_jobs(const struct view *view, const json_t *gpu, enum color *color)
{
    _cleanup_free_ char *external = external_users(gpu);
    bool is_paused = field_is(gpu, "state", "paused") || field_is(gpu, "state", "released") ||
                     field_is(gpu, "state", "node_drained");
    if (has_jobs(gpu) || (!is_paused && external == NULL))
        return join_jobs(gpu, number_of);
    *color = is_paused ? COLOR_MAGENTA : COLOR_YELLOW;
    return xstrdup(!is_paused ? "!" : view->screen->is_utf8 ? "‖" : "=");
}

static char *render_users(const struct view *view, const json_t *gpu, enum color *color)
{
    char *external = has_jobs(gpu) ? NULL : external_users(gpu);
    return external != NULL ? external : join_jobs(gpu, user_of);
}

static char *render_state(const struct view *view, const json_t *gpu, enum color *color)
{
    static const struct {
        const char *state;
        enum color color;
    } looks[] = { { "free", COLOR_NONE }, { "used", COLOR_GREEN }, { "shared", COLOR_GREEN },
        { "lost", COLOR_RED }, { "node_down", COLOR_RED }, { "paused", COLOR_MAGENTA },
        { "node_drained", COLOR_MAGENTA }, { "drained", COLOR_RED }, { "unclean", COLOR_YELLOW },
        { "refused", COLOR_MAGENTA }, { "released", COLOR_MAGENTA } };
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        if (field_is(gpu, "state", looks[i].state))
            *color = looks[i].color;
    const char *state = field_text(gpu, "state");
    if (field_is(gpu, "state", "lost") && field_text(gpu, "trouble") != NULL) {
        _cleanup_free_ char *trouble = field_shown(gpu, "trouble");
        return xasprintf("lost: %s", trouble);
    }
    _cleanup_free_ char *since = away_since(view, gpu);
    if (since != NULL)
        return xasprintf("node_down %s", since);
    return maintenance_text(view, gpu, state == NULL ? "-" : state);
}

/* True for a job's process on a GPU that the job has. */
static bool is_expected(const json_t *gpu, const json_t *process)
{
    size_t index = 0;
    json_t *job = NULL;
    int64_t id = field_integer(process, "job", 0);
    json_array_foreach(json_object_get(gpu, "jobs"), index, job)
    {
        if (field_integer(job, "id", -1) == id)
            return true;
    }
    return false;
}

/* Unexpected processes, the largest first: "8123 python (cy) 11.2G". Most are external; those of a job that
 * was given other GPUs name the job. */
static char *list_external(const json_t *gpu)
{
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *process = NULL;
    json_array_foreach(json_object_get(gpu, "processes"), index, process)
    {
        char size[32];
        if (is_expected(gpu, process))
            continue;
        _cleanup_free_ char *command = field_shown(process, "command"), *user = field_shown(process, "user");
        buffer_printf(&out, "%s%" PRId64 " %s (%s)", out.length > 0 ? ", " : "",
            field_integer(process, "pid", 0), command, user);
        if (field_is_known(process, "memory_bytes")) {
            format_size((uint64_t)field_integer(process, "memory_bytes", 0), size, sizeof(size));
            buffer_printf(&out, " %s", size);
        }
        if (field_is_known(process, "job"))
            buffer_printf(&out, " of job %" PRId64, field_integer(process, "job", 0));
    }
    return out.length == 0 ? NULL : buffer_take(&out);
}

static char *render_external(const struct view *view, const json_t *gpu, enum color *color)
{
    char *text = list_external(gpu);
    if (text == NULL)
        return xstrdup("-");
    *color = COLOR_YELLOW;
    return text;
}

static char *render_clock(const struct view *view, const json_t *gpu, enum color *color)
{
    return field_is_known(gpu, "sm_clock_mhz") ? xasprintf("%" PRId64, field_integer(gpu, "sm_clock_mhz", 0))
                                               : xstrdup("-");
}

static char *render_idle(const struct view *view, const json_t *gpu, enum color *color)
{
    char text[32];
    bool is_wasted = json_is_true(json_object_get(gpu, "wasted"));
    if (!field_is_known(gpu, "idle_s"))
        return xstrdup("-");
    format_duration((int64_t)(field_number(gpu, "idle_s", 0) * 1000), text, sizeof(text));
    *color = is_wasted ? COLOR_YELLOW : COLOR_NONE;
    return xasprintf("%s%s", text, !is_wasted ? "" : view->screen->is_utf8 ? " ⚠" : " !");
}

static const struct list_column columns[] = {
    { "node", "NODE", "node", "node", false, 0, NULL },
    { "gpu", "GPU", "its number, in PCI order", "index", true, 0, NULL },
    { "model", "MODEL", "model", "model", false, 4, render_model, .spare = 4 },
    { "job", "JOB", "jobs on it", NULL, false, 0, render_jobs },
    { "user", "USER", "owners of the jobs", NULL, false, 2, render_users },
    { "util", "UTIL", "utilization", "utilization", true, 0, render_utilization },
    { "mem", "MEM GiB", "memory used and total", NULL, true, 0, render_memory, bare_memory, .spare = 5 },
    { "temp", "TEMP", "its temperature", "temperature_c", true, 0, render_temperature, .spare = 2 },
    { "power", "W", "power draw", "power_w", true, 0, render_power, .spare = 1 },
    { "idle", "IDLE", "time since a job last computed on it", "idle_s", true, 0, render_idle, .spare = 3 },
    { "state", "STATE",
        "free, used, shared, paused, drained, unclean, lost, node_down or node_drained; and why", "state",
        false, 1, render_state },
    { "past", "LAST 10 MIN", "load over the last ten minutes", NULL, false, 4, gpu_past_render },
    { "external", "EXTERNAL", "external processes on it, and processes of jobs with other GPUs", NULL, false,
        4, render_external },
    { "policy", "POLICY", "policy for external processes: avoid, fit-around or ignore", "policy", false, 0,
        NULL },
    { "clock", "MHZ", "clock of its multiprocessors", "sm_clock_mhz", true, 0, render_clock },
    { "test", "TEST", "the last scheduled test: passed, slow or failed", "test_result", false, 0, NULL },
    { "uuid", "UUID", "UUID", "uuid", false, 0, NULL },
    { "pci", "PCI", "bus address", "pci", false, 0, NULL },
    { 0 },
};

const struct list_kind gpu_list = {
    .member = "gpus",
    .columns = columns,
    .normal = "node,gpu,model,job,user,util,mem,temp,power,idle,state",
    .wide = "node,gpu,model,job,user,util,mem,temp,power,idle,state,external,past,policy,clock,test,uuid,pci",
};

/* For GPUs that the scheduled test did not find healthy. */
void gpu_print_tests(const json_t *gpus, FILE *out)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        _cleanup_free_ char *node = field_shown(gpu, "node"), *text = field_shown(gpu, "test_text");
        if (field_is(gpu, "test_result", "slow") || field_is(gpu, "test_result", "failed"))
            (void)fprintf(
                out, "tested: GPU %s:%" PRId64 ": %s\n", node, field_integer(gpu, "index", 0), text);
    }
}

void gpu_print_external(const json_t *gpus, FILE *out)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        _cleanup_free_ char *text = list_external(gpu), *node = field_shown(gpu, "node");
        if (text != NULL)
            (void)fprintf(out, "used by external processes: GPU %s:%" PRId64 ": %s\n", node,
                field_integer(gpu, "index", 0), text);
    }
}

static bool is_used_externally(const json_t *gpu)
{
    _cleanup_free_ char *text = list_external(gpu);
    return text != NULL;
}

void gpu_print_line(const json_t *gpus, FILE *out)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        bool is_lost = field_is(gpu, "state", "lost") || field_is(gpu, "state", "node_down") ||
                       field_is(gpu, "state", "paused") || field_is(gpu, "state", "node_drained") ||
                       field_is(gpu, "state", "drained") || field_is(gpu, "state", "unclean") ||
                       field_is(gpu, "state", "refused") || field_is(gpu, "state", "released");
        bool is_used = json_array_size(json_object_get(gpu, "jobs")) > 0;
        (void)fprintf(out, "%s%" PRId64 ":", index > 0 ? " " : "", field_integer(gpu, "index", 0));
        if (is_lost)
            (void)fputc('x', out);
        else if (is_used && json_is_true(json_object_get(gpu, "wasted")))
            (void)fputs("idle", out);
        else if (is_used && field_is_known(gpu, "utilization"))
            (void)fprintf(out, "%.0f%%", field_number(gpu, "utilization", 0) * 100);
        else
            (void)fputc(is_used ? '+' : '-', out);
        if (is_used_externally(gpu))
            (void)fputc('!', out);
    }
    (void)fputc('\n', out);
}
