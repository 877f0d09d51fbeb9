/* SPDX-License-Identifier: MIT */
/* POST /jobs: parses the body into a spec and submits it; 201 when durable. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "controller/api/after.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/api/submit.h"
#include "controller/api/why.h"
#include "controller/cluster/cluster.h"
#include "controller/http/fair_queue.h"
#include "controller/identity/rights.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"

int submit_check_owner(const struct request *request, bool is_adopted, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    uint32_t uid = request->who.uid;
    bool is_granted = is_adopted && controller->options.adopts_any_user; // no process is started as its owner
    if (!controller->is_root && uid != controller->admin_uid && !is_granted) {
        (void)error_set(err, -EPERM, "this mgpud runs as %s and only starts jobs of that user",
            usernames_name(request->serve->names, controller->admin_uid));
        return error_hint(err,
            "use the one for all users (--socket " SYSTEM_SOCKET "), or where this machine has none, "
            "start your own: mgpud --detach");
    }
    if (controller->is_root && uid == 0 && !is_adopted && !controller->options.allow_root_jobs) {
        (void)error_set(err, -EPERM, "jobs of root are not allowed");
        return error_hint(err, "submit as an ordinary user, or start mgpud with --allow-root-jobs");
    }
    uint32_t min_uid = controller->options.lowest_uid;
    if (!controller->is_root || uid == 0 || is_adopted || uid >= min_uid)
        return 0;
    (void)error_set(
        err, -EPERM, "uid %" PRIu32 " is a system account: jobs need uid %" PRIu32 " or above", uid, min_uid);
    return error_hint(err, "submit as an ordinary user, or set a lower min-uid for mgpud and its nodes");
}

int submit_check_store(const struct controller *controller, struct error *err)
{
    const char *dir = controller->options.state_dir;
    if (store_is_full(controller->store)) {
        (void)error_set(err, -ENOSPC, "no %s left to store new jobs in %s",
            store_lacks_inodes(controller->store) ? "inodes" : "space",
            dir != NULL ? dir : "the state directory");
        return error_hint(err, "running jobs are not affected; submit again when some are free");
    }
    if (cluster_is_full(controller->cluster)) {
        (void)error_set(err, -ENOSPC, "etcd, which keeps the log of all controllers, has no space left");
        return error_hint(err, "running jobs are not affected; the administrator compacts etcd "
                               "(docs/high-availability.md)");
    }
    if (controller->verification.is_file_damaged) {
        (void)error_set(err, -EUCLEAN, "the file of the store is damaged: new jobs might be lost");
        return error_hint(
            err, "running jobs are not affected; the administrator finds the cause with mgpu doctor");
    }
    return 0;
}

/* For a job without a directory. */
static int start_at_home(const struct request *request, struct job_spec *spec, struct error *err)
{
    uint32_t uid = request->who.uid;
    int r = usernames_account(uid, NULL, &spec->cwd);
    if (r == -EAGAIN) {
        (void)error_set(err, r,
            "cwd is missing, and the user database does not report the home directory of user %" PRIu32, uid);
        return error_hint(err, "try again, or name the directory");
    }
    return r < 0 ? error_set(err, -EINVAL, "cwd is missing, and user %" PRIu32 " has no home directory", uid)
                 : 0;
}

static int read_spec(struct request *request, struct job_spec *spec, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    job_spec_init(spec);
    int r = request_parse_body(request, &body, err);
    if (r == 0)
        r = json_spec_read(body, spec, err);
    /* For an adoption, the other fields are known only after its node has identified the process. */
    if (r == 0 && spec->ask.adopted_pid == 0 && spec->cwd == NULL)
        r = start_at_home(request, spec, err);
    return r;
}

/* RFC 7240. */
static bool wants_minimum(const struct request *request)
{
    const char *preference = http_message_header(&request->message, "prefer");
    return preference != NULL && strcasecmp(preference, "return=minimal") == 0;
}

