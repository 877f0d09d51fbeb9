/* SPDX-License-Identifier: MIT */
/* A new route is a row here, a handler, a test and an example in docs/api.md. */
#include "controller/api/route.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "controller/api/element.h"
#include "controller/api/jobs.h"
#include "controller/api/refer.h"
#include "controller/api/routes.h"
#include "controller/api/sessions.h"
#include "controller/api/tokens.h"
#include "controller/cluster/cluster.h"
#include "controller/http/fair_queue.h"
#include "controller/http/guard.h"
#include "controller/http/request.h"
#include "controller/identity/job_access.h"
#include "controller/identity/munge.h"
#include "controller/identity/rights.h"
#include "controller/turns.h"
#include "controller/web/page.h"
#include "job/array.h"
#include "job/spec.h"
#include "wire/park_proof.h"
#include "wire/requests.h"

#define PLAIN_TCP_HINT                                                                                       \
    "over TCP, administrator and operator rights require a token or a login: use the unix socket, `mgpu "    \
    "token create`, or `mgpu web`"

#define JOB_ROLES_HINT                                                                                       \
    "commands in a job on a joined machine have the rights of an ordinary user: use mgpud's machine, or "    \
    "set "                                                                                                   \
    "MGPU_HOST and a token"

#define ID_WORD   "{id}"
#define NAME_WORD "{name}"
#define JOBS_PATH "/api/v1/jobs/"

/* The handler of rows with `found`. */
static void of_its_job(struct request *request)
{
    jobs_find(request, request->job, request->route->found);
}

