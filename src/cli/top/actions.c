/* SPDX-License-Identifier: MIT */
/*
 * Actions on jobs, GPUs and nodes. Irreversible ones are confirmed first, naming the objects. mgpud decides
 * on permissions: its refusal is shown at the bottom.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/programs.h"
#include "cli/follow/run_job.h"
#include "cli/show/job_columns.h"
#include "cli/show/why_text.h"
#include "cli/top/asks.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"

#define NAMED_MAX 6 // objects named in a question

struct deed {
    const char *question; // "cancel"
    const char *done;     // "cancelled"
    const char *action;   // of the API
};

static const struct deed deed_cancel = { "cancel", "is stopping", "cancel" };
static const struct deed deed_requeue = { "requeue", "is requeued", "requeue" };
static const struct deed deed_hold = { "hold", "is held", "hold" };
static const struct deed deed_release = { "release", "is released", "release" };

/* --- jobs --- */

static void add_target(struct top *top, const json_t *job)
{
    strings_take(&top->view.targets, job_id(job));
}

/* The marked jobs, else the selected one. */
static size_t choose_targets(struct top *top)
{
    strings_clear(&top->view.targets);
    for (size_t i = 0; i < top->model.jobs.count; i++)
        if (top->model.jobs.items[i].is_marked && top->model.jobs.items[i].job != NULL)
            add_target(top, top->model.jobs.items[i].job);
    if (top->view.targets.count == 0 && top_selected(top) != NULL)
        add_target(top, top_selected(top));
    if (top->view.targets.count == 0)
        top_say(top, false, "no job is selected");
    return top->view.targets.count;
}

static int post(struct top *top, const char *path, const json_t *body, struct error *err)
{
    return client_call(&top->wire.actions, "POST", path, body, NULL, err);
}

static void post_each(struct top *top, const struct deed *deed, const json_t *body)
{
    size_t failed = 0, count = top->view.targets.count;
    struct error first = { 0 };
    for (size_t i = 0; i < count; i++) {
        struct error err = { 0 };
        _cleanup_free_ char *path =
            xasprintf(API_PATH "/jobs/%s/%s", top->view.targets.items[i], deed->action);
        if (post(top, path, body, &err) >= 0)
            continue;
        first = failed++ == 0 ? err : first;
        if (client_is_loss(err.code)) { // each of the other actions would wait as long
            failed += count - i - 1;
            break;
        }
    }
    if (failed > 0 && count == 1)
        top_say(top, true, "%s", first.message);
    else if (failed > 0)
        top_say(top, true, "%zu of %zu failed: %s", failed, count, first.message);
    else if (count == 1)
        top_say(top, false, "job %s %s", top->view.targets.items[0], deed->done);
    else
        top_say(top, false, "%zu jobs: each %s", count, deed->done);
    for (size_t i = 0; i < top->model.jobs.count; i++)
        top->model.jobs.items[i].is_marked = false;
    top_poke(top, ASK_CHANGED);
}

static void do_it(struct top *top, const char *yes)
{
    _cleanup_json_ json_t *body = json_object();
    post_each(top, top->view.deed, body);
}

static void ask_first(struct top *top, const struct deed *deed)
{
    _cleanup_buffer_ struct buffer question = { 0 };
    size_t count = choose_targets(top);
    if (count == 0)
        return;
    const json_t *job = top_selected(top);
    _cleanup_free_ char *name = count > 1 || job == NULL ? NULL : field_shown(job, "name");
    buffer_printf(&question, "%s job%s ", deed->question, count > 1 ? "s" : "");
    for (size_t i = 0; i < count && i < NAMED_MAX; i++)
        buffer_printf(&question, "%s%s", i > 0 ? ", " : "", top->view.targets.items[i]);
    if (count > NAMED_MAX)
        buffer_printf(&question, " and %zu more", count - NAMED_MAX);
    bool is_selected =
        count == 1 && job != NULL && top_jobs_find(&top->model.jobs, top->view.selected) != NULL;
    if (is_selected && name != NULL)
        buffer_printf(&question, " (%s)", name);
    top->view.deed = deed;
    top_ask_yes(top, buffer_text(&question), do_it);
}