/*
 * The job as it was accepted. It may have been started since, which may not be durable yet; if the reply
 * waited for that, every submit would wait for a second commit.
 */
static void reply_created(struct request *request, const struct job *job)
{
    struct job accepted = {
        .id = job->id,
        .uid = job->uid,
        .gid = job->gid,
        .account = job->account,
        .state = JOB_QUEUED,
        .ask = job->ask,
        .hold = job->hold,
        .array_left = job->array_left,
        .name = job->name,
        .summary = job->summary,
        .submitted_ms = job->submitted_ms,
    };
    unsigned shown = SHOW_ACCEPTED | (wants_minimum(request) ? SHOW_SPARSE : 0);
    request_reply_json(request, 201, jobs_write(request->serve, &accepted, shown));
}

static void reply_repeated(struct request *request, const struct job *job)
{
    jobs_reply(request, 200, job);
}

static void on_submitted(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem_of(request, &answer->err, answer->job);
    else
        jobs_find(request, answer->job, answer->is_repeated ? reply_repeated : reply_created);
}

static void drop_spec(void *spec)
{
    job_spec_free(spec);
}

/* `?dry_run=1`: the expected result. */
struct dry_run {
    struct job_spec *spec;
    struct core_facts facts;
};

static void release_dry_run(struct request *request)
{
    struct dry_run *dry = request->work;
    job_spec_free(dry->spec);
    free(dry->facts.items);
    free(dry);
}

static void explain(struct request *request)
{
    const struct dry_run *dry = request->work;
    struct error err = { 0 };
    struct why why = { 0 };
    int r = core_why_not_yet(
        request->serve->controller->core, clock_wall_ms(), &request->who, dry->spec, &dry->facts, &why, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    request_reply_json(request, 200, why_write(request->serve, NULL, &dry->spec->ask, &why));
    why_clear(&why);
}

static void begin_dry_run(struct request *request, void *subject, const struct core_facts *facts)
{
    struct dry_run *dry = xcalloc(1, sizeof(*dry));
    *dry = (struct dry_run){ .spec = subject, .facts = *facts };
    dry->facts.items = xcalloc(facts->count + 1, sizeof(*facts->items));
    for (size_t i = 0; i < facts->count; i++)
        dry->facts.items[i] = facts->items[i];
    request->work = dry;
    request->release = release_dry_run;
    fair_queue_add(request, explain);
}

static void submit(struct request *request, void *subject, const struct core_facts *facts)
{
    const struct job_spec *spec = subject;
    request->on_answer = on_submitted;
    (spec->ask.adopted_pid != 0 ? core_adopt : core_submit)(request->serve->controller->core, clock_boot_ms(),
        clock_wall_ms(), &request->who, subject, facts, request);
}

void handle_submit(struct request *request)
{
    struct controller *controller = request->serve->controller;
    struct error err = { 0 };
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    bool is_dry = false;
    int r = query_get_flag(&request->query, "dry_run", &is_dry, &err);
    if (r == 0 && connection_has_left(request->connection))
        r = error_set(&err, -ETIMEDOUT, "the client disconnected before its job was read");
    if (r == 0)
        r = read_spec(request, spec, &err);
    if (r == 0)
        r = submit_check_owner(request, spec->ask.adopted_pid != 0, &err);
    if (r == 0)
        r = rights_check_partition(request, &spec->ask, &err);
    if (r == 0 && is_dry && spec->ask.adopted_pid != 0)
        r = error_set(&err, -EINVAL, "dry_run is not available for adopted processes");
    if (r == 0 && !is_dry)
        r = submit_check_store(controller, &err);
    if (r < 0) {
        job_spec_free(spec);
        request_reply_problem(request, &err);
        return;
    }
    if (spec->ask.priority > 0)
        request->who.may_raise = rights_may_raise(request);
    after_resolve(request, &spec->ask, spec, is_dry ? begin_dry_run : submit, drop_spec);
}