static const struct route routes[] = {
    { "POST", "/api/v1/jobs", ACTION_SUBMIT, handle_submit, "Submits a job.",
        { { "dry_run", "1: create no job; return when and where it would start" } }, &job_spec_record,
        .answer = "Job" },
    { "GET", "/api/v1/jobs", ACTION_LOOK, handle_list,
        "Jobs in order of their ids: those that have not ended, or ended within the last hour.",
        {
            { "state", "only these, comma-separated: queued, starting, running, stopping, done, failed, "
                       "cancelled" },
            { "user", "only jobs of this user (name or number)" },
            { "name", "only jobs whose name matches this pattern (* and ?)" },
            { "ids", "only these, comma-separated" },
            { "all", "1: include jobs that ended earlier" },
            { "limit", "maximum number of jobs: the newest, or with `after` the oldest" },
            { "after", "only jobs with higher numbers; `next` of the answer is that of the next page" },
            { "top", "at most this many of each state: the waiting jobs that are next in line, the newest in "
                     "other states" },
            { "quick", "1: omit reasons and expected starts, which are expensive" },
            { "sparse", "1: omit members that are null or false" },
            { "fold", "1: arrays represent their ended elements" },
        },
        NULL, true, .answer = "JobList", .is_of_record = true },
    { "GET", "/api/v1/jobs/{id}", ACTION_LOOK, handle_show,
        "One job and its history; for its owner also argv, cwd, cwd_fallback, setup, output, env and image.",
        { { "script", "1: include the submitted script, for its owner" } }, NULL, .answer = "JobDetails",
        .is_of_record = true },
    { "GET", "/api/v1/jobs/{id}/wait", ACTION_LOOK, handle_wait,
        "Returns the job once it is in one of the states, 408 on timeout.",
        {
            { "states", "comma-separated, default done (ended in any way)" },
            { "timeout", "seconds; unlimited if omitted" },
            { "idle", "none, told or yields: also return when the job's idle level differs" },
        },
        NULL, .answer = "Job" },
    { "POST", "/api/v1/jobs/{id}/cancel", ACTION_CONTROL, of_its_job,
        "Cancels a job: SIGTERM, then SIGKILL after the grace period.", { { NULL, NULL } },
        &cancel_request_record, .answer = "Job", .found = handle_cancel },
    { "GET", "/api/v1/jobs/{id}/why", ACTION_LOOK, of_its_job,
        "Why a job waits, when it will start, and what would start it now.", { { NULL, NULL } }, NULL, true,
        .answer = "Why", .found = handle_why },
    { "POST", "/api/v1/jobs/{id}/hold", ACTION_CONTROL, handle_waiting, "Holds a queued job.",
        { { NULL, NULL } }, &empty_request_record, .answer = "Job", .found = handle_hold },
    { "POST", "/api/v1/jobs/{id}/release", ACTION_CONTROL, of_its_job, "Releases a held job.",
        { { NULL, NULL } }, &empty_request_record, .answer = "Job", .found = handle_release },
    { "POST", "/api/v1/jobs/{id}/edit", ACTION_CONTROL, handle_waiting,
        "Changes the request of a queued job, or the time limit of a running one.", { { NULL, NULL } },
        &job_ask_record, .answer = "Job", .found = handle_edit },
    { "POST", "/api/v1/jobs/{id}/signal", ACTION_CONTROL, of_its_job,
        "Sends a signal to those processes of a running job that handle it, or to others.",
        { { NULL, NULL } }, &signal_request_record, .answer = "Job", .found = handle_signal },
    { "POST", "/api/v1/jobs/{id}/suspend", ACTION_CONTROL, of_its_job,
        "Suspends a running job; it keeps its GPUs.", { { NULL, NULL } }, &empty_request_record,
        .answer = "Job", .found = handle_suspend },
    { "POST", "/api/v1/jobs/{id}/continue", ACTION_CONTROL, of_its_job, "Resumes a suspended job.",
        { { NULL, NULL } }, &empty_request_record, .answer = "Job", .found = handle_continue },
    { "POST", "/api/v1/jobs/{id}/park", ACTION_CONTROL, of_its_job,
        "Saves a running job's GPU memory, stops it, and gives its GPUs to other jobs.", { { NULL, NULL } },
        &park_request_record, .answer = "Job", .found = handle_park },
    { "POST", "/api/v1/jobs/{id}/unpark", ACTION_CONTROL, of_its_job,
        "Restores a parked job as soon as its GPUs are free.", { { NULL, NULL } }, &empty_request_record,
        .answer = "Job", .found = handle_unpark },
    { "POST", "/api/v1/jobs/{id}/requeue", ACTION_CONTROL, handle_waiting,
        "Ends a running job and puts it at the end of the queue.", { { NULL, NULL } },
        &requeue_request_record, .answer = "Job", .found = handle_requeue },
    { "POST", "/api/v1/jobs/{id}/retry", ACTION_SUBMIT, handle_retry, "Submits a copy of an ended job.",
        { { NULL, NULL } }, &retry_request_record, .answer = "Job" },
    { "GET", "/api/v1/jobs/{id}/log", ACTION_READ, handle_log,
        "The output, unchanged; a Range header requests a part of it.",
        {
            { "follow", "1: wait for the start, and continue until the job ends" },
            { "wait", "1: wait for the start" },
            { "attempt", "this attempt or a later one, until it ends; default: any, until the job ends" },
            { "rank", "rank of a job on several nodes; 0" },
            { "stream", "stdout, or stderr for the log of standard error of a job with split_log; stdout" },
        },
        NULL },
    { "GET", "/api/v1/jobs/{id}/terminal", ACTION_READ, handle_terminal,
        "Attaches to the terminal of a running job; requires Upgrade: mgpu-terminal.",
        {
            { "rank", "rank of a job on several nodes; 0" },
            { "rows", "size of the client's own terminal" },
            { "columns", "size of the client's own terminal" },
            { "position", "begin after this many bytes of output; default: the last screenful" },
            { "read_only", "1: ignore input from the client" },
        },
        NULL },
    { "GET", "/api/v1/jobs/{id}/input", ACTION_CONTROL, handle_input,
        "Sends the standard input of a running job submitted with input -; requires Upgrade: mgpu-terminal.",
        { { "rank", "rank of a job on several nodes; 0" } }, NULL },
    { "POST", "/api/v1/jobs/{id}/exec", ACTION_CONTROL, handle_exec,
        "Runs another process in a running job; requires Upgrade: mgpu-terminal.",
        { { "rank", "rank of a job on several nodes; 0" },
            { "received",
                "a lost connection: bytes of frames received; with the key of the first request" } },
        &exec_request_record },
    { "GET", "/api/v1/jobs/{id}/port", ACTION_CONTROL, handle_port,
        "Connects to a port of a running job; requires Upgrade: mgpu-terminal.",
        {
            { "rank", "rank of a job on several nodes; 0" },
            { "port", "TCP port on the job's node" },
            { "path", "instead of a port: a unix socket" },
        },
        NULL },
    { "GET", "/api/v1/jobs/{id}/steps", ACTION_LOOK, handle_steps, "The steps of a job.", { { NULL, NULL } },
        NULL, .answer = "StepList", .is_of_record = true },
    { "POST", "/api/v1/jobs/{id}/steps", ACTION_CONTROL, handle_step,
        "Begins a step of a running job; the response remains open until the step ends.", { { NULL, NULL } },
        &step_request_record },
    { "POST", "/api/v1/jobs/{id}/steps/end", ACTION_CONTROL, of_its_job, "Records the end of a step.",
        { { NULL, NULL } }, &step_end_request_record, .found = handle_step_end },
    { "POST", "/api/v1/jobs/{id}/steps/usage", ACTION_CONTROL, of_its_job,
        "Reports what the tasks of a running step have used.", { { NULL, NULL } }, &step_usage_request_record,
        .found = handle_step_usage },
    { "POST", "/api/v1/jobs/{id}/steps/signal", ACTION_CONTROL, of_its_job,
        "Passes a signal to the client of a running step.", { { NULL, NULL } }, &step_signal_request_record,
        .found = handle_step_signal },
    { "GET", "/api/v1/gpus", ACTION_LOOK, handle_gpus, "GPUs of all nodes and the jobs on them.",
        {
            { "node", "only those of this node" },
            { "sparse", "1: omit members that are null, false or empty" },
            { "limit", "maximum number of GPUs; the GPUs of one node stay together" },
            { "after", "`next` of the previous page" },
            { "top", "at most this many of each state, and all that their jobs leave unused, that external "
                     "processes use, or that failed a test" },
        },
        NULL, true, .answer = "GpuList" },
    { "GET", "/api/v1/gpus/history", ACTION_LOOK, handle_history, "GPU load over the last week.",
        {
            { "gpu", "only this one: node:0, 0 on the only node, or its uuid" },
            { "since", "RFC 3339 or an age such as 1h; default ten minutes" },
            { "step", "seconds of one point: below 60, or whole minutes" },
        },
        NULL, true, .answer = "GpuHistory" },
    { "GET", "/api/v1/history", ACTION_LOOK, handle_ended, "Ended jobs, newest first, or sums over them.",
        {
            { "user", "only jobs of this user (name or number)" },
            { "name", "only jobs whose name matches this pattern (* and ?)" },
            { "state", "only these, comma-separated: done, failed, cancelled" },
            { "since", "ended since then: RFC 3339 or an age such as 7d" },
            { "until", "ended before then: RFC 3339 or an age" },
            { "limit", "maximum number of jobs" },
            { "by", "sums instead of jobs, per user, group, day or node" },
        },
        NULL, .answer = "History", .is_of_record = true },
    { "GET", "/api/v1/forecasts", ACTION_LOOK, handle_forecasts,
        "The last forecasts of starts, and how many of the starts were within their intervals.",
        { { NULL, NULL } }, NULL, .answer = "ForecastList" },
    { "POST", "/api/v1/gpus/pause", ACTION_MANAGE, handle_pause, "Starts no new jobs on these GPUs.",
        { { NULL, NULL } }, &mark_request_record },
    { "POST", "/api/v1/gpus/release", ACTION_MANAGE, handle_release_gpus,
        "Pauses these GPUs and closes them, for a reset.", { { NULL, NULL } }, &mark_request_record },
    { "POST", "/api/v1/gpus/resume", ACTION_MANAGE, handle_resume, "Resumes paused or released GPUs.",
        { { NULL, NULL } }, &mark_request_record },
    { "POST", "/api/v1/gpus/policy", ACTION_MANAGE, handle_policy,
        "Sets how to treat external processes on these GPUs.", { { NULL, NULL } }, &policy_request_record },
    { "GET", "/api/v1/nodes", ACTION_LOOK, handle_nodes, "Nodes and their features.",
        {
            { "node", "only this one" },
            { "limit", "maximum number of nodes" },
            { "after", "`next` of the previous page" },
        },
        NULL, true, .answer = "NodeList" },
    { "POST", "/api/v1/nodes/tokens", ACTION_ADMIT, handle_node_token,
        "Creates a token with which one machine can join.", { { NULL, NULL } }, &node_token_request_record },
    { "POST", "/api/v1/nodes/{name}/forget", ACTION_ADMIT, handle_forget, "Removes a node.",
        { { NULL, NULL } }, &forget_request_record },
    { "POST", "/api/v1/nodes/{name}/drain", ACTION_MANAGE, handle_drain, "Starts no new jobs on this node.",
        { { NULL, NULL } }, &mark_request_record },
    { "POST", "/api/v1/nodes/{name}/resume", ACTION_MANAGE, handle_node_resume, "Resumes a drained node.",
        { { NULL, NULL } }, &mark_request_record },
    { "POST", "/api/v1/nodes/{name}/parking", ACTION_MANAGE, handle_node_parking,
        "Stores the result of a test of parking on this node.", { { NULL, NULL } },
        &park_proof_request_record },
    { "POST", "/api/v1/nodes/{name}/fence", ACTION_MANAGE, handle_fence,
        "Confirms that this node is off: its attempts have ended.", { { NULL, NULL } },
        &mark_request_record },
    { "POST", "/api/v1/reservations", ACTION_MANAGE, handle_reserve,
        "Reserves GPUs for some users and some time.", { { NULL, NULL } }, &reserve_request_record },
    { "GET", "/api/v1/reservations", ACTION_LOOK, handle_reservations, "Current and planned reservations.",
        { { NULL, NULL } }, NULL, .answer = "ReservationList", .is_of_record = true },
    { "DELETE", "/api/v1/reservations/{id}", ACTION_MANAGE, handle_unreserve, "Removes a reservation.",
        { { NULL, NULL } }, NULL },
    { "GET", "/api/v1/users", ACTION_LOOK, handle_users, "Jobs, usage and limits of users and groups.",
        { { NULL, NULL } }, NULL, .answer = "AccountList", .is_of_record = true },
    { "GET", "/api/v1/partitions", ACTION_LOOK, handle_partitions,
        "Partitions: named sets of nodes, with their users and limits.", { { NULL, NULL } }, NULL,
        .answer = "PartitionList", .is_of_record = true },
    { "GET", "/api/v1/journal", ACTION_AUDIT, handle_journal,
        "All events with the data a replay needs, one JSON object per line.",
        { { "after", "sequence number to begin after" } }, NULL },
    { "GET", "/api/v1/events", ACTION_LOOK, handle_events,
        "Changes of all jobs once they are durable (text/event-stream).",
        { { "after", "sequence number to begin after; same as the header Last-Event-ID" } }, NULL },
    { "POST", "/api/v1/tokens", ACTION_TOKEN, handle_make_token,
        "Creates a token for TCP; only on the unix socket.", { { NULL, NULL } }, &token_request_record },
    { "GET", "/api/v1/tokens", ACTION_TOKEN, handle_tokens, "The caller's valid tokens, without secrets.",
        { { "all", "1: tokens of all users, for administrators" } }, NULL, .answer = "TokenList" },
    { "DELETE", "/api/v1/tokens/{id}", ACTION_TOKEN, handle_revoke_token,
        "Revokes a token; administrators can revoke any token.", { { NULL, NULL } }, NULL },
    { "POST", "/api/v1/logins", ACTION_TOKEN, handle_login,
        "Creates a one-time address of the web page; only on the unix socket.", { { NULL, NULL } },
        &login_request_record },
    { "POST", "/api/v1/sessions", ACTION_GREET, handle_open_session,
        "Exchanges the secret of a one-time address for the cookie of a session.", { { NULL, NULL } },
        &session_request_record },
    { "DELETE", "/api/v1/sessions", ACTION_GREET, handle_close_session, "Ends the session of the cookie.",
        { { NULL, NULL } }, NULL },
    { "GET", "/api/v1/whoami", ACTION_GREET, handle_whoami,
        "The caller's user and role, and how they were determined.", { { NULL, NULL } }, NULL,
        .answer = "Caller", .is_of_record = true },
    { "GET", "/api/v1/config", ACTION_LOOK, handle_config, "Effective settings, and where each is set.",
        { { NULL, NULL } }, NULL, .answer = "Settings", .is_of_record = true },
    { "GET", "/api/v1/cluster", ACTION_GREET, handle_cluster,
        "Role of this controller among several, and the leader; a standby answers this as well.",
        { { NULL, NULL } }, NULL, .answer = "Cluster" },
    { "GET", "/api/v1/version", ACTION_GREET, handle_version, "Version and identity of this mgpud.",
        { { NULL, NULL } }, NULL, .answer = "Version" },
    { "GET", "/api/v1/limits", ACTION_GREET, handle_limits, "All hard limits.", { { NULL, NULL } }, NULL,
        .answer = "LimitList", .is_of_record = true },
    { "GET", "/api/v1/healthz", ACTION_GREET, handle_health, "\"ok\" while mgpud is working.",
        { { NULL, NULL } }, NULL },
    { "GET", "/healthz", ACTION_GREET, handle_health, "The same.", { { NULL, NULL } }, NULL },
    { "GET", "/api/v1/openapi.json", ACTION_GREET, handle_openapi, "This table as OpenAPI 3.1.",
        { { NULL, NULL } }, NULL },
    { "GET", "/openapi.json", ACTION_GREET, handle_openapi, "The same.", { { NULL, NULL } }, NULL },
    { "GET", "/", ACTION_GREET, handle_page, "The web page.", { { NULL, NULL } }, NULL },
    { "GET", "/page/{name}", ACTION_GREET, handle_page, "A file of the web page.", { { NULL, NULL } }, NULL },
    { "POST", "/acquire", ACTION_SUBMIT, handle_acquire,
        "Waits until one of the caller's processes has its GPUs; disconnecting withdraws the request.",
        { { "return", "1: the connection was lost; wait for the request of this process, if there is one" } },
        &acquire_request_record, .is_for_guests = true },
    { "GET", "/jobs", ACTION_LOOK, handle_plain_jobs, "All jobs, in short form.", { { NULL, NULL } }, NULL,
        .is_costly = true, .is_of_record = true, .is_for_guests = true },
    { "GET", "/metrics", ACTION_LOOK, handle_metrics, "Metrics for Prometheus, as text.", { { NULL, NULL } },
        NULL },
    { "GET", "/status", ACTION_LOOK, handle_status, "Counts of GPUs and jobs.", { { NULL, NULL } }, NULL,
        .is_for_guests = true },
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const struct route *route_all(size_t *ret_count)
{
    *ret_count = ROUTES;
    return routes;
}

/* The variable parts of a path. */
struct place {
    uint64_t id;
    bool has_element;
    uint32_t element;
    char name[SERVE_NAME_SIZE];
};

/* A number without leading zeros; returns its length, 0: none. */
static size_t read_number(const char *text, uint64_t max, uint64_t *ret)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 19 || (text[0] == '0' && n > 1))
        return 0;
    *ret = strtoull(text, NULL, 10);
    return *ret <= max ? n : 0;
}

