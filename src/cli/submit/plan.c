/* SPDX-License-Identifier: MIT */
#include "cli/submit/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/talk.h"
#include "cli/submit/submit.h"
#include "cli/submit/sweep.h"
#include "job/ask.h"

#define SHOWN_MAX 4096

int plan_add(struct plan *plan, const char *origin, const char *name, json_t *request,
    const struct strings *sweeps, struct error *err)
{
    _cleanup_json_ json_t *requests = json_array();
    int r = sweep_expand(sweeps, request, requests, err);
    if (r < 0)
        return r;
    if (plan->n_jobs + json_array_size(requests) > PLAN_JOBS_MAX)
        return error_set(err, -E2BIG, "that is more than %u jobs", PLAN_JOBS_MAX);
    plan->units = xreallocarray(plan->units, plan->count + 1, sizeof(*plan->units));
    plan->n_jobs += json_array_size(requests);
    plan->units[plan->count++] = (struct plan_unit){
        .name = xstrdup(name),
        .origin = xstrdup(origin),
        .requests = take_ptr(requests),
        .ids = json_array(),
    };
    return 0;
}

void plan_add_need(struct plan *plan, const char *name, const char *kind, const char *origin)
{
    struct plan_unit *unit = &plan->units[plan->count - 1];
    unit->needs = xreallocarray(unit->needs, unit->n_needs + 1, sizeof(*unit->needs));
    unit->needs[unit->n_needs++] =
        (struct plan_need){ .name = xstrdup(name), .origin = xstrdup(origin), .kind = kind };
}

/* --- order --- */

static int find_need(const struct plan *plan, struct plan_need *need, struct error *err)
{
    const char **names = xcalloc(plan->count + 1, sizeof(char *));
    size_t found = 0, known = 0;
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->units[i].name == NULL)
            continue;
        names[known++] = plan->units[i].name;
        if (strcmp(plan->units[i].name, need->name) == 0) {
            need->unit = i;
            found++;
        }
    }
    const char *near = found == 0 ? text_nearest(need->name, names) : NULL;
    free(names);
    if (found == 1)
        return 0;
    if (found > 1)
        return error_set(err, -EINVAL, "%s: '%.60s' matches %zu jobs", need->origin, need->name, found);
    (void)error_set(err, -EINVAL, "%s: no job in this file is named '%.60s'", need->origin, need->name);
    return near != NULL ? error_hint(err, "did you mean %s?", near) : -EINVAL;
}

static int find_needs(struct plan *plan, struct error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_unit *unit = &plan->units[i];
        size_t jobs = 0;
        for (size_t k = 0; k < unit->n_needs; k++) {
            int r = find_need(plan, &unit->needs[k], err);
            if (r < 0)
                return r;
            jobs += json_array_size(plan->units[unit->needs[k].unit].requests);
        }
        if (jobs > ASK_AFTER_MAX)
            return error_set(err, -E2BIG, "%s: the job needs %zu other jobs; at most %u", unit->origin, jobs,
                ASK_AFTER_MAX);
    }
    return 0;
}

static bool is_ready(const struct plan_unit *unit, const bool *is_placed)
{
    for (size_t k = 0; k < unit->n_needs; k++)
        if (!is_placed[unit->needs[k].unit])
            return false;
    return true;
}

/* The first of its needs that has not been placed. */
static size_t next_in_circle(const struct plan *plan, const bool *is_placed, size_t at)
{
    const struct plan_unit *unit = &plan->units[at];
    size_t k = 0;
    while (is_placed[unit->needs[k].unit])
        k++;
    return unit->needs[k].unit;
}

/* The remaining units are in a cycle or depend on one: following dependencies leads into it. */
static int refuse_circle(const struct plan *plan, const bool *is_placed, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t at = 0;
    while (is_placed[at])
        at++;
    for (size_t step = 0; step < plan->count; step++)
        at = next_in_circle(plan, is_placed, at);
    size_t i = at;
    do {
        i = next_in_circle(plan, is_placed, i);
        buffer_printf(&text, " needs %.60s", plan->units[i].name);
    } while (i != at);
    return error_set(err, -EINVAL, "%.200s: circular dependency: %.60s%.200s", plan->units[at].origin,
        plan->units[at].name, buffer_text(&text));
}

static int find_order(const struct plan *plan, size_t *order, struct error *err)
{
    _cleanup_free_ bool *is_placed = xcalloc(plan->count, sizeof(bool));
    size_t count = 0;
    for (bool is_moving = true; is_moving && count < plan->count;) {
        is_moving = false;
        for (size_t i = 0; i < plan->count; i++)
            if (!is_placed[i] && is_ready(&plan->units[i], is_placed)) {
                order[count++] = i;
                is_placed[i] = is_moving = true;
            }
    }
    return count == plan->count ? 0 : refuse_circle(plan, is_placed, err);
}

/* --- sending --- */

static int add_needs(const struct plan *plan, const struct plan_unit *unit, json_t *request)
{
    _cleanup_buffer_ struct buffer after = { 0 };
    const char *own = field_text(request, "after");
    if (unit->n_needs == 0)
        return 0;
    buffer_append_text(&after, own == NULL ? "" : own);
    for (size_t k = 0; k < unit->n_needs; k++) {
        size_t index = 0;
        json_t *id = NULL;
        json_array_foreach(plan->units[unit->needs[k].unit].ids, index, id)
            buffer_printf(&after, "%s%" JSON_INTEGER_FORMAT ":%s", after.length > 0 ? "," : "",
                json_integer_value(id), unit->needs[k].kind);
    }
    return json_object_set_new(request, "after", json_string(buffer_text(&after)));
}

