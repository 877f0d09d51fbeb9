/* SPDX-License-Identifier: MIT */
/*
 * POST /jobs/ID/hold, release and edit: 200 and the job when the change is durable.
 *
 * An element that waits behind another one is committed to its node, which is asked for it before it is held,
 * edited or requeued: it is then changed like any other job that waits, unless it has just begun.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/after.h"
#include "controller/api/jobs.h"
#include "controller/api/route.h"
#include "controller/api/routes.h"
#include "controller/identity/rights.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"
#include "wire/requests.h"

static void on_outcome(struct request *request, const struct core_answer *answer)
{
    request->is_patient = false;
    jobs_find(request, request->job, request->route->found);
}

static void take_back(struct request *request, const struct job *job)
{
    struct core *core = request->serve->controller->core;
    if (!core_take_back(core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id)) {
        request->route->found(request, job);
        return;
    }
    request->is_patient = true;
    request->on_answer = on_outcome;
    core_wait_outcome(core, job->id, request);
}

void handle_waiting(struct request *request)
{
    jobs_find(request, request->job, take_back);
}

static void set_hold(struct request *request, const struct job *job, bool is_release)
{
    struct error err = { 0 };
    struct empty_request nothing = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, is_release ? "release it" : "hold it"))
        return;
    int r = request_read_body(request, &empty_request_record, &nothing, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    request->on_answer = jobs_on_changed;
    core_hold(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        is_release, request);
}

void handle_hold(struct request *request, const struct job *job)
{
    set_hold(request, job, false);
}

void handle_release(struct request *request, const struct job *job)
{
    set_hold(request, job, true);
}

/* --- edit --- */

struct edit {
    struct job_ask ask;
    char *name; // NULL: it stays
};

static void edit_free(void *arg)
{
    struct edit *edit = arg;
    job_ask_clear(&edit->ask);
    free(edit->name);
    free(edit);
}

/* The name is not part of the request, so it is taken out of the body first. */
static int read_name(json_t *body, char **ret, struct error *err)
{
    const json_t *name = json_object_get(body, "name");
    if (name == NULL)
        return 0;
    if (!json_is_string(name) || json_string_length(name) == 0 || json_string_length(name) > SPEC_NAME_MAX)
        return error_set(err, -EINVAL, "name must be a string of 1 to %u bytes", SPEC_NAME_MAX);
    *ret = xstrdup(json_string_value(name));
    (void)json_object_del(body, "name");
    return 0;
}

static void send_edit(struct request *request, void *subject, const struct core_facts *facts)
{
    struct edit *edit = subject;
    request->on_answer = jobs_on_changed;
    core_edit(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, request->job,
        &edit->ask, edit->name, facts, request);
    edit_free(edit);
}

void handle_edit(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *body = NULL;
    if (!jobs_check(request, ACTION_CONTROL, job, "edit it"))
        return;
    struct edit *edit = xcalloc(1, sizeof(*edit));
    job_ask_copy(&edit->ask, job->ask);
    int r = request_parse_body(request, &body, &err);
    if (r == 0)
        r = read_name(body, &edit->name, &err);
    if (r == 0)
        r = json_ask_read(body, &edit->ask, &err);
    if (r == 0)
        r = job_ask_validate(&edit->ask, &err);
    if (r == 0 && !text_equal(edit->ask.partition, job->ask->partition))
        r = rights_check_partition(request, &edit->ask, &err);
    if (r < 0) {
        edit_free(edit);
        request_reply_problem(request, &err);
        return;
    }
    if (edit->ask.priority > 0)
        request->who.may_raise = rights_may_raise(request);
    after_resolve(request, &edit->ask, edit, send_edit, edit_free);
}