static size_t read_id(const char *pattern, const char *text, struct place *ret)
{
    uint64_t index = 0;
    size_t n = read_number(text, INT64_MAX, &ret->id);
    bool may_have_element = strncmp(pattern, JOBS_PATH, strlen(JOBS_PATH)) == 0;
    if (n == 0 || ret->id == 0 || text[n] != '.' || !may_have_element)
        return ret->id == 0 ? 0 : n;
    size_t more = read_number(text + n + 1, ARRAY_INDEX_MAX, &index);
    ret->has_element = true;
    ret->element = (uint32_t)index;
    return more > 0 ? n + 1 + more : 0;
}

static size_t read_name(const char *text, struct place *ret)
{
    size_t n = strcspn(text, "/");
    if (n == 0 || n >= sizeof(ret->name))
        return 0;
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)n, text);
    return n;
}

/* Matches a path; the parts for "{id}" and "{name}" are stored in *ret. */
static bool is_match(const char *pattern, const char *path, struct place *ret)
{
    const char *word = strchr(pattern, '{');
    *ret = (struct place){ 0 };
    if (word == NULL)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(word - pattern);
    if (strncmp(pattern, path, before) != 0)
        return false;
    bool is_id = strncmp(word, ID_WORD, strlen(ID_WORD)) == 0;
    size_t n = is_id ? read_id(pattern, path + before, ret) : read_name(path + before, ret);
    return n > 0 && strcmp(word + strlen(is_id ? ID_WORD : NAME_WORD), path + before + n) == 0;
}