static void print_job(struct call *call, const struct plan *plan, const json_t *job)
{
    if (plan->n_jobs == 1) {
        submit_print(call, job);
        return;
    }
    if (call->is_json)
        (void)json_dumpf(job, stdout, JSON_COMPACT);
    else
        (void)printf("%" PRId64, field_integer(job, "id", 0));
    (void)fputc('\n', stdout);
    (void)fflush(stdout);
}

static int send_unit(struct call *call, const struct plan *plan, struct plan_unit *unit, struct error *err)
{
    size_t index = 0;
    json_t *request = NULL;
    json_array_foreach(unit->requests, index, request)
    {
        _cleanup_json_ json_t *job = NULL;
        (void)add_needs(plan, unit, request);
        int r = submit_renew_key(request, err);
        if (r == 0)
            r = submit_send(call, request, &job, err);
        if (r < 0)
            return unit->origin != NULL ? error_wrap(err, "%s", unit->origin) : r;
        (void)json_array_append_new(unit->ids, json_integer(field_integer(job, "id", 0)));
        print_job(call, plan, job);
    }
    return 0;
}

/* Newest first, so that no job starts only because the job it waits for was cancelled. */
static void cancel_sent(struct call *call, const struct plan *plan, const size_t *order)
{
    _cleanup_buffer_ struct buffer gone = { 0 }, left = { 0 };
    for (size_t i = plan->count; i > 0; i--) {
        const json_t *ids = plan->units[order[i - 1]].ids;
        for (size_t k = json_array_size(ids); k > 0; k--) {
            json_int_t id = json_integer_value(json_array_get(ids, k - 1));
            _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" JSON_INTEGER_FORMAT "/cancel", id);
            _cleanup_json_ json_t *body = json_object();
            int r = client_call(&call->client, "POST", path, body, NULL, NULL);
            buffer_printf(r < 0 && r != -EALREADY ? &left : &gone, " %" JSON_INTEGER_FORMAT, id);
        }
    }
    if (gone.length > 0)
        talk_line("these jobs had been submitted and were cancelled:%s", buffer_text(&gone));
    if (left.length > 0)
        talk_line("these jobs were submitted and could not be cancelled:%s", buffer_text(&left));
}

static int send_all(struct call *call, struct plan *plan, const size_t *order, struct error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        int r = send_unit(call, plan, &plan->units[order[i]], err);
        if (r < 0) {
            (void)fflush(stdout);
            cancel_sent(call, plan, order);
            return r;
        }
    }
    return EXIT_OK;
}

/* --- dry run --- */

static char *show_command(const json_t *command)
{
    _cleanup_strings_ struct strings words = { 0 };
    size_t index = 0;
    json_t *word = NULL;
    if (json_is_string(command))
        return text_escape(json_string_value(command), SHOWN_MAX);
    json_array_foreach(command, index, word) strings_add(&words, json_string_value(word));
    _cleanup_free_ char *line = text_quote_command(&words);
    return text_escape(line, SHOWN_MAX);
}

static void list_request(const struct call *call, const struct plan_unit *unit, json_t *request)
{
    if (call->is_json) {
        _cleanup_json_ json_t *shown = json_object();
        (void)json_object_update(shown, request);
        (void)json_object_del(shown, "env");
        (void)json_object_del(shown, "submit_key");
        show_json_line(shown, stdout);
        return;
    }
    _cleanup_free_ char *name = field_shown(request, "name");
    _cleanup_free_ char *command = show_command(json_object_get(request, "command"));
    (void)printf("%s  %s", name, command);
    for (size_t k = 0; k < unit->n_needs; k++)
        (void)printf("%s%s:%s", k == 0 ? "  after " : ",", unit->needs[k].name, unit->needs[k].kind);
    (void)fputc('\n', stdout);
}

static int run_dry(struct call *call, const struct plan *plan, const size_t *order, struct error *err)
{
    if (plan->n_jobs == 1)
        return submit_dry(call, json_array_get(plan->units[0].requests, 0), err);
    for (size_t i = 0; i < plan->count; i++) {
        size_t index = 0;
        const struct plan_unit *unit = &plan->units[order[i]];
        json_t *request = NULL;
        json_array_foreach(unit->requests, index, request) list_request(call, unit, request);
    }
    return EXIT_OK;
}

int plan_run(struct call *call, struct plan *plan, struct error *err)
{
    const struct submit_options *options = call->options;
    _cleanup_free_ size_t *order = xcalloc(plan->count, sizeof(size_t));
    int r = find_needs(plan, err);
    if (r == 0)
        r = find_order(plan, order, err);
    if (r < 0)
        return r;
    submit_print_notes(call, plan->left_out);
    return options->is_dry ? run_dry(call, plan, order, err) : send_all(call, plan, order, err);
}

void plan_clear(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_unit *unit = &plan->units[i];
        for (size_t k = 0; k < unit->n_needs; k++) {
            free(unit->needs[k].name);
            free(unit->needs[k].origin);
        }
        free(unit->needs);
        free(unit->name);
        free(unit->origin);
        json_decref(unit->requests);
        json_decref(unit->ids);
    }
    free(plan->units);
    *plan = (struct plan){ 0 };
}