void top_cancel(struct top *top)
{
    ask_first(top, &deed_cancel);
}

void top_requeue(struct top *top)
{
    ask_first(top, &deed_requeue);
}

void top_hold(struct top *top)
{
    const json_t *job = top_selected(top);
    _cleanup_json_ json_t *body = json_object();
    if (choose_targets(top) > 0)
        post_each(top, job != NULL && job_is_held(job) ? &deed_release : &deed_hold, body);
}

static void edit_priority(struct top *top, const char *text)
{
    static const struct deed deed = { "change", "has a new priority", "edit" };
    char *end = NULL;
    long priority = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0') {
        top_say(top, true, "'%.40s' is not a number", text);
        return;
    }
    _cleanup_json_ json_t *body = json_pack("{s:I}", "priority", (json_int_t)priority);
    post_each(top, &deed, body);
}

void top_set_priority(struct top *top)
{
    const json_t *job = top_selected(top);
    if (choose_targets(top) == 0)
        return;
    _cleanup_free_ char *now = xasprintf("%" PRId64, field_integer(job, "priority", 0));
    top_ask_text(top, "priority, -1000 to 1000, higher runs first: ", now, false, edit_priority);
}

void top_mark(struct top *top)
{
    struct top_job *job = top_jobs_find(&top->model.jobs, top->view.selected);
    if (job != NULL)
        job->is_marked = !job->is_marked;
    top_move(top, 1);
}

void top_explain(struct top *top)
{
    const json_t *job = top_selected(top);
    _cleanup_json_ json_t *why = NULL;
    _cleanup_free_ char *text = NULL;
    struct error err = { 0 };
    size_t size = 0;
    if (job == NULL)
        return;
    struct view view = top_list_view(top);
    struct screen screen = *view.screen;
    screen.width = (size_t)top_popup_text_width(top);
    view.screen = &screen;
    _cleanup_free_ char *id = job_id(job), *path = xasprintf(API_PATH "/jobs/%s/why", id);
    if (client_get(&top->wire.actions, path, &why, &err) < 0) {
        top_say(top, true, "%s", err.message);
        return;
    }
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL)
        return;
    why_print(&view, job, why, memory);
    (void)fclose(memory);
    _cleanup_free_ char *title = xasprintf("Why job %s is waiting", id);
    top_open_text(top, title, text);
}

/* Copied by the terminal: also works through ssh and, if allowed there, tmux. */
void top_copy_id(struct top *top)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    _cleanup_buffer_ struct buffer out = { 0 };
    if (top_selected(top) == NULL)
        return;
    _cleanup_free_ char *id = job_id(top_selected(top));
    size_t length = strlen(id);
    buffer_append_text(&out, "\033]52;c;");
    for (size_t i = 0; i < length; i += 3) {
        unsigned group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < length ? (unsigned char)id[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buffer_append(&out, i + k <= length ? &letters[group >> (18 - 6 * k) & 63] : "=", 1);
    }
    buffer_append_text(&out, "\a");
    if (top->outside != NULL)
        (void)write_all(STDOUT_FILENO, out.bytes, out.length);
    top_say(top, false, "copied %s to the clipboard", id);
}

/* --- GPUs and nodes --- */

static const struct deed deed_pause = { "pause", "is paused", "pause" };
static const struct deed deed_resume = { "resume", "is resumed", "resume" };
static const struct deed deed_drain = { "drain", "is drained", "drain" };
static const struct deed deed_return = { "resume", "is resumed", "resume" };