static const struct route *find_route(const char *path, const char *method, struct place *ret)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    for (size_t i = 0; i < ROUTES; i++)
        if (strcmp(routes[i].method, wanted) == 0 && is_match(routes[i].path, path, ret))
            return &routes[i];
    return NULL;
}

/* 405 with the methods allowed for this path, else 404. */
static void reply_no_route(struct request *request)
{
    struct error err = { 0 };
    struct buffer allowed = { 0 };
    struct place place;
    for (size_t i = 0; i < ROUTES; i++) {
        if (!is_match(routes[i].path, request->path, &place))
            continue;
        bool is_get = strcmp(routes[i].method, "GET") == 0;
        buffer_printf(
            &allowed, "%s%s%s", allowed.length > 0 ? ", " : "", routes[i].method, is_get ? ", HEAD" : "");
    }
    if (allowed.length > 0) {
        request_add_header(request, "Allow", buffer_text(&allowed));
        (void)error_set(&err, -ENOSYS, "%s is not supported here; use %s", request->message.method,
            buffer_text(&allowed));
    } else {
        (void)error_set(&err, -ENOENT, "no such path: %.200s", request->path);
        (void)error_hint(&err, "GET /openapi.json lists all paths");
    }
    buffer_clear(&allowed);
    request_reply_problem(request, &err);
}

bool route_is_of_record(const struct request *request)
{
    struct place place;
    _cleanup_free_ char *path = xstrndup(request->message.target, strcspn(request->message.target, "?"));
    const struct route *route = find_route(path, request->message.method, &place);
    return route != NULL && route->is_of_record;
}

static int check_query(struct request *request, struct error *err)
{
    const char *known[ROUTE_PARAMETERS_MAX + 1] = { NULL };
    for (size_t i = 0; i < ROUTE_PARAMETERS_MAX && request->route->parameters[i].name != NULL; i++)
        known[i] = request->route->parameters[i].name;
    return query_check(&request->query, known, err);
}

static void hand_over(struct request *request)
{
    if (request->has_element)
        element_find(request, request->route->handle);
    else
        request->route->handle(request);
}

/* If an administrator runs a forwarder (ssh -L, a proxy), the kernel identifies its users as that
 * administrator. */
static enum role role_here(const struct request *request)
{
    enum role role = rights_role(request->serve, request->who.uid);
    bool is_high = role == ROLE_ADMIN || role == ROLE_OPERATOR;
    return is_high && !request->is_vouched ? ROLE_USER : role;
}

static int check_scope(const struct request *request, struct error *err)
{
    const struct identity_token *token = &request->who.token;
    unsigned needed = scope_needed(request->route->action, true);
    if (token->id == 0 || needed == 0 || (token->scopes & needed) != 0)
        return 0;
    return core_refuse_scope(&request->who, needed, err);
}