static void drain_it(struct top *top, const char *yes)
{
    const struct deed *deed = top->view.deed;
    const char *target = top->view.targets.items[0];
    bool is_gpu = deed == &deed_pause || deed == &deed_resume;
    struct error err = { 0 };
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *body = is_gpu ? json_pack("{s:[s]}", "gpus", target) : json_object();
    buffer_append_text(&path, is_gpu ? API_PATH "/gpus" : API_PATH "/nodes/");
    if (!is_gpu)
        http_append_encoded(&path, target);
    buffer_printf(&path, "/%s", deed->action);
    if (post(top, buffer_text(&path), body, &err) < 0)
        top_say(top, true, "%s", err.message);
    else
        top_say(top, false, "%s %s", target, deed->done);
    top_poke(top, ASK_GPUS);
    top_poke(top, ASK_NODES);
}

static void ask_drain(struct top *top, const struct deed *deed, const char *what, char *target)
{
    strings_clear(&top->view.targets);
    strings_take(&top->view.targets, target);
    _cleanup_free_ char *question =
        xasprintf("%s %s %s; running jobs are not affected", deed->question, what, target);
    top->view.deed = deed;
    top_ask_yes(top, question, drain_it);
}

void top_drain(struct top *top)
{
    bool is_node = top->view.page == PAGE_NODES || top->layout.is_cells;
    const json_t *node = json_array_get(top->model.nodes, top->view.node_row), *gpu = top_selected_gpu(top);
    if (is_node && node != NULL) {
        bool is_drained = field_is(node, "state", "drained");
        ask_drain(top, is_drained ? &deed_return : &deed_drain, "node", xstrdup(field_text(node, "name")));
    } else if (!is_node && gpu != NULL) {
        bool is_out = field_is(gpu, "state", "paused") || field_is(gpu, "state", "released") ||
                      field_is(gpu, "state", "drained");
        char *name = xasprintf("%s:%" PRId64, field_text(gpu, "node"), field_integer(gpu, "index", 0));
        ask_drain(top, is_out ? &deed_resume : &deed_pause, "GPU", name);
    }
}

/* --- away from the screen and back --- */

static void attach_now(struct top *top)
{
    const struct terminal_options terminal = { .is_interactive = true };
    struct error err = { 0 };
    _cleanup_free_ char *id = job_id(top_selected(top));
    int64_t timeout_ms = top->call->client.timeout_ms;
    top->call->client.timeout_ms = CLIENT_PATIENT_MS;
    int r = run_attached(top->call, id, &terminal, false, false, &err);
    top->call->client.timeout_ms = timeout_ms;
    if (r == -ENOTTY)
        top_say(top, true, "job %s has no terminal (submit -T gives it one); l shows its output", id);
    else if (r < 0)
        top_say(top, true, "%s", err.message);
    else
        top_say(top, false, "detached from job %s", id);
}

void top_attach(struct top *top)
{
    const json_t *job = top_selected(top);
    if (job == NULL || top->outside == NULL)
        return;
    if (!field_is(job, "state", "running"))
        top_say(top, true, "only running jobs can be attached to");
    else if (!json_is_true(json_object_get(job, "tty")) && field_is_known(job, "tty"))
        top_say(top, true, "it has no terminal; l shows its output");
    else
        top->outside(top, attach_now);
}

/* The words are passed to the shell as variables, so nothing has to be quoted. */
static void page_now(struct top *top)
{
    _cleanup_free_ char *program = program_find("mgpu");
    _cleanup_free_ char *id = job_id(top_selected(top));
    (void)setenv("MGPU_TOP_PROGRAM", program, 1);
    (void)setenv("MGPU_TOP_JOB", id, 1);
    (void)setenv("MGPU_TOP_SOCKET", top->call->client.path, 1);
    int status =
        system("\"$MGPU_TOP_PROGRAM\" --socket \"$MGPU_TOP_SOCKET\" logs --strip \"$MGPU_TOP_JOB\" 2>&1 |"
               " ${MGPU_PAGER:-${PAGER:-less}}");
    if (status != 0)
        top_say(top, true, "the pager exited with status %d; MGPU_PAGER sets the pager", status >> 8);
}

void top_page_log(struct top *top)
{
    if (top_selected(top) != NULL && top->call->client.path != NULL && top->outside != NULL)
        top->outside(top, page_now);
}