/* No process of a guest runs as the user of this mgpud, and guests see nothing but numbers of its jobs. */
static int check_guest(const struct request *request, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    if (request->route->is_for_guests || request->route->action == ACTION_GREET)
        return 0;
    (void)error_set(err, -EPERM,
        "this mgpud runs as %s and only starts jobs of that user; others get GPUs from it with srun",
        usernames_name(request->serve->names, controller->admin_uid));
    return error_hint(err, "use the one for all users (--socket " SYSTEM_SOCKET
                           "), or, if this machine has none, start your own: mgpud --detach");
}

/* Costly requests wait for their turn, as do all requests of a user who has used much of the loop's time. */
static void serve_in_turn(struct request *request)
{
    bool is_admin = request->who.role == ROLE_ADMIN;
    uint32_t uid = request->who.is_known ? request->who.uid : USER_UNKNOWN;
    if (request->route->is_costly)
        fair_queue_add(request, hand_over);
    else if (is_admin || users_has_time(request->serve->users, uid, clock_boot_us()))
        hand_over(request);
    else if (strcmp(request->route->method, "GET") == 0)
        fair_queue_add(request, hand_over);
    else
        fair_queue_add_change(request, hand_over);
}

/* Called when the caller has been identified. */
static void run_route(struct request *request)
{
    struct error err = { 0 };
    uint32_t uid = request->who.is_known ? request->who.uid : USER_UNKNOWN;
    if (request->who.is_known) {
        request->who.role = role_here(request);
        request->who.is_guest = rights_is_guest(request);
        request->who.first_job = core_first_own(request->serve->controller->core, uid);
    }
    int r = users_request(request->serve->users, uid, clock_boot_ms(), 1, &err);
    if (r == 0 && request->who.is_known)
        r = connection_count_as(request->connection, uid, &err);
    if (r == 0 && request->route->action != ACTION_GREET && !request->who.is_known) {
        r = error_set(&err, -ENOKEY, "the request is not authenticated");
        (void)error_hint(&err, "use the unix socket, or a token from `mgpu token create`");
    }
    if (r == 0 && request->who.is_guest)
        r = check_guest(request, &err);
    /* Permission for a particular job is checked again when the job is found. */
    if (r == 0 && !role_permits(request->who.role, request->route->action, true)) {
        r = error_set(&err, -EPERM, "this requires the role %s, and yours is %s",
            role_name(role_needed(request->route->action)), role_name(request->who.role));
        (void)error_hint(&err, "%s",
            request->is_vouched                      ? CORE_ROLES_HINT
            : token_is_of_job(request->who.token.id) ? JOB_ROLES_HINT
                                                     : PLAIN_TCP_HINT);
    }
    if (r == 0)
        r = check_scope(request, &err);
    if (r == 0)
        r = check_query(request, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    serve_in_turn(request);
}

/* Checks the connection of a request over TCP from this machine. */
static int check_way(struct request *request, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    const struct tcp_state *tcp = &controller->tcp_state;
    int r = guard_check_host(&request->message, controller->options.listen, !tcp->lacks_localhost, err);
    if (r < 0 || !tcp->is_contested || !guard_is_browser(&request->message))
        return r;
    request_add_header(request, "Clear-Site-Data", "\"cache\", \"cookies\", \"storage\"");
    (void)error_set(err, -EPERM,
        "another user's program had this port when mgpud was started: browsers may still run what it sent "
        "them");
    return error_hint(err, "an administrator can restart mgpud, preferably with another port (--listen); "
                           "programs other than browsers "
                           "are served");
}

void route_dispatch(struct request *request)
{
    struct error err = { 0 };
    turns_touch(request->serve->controller->turns);
    bool is_unix = connection_is_unix(request->connection);
    bool is_remote = connection_is_remote(request->connection);
    bool is_job = connection_job(request->connection) != NULL;
    const char *authorization = http_message_header(&request->message, "authorization");
    int r = 0;
    if (is_unix && authorization != NULL && munge_is_scheme(authorization))
        authorization = NULL; // the kernel identifies the caller too
    if (!is_unix && !is_remote && !is_job)
        r = check_way(request, &err);
    /* A page of another site has no token; over TLS, a token or the cookie of a session identifies the
     * caller. */
    if (r == 0 && !is_unix && !is_job && !(is_remote && authorization != NULL))
        r = guard_check_site(&request->message, is_remote, &err);
    const struct controller *controller = request->serve->controller;
    if (r == 0 && controller->standby == NULL && !cluster_is_certain(controller->cluster)) {
        r = error_set(&err, -EREMCHG, "this controller no longer leads the cluster");
        (void)error_hint(&err, "try again in some seconds; jobs are not affected");
    }
    if (r == 0 && authorization == NULL)
        r = guard_check_forwarding(&request->message, &err);
    if (r == 0)
        r = guard_check_body(&request->message, &err);
    if (r == 0 && is_job && authorization == NULL)
        r = job_access_identify(request, &err);
    if (r == 0)
        r = query_parse(request->message.target, &request->path, &request->query, &err);
    if (r < 0) {
        request_refuse(request, &err);
        return;
    }
    refer_to_all(request);
    struct place place = { 0 };
    request->route = find_route(request->path, request->message.method, &place);
    request->job = place.id;
    request->has_element = place.has_element;
    request->element = place.element;
    memcpy(request->name, place.name, sizeof(request->name));
    if (request->route == NULL) {
        reply_no_route(request);
        return;
    }
    request->method = request->route->method;
    request->label = request->route->path;
    request->is_vouched = is_unix || authorization != NULL;
    bool may_have_session = !is_unix && !is_job && authorization == NULL;
    _cleanup_free_ char *cookie = may_have_session ? sessions_cookie(request) : NULL;
    if (cookie != NULL)
        sessions_identify(request, cookie, run_route);
    else if (authorization == NULL)
        run_route(request);
    else if (munge_is_scheme(authorization))
        munge_identify(request, authorization, run_route);
    else
        tokens_identify(request, authorization, run_route);
}
