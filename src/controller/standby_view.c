/* SPDX-License-Identifier: MIT */
/*
 * Handlers use the controller's core and store between callbacks, so these cannot be replaced while a request
 * is in progress. Requests that arrive when a replacement is due wait until the others have been answered, or
 * for BUSY_MS: a client may read slowly, and an older answer states its age.
 *
 * Loading all jobs takes long in a large cluster, so it is done for at most a twentieth of the time.
 */
#include "controller/standby_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "controller/api/refer.h"
#include "controller/api/route.h"
#include "controller/cluster/cluster.h"
#include "controller/config/groups.h"
#include "controller/http/connection.h"
#include "controller/http/request.h"
#include "controller/http/server.h"
#include "controller/reload.h"

#define FRESH_MS  500   // a view of this age is recent enough
#define COST      20    // a view is used for this many times its loading time
#define UNUSED_MS 10000 // then it is closed, because SQLite's log grows while it is open
#define BUSY_MS   1000
#define LOOK_US   5000

struct standby_view {
    struct controller *controller;
    char *store_dir;
    struct event *answers, *timer;
    struct store_position position;
    int64_t true_ms;            // boot clock: when the store had the whole log; 0: there is no view
    int64_t loaded_ms, cost_ms; // when it was loaded, and how long that took
    int64_t used_ms;
    struct request **waiting; // referenced
    size_t n_waiting;
    int64_t waiting_ms; // since when
};

/* --- a core that decides nothing --- */

static void drop_batch(void *arg, struct store_batch *batch)
{
    store_batch_free(batch);
}

static void send_nothing(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
}

static void close_nothing(void *arg, uint32_t link)
{
}

static void reply(void *arg, void *request, const struct core_answer *answer)
{
    struct standby_view *view = arg;
    serve_reply(view->controller->serve, request, answer);
}

static void publish_nothing(void *arg, const struct job_event *event, const struct job *job)
{
}

static void fetch_nothing(void *arg, uint64_t job)
{
}

static void arm_nothing(void *arg, int64_t boot_ms)
{
}

static uint64_t no_random(void *arg)
{
    return 0;
}

static char *describe_nothing(void *arg, const struct job *job)
{
    return NULL;
}

static const char *user_name(void *arg, uint32_t uid)
{
    struct standby_view *view = arg;
    return serve_user_name(view->controller->serve, uid);
}

static uint32_t group_of(void *arg, uint32_t uid, uint32_t gid)
{
    struct standby_view *view = arg;
    return group_that_counts(&view->controller->options, uid, gid);
}

static const struct core_effects no_effects = {
    .commit = drop_batch,
    .send = send_nothing,
    .close_link = close_nothing,
    .reply = reply,
    .publish = publish_nothing,
    .fetch_spec = fetch_nothing,
    .fetch_end = fetch_nothing,
    .arm = arm_nothing,
    .random = no_random,
    .describe = describe_nothing,
    .user_name = user_name,
    .group_of = group_of,
};

/* --- loading --- */

static void on_durable(void *arg, uint64_t batch)
{
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    struct standby_view *view = arg;
    log_warning("cannot read the store of this standby: %s", err->message);
    view->true_ms = 0; // the next request loads the view again
}

static void on_answers(evutil_socket_t fd, short events, void *arg)
{
    struct standby_view *view = arg;
    store_dispatch(view->controller->store);
}

static void close_view(struct standby_view *view)
{
    struct controller *controller = view->controller;
    if (view->answers != NULL)
        event_free(take_ptr(view->answers));
    store_close(take_ptr(controller->store));
    core_free(take_ptr(controller->core));
    view->true_ms = 0;
}

struct loading {
    struct core *core;
    struct error *err;
    int result;
};

static void load_state(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length)
{
    struct loading *loading = arg;
    if (loading->result == 0)
        loading->result = core_load_state(loading->core, kind, key, bytes, length, loading->err);
}

static void load_job(void *arg, struct job *job)
{
    core_load_job(arg, job);
}

static int load(struct standby_view *view, struct error *err)
{
    struct controller *controller = view->controller;
    const struct store_observer observer = { .arg = view, .on_durable = on_durable, .on_failed = on_failed };
    int r = store_open_reading(
        view->store_dir, &observer, &controller->store, &controller->summary, &view->position, err);
    if (r < 0)
        return r;
    struct core_options options = reload_core_options(controller);
    struct core_effects effects = no_effects;
    effects.arg = view;
    controller->core = core_new(&options, &effects);
    core_load_summary(controller->core, &controller->summary);
    struct loading loading = { .core = controller->core, .err = err };
    r = store_load_state(controller->store, load_state, &loading, err);
    if (r == 0)
        r = loading.result;
    if (r == 0)
        r = store_load_jobs(controller->store, options.recent_done_max, load_job, controller->core, err);
    if (r < 0)
        return r;
    core_load_end_for_reading(controller->core, clock_boot_ms(), clock_wall_ms());
    view->answers =
        event_new(controller->loop, store_fd(controller->store), EV_READ | EV_PERSIST, on_answers, view);
    (void)event_add(view->answers, NULL);
    return 0;
}

/* --- which view --- */

/* The time at which the view was current; that is extended while the log has not grown. */
static int64_t true_ms(const struct standby_view *view, const struct cluster_status *status)
{
    bool is_same = view->true_ms != 0 && view->position.number == status->position.number &&
                   view->position.id == status->position.id;
    return is_same && status->checked_ms > view->true_ms ? status->checked_ms : view->true_ms;
}

static bool is_due(const struct standby_view *view, const struct cluster_status *status)
{
    int64_t now_ms = clock_boot_ms(), least_ms = COST * view->cost_ms;
    if (view->true_ms == 0)
        return true;
    if (true_ms(view, status) >= status->checked_ms)
        return false; // a new view would be the same
    return now_ms - view->loaded_ms >= (least_ms > FRESH_MS ? least_ms : FRESH_MS);
}

static bool is_waiting(const struct standby_view *view, const struct request *request)
{
    for (size_t i = 0; i < view->n_waiting; i++)
        if (view->waiting[i] == request)
            return true;
    return false;
}

/* True if a request is in progress, apart from this one and those that wait. */
static bool is_busy(const struct standby_view *view, const struct request *asking)
{
    struct connection *connection = view->controller->serve->connections;
    for (; connection != NULL; connection = connection_next(connection)) {
        const struct request *request = connection_request(connection);
        bool is_open = request != NULL && request != asking &&
                       (request->phase == REQUEST_OPEN || request->phase == REQUEST_STREAMING);
        if (is_open && !is_waiting(view, request))
            return true;
    }
    return false;
}

static void renew(struct standby_view *view, const struct cluster_status *status)
{
    int64_t began_ms = clock_boot_ms();
    struct error err = { 0 };
    close_view(view);
    if (status->checked_ms == 0)
        return; // the copy has not been completed yet
    int r = load(view, &err);
    view->loaded_ms = clock_boot_ms();
    view->cost_ms = view->loaded_ms - began_ms;
    if (r == 0) {
        view->true_ms = status->checked_ms;
        return;
    }
    log_warning("cannot read the store of this standby: %s", err.message);
    close_view(view);
}

static void answer(struct standby_view *view, struct request *request, const struct cluster_status *status)
{
    char age[24];
    int64_t now_ms = clock_boot_ms();
    if (view->true_ms == 0) {
        refer_to_leader(request, "this standby has no complete copy of the store yet");
        return;
    }
    view->used_ms = now_ms;
    (void)snprintf(age, sizeof(age), "%" PRId64, now_ms - true_ms(view, status));
    request_add_header(request, "X-Mgpu-Age", age);
    route_dispatch(request);
}

static void answer_waiting(struct standby_view *view, const struct cluster_status *status)
{
    _cleanup_free_ struct request **waiting = take_ptr(view->waiting);
    size_t count = view->n_waiting;
    view->n_waiting = 0;
    for (size_t i = 0; i < count; i++) {
        if (!request_is_over(waiting[i]))
            answer(view, waiting[i], status);
        request_unref(waiting[i]);
    }
}

static void rearm(struct standby_view *view)
{
    (void)evtimer_add(view->timer, &(struct timeval){ .tv_usec = LOOK_US });
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
    struct standby_view *view = arg;
    struct cluster_status status;
    bool is_late = clock_boot_ms() - view->waiting_ms >= BUSY_MS;
    if (view->n_waiting == 0)
        return;
    if (is_busy(view, NULL) && !is_late) {
        rearm(view);
        return;
    }
    cluster_read_status(view->controller->cluster, &status);
    if (!is_busy(view, NULL))
        renew(view, &status);
    answer_waiting(view, &status);
}

void standby_view_serve(struct standby_view *view, struct request *request)
{
    struct cluster_status status;
    cluster_read_status(view->controller->cluster, &status);
    if (view->n_waiting == 0 && !is_due(view, &status)) {
        answer(view, request, &status);
        return;
    }
    if (view->n_waiting == 0 && !is_busy(view, request)) {
        renew(view, &status);
        answer(view, request, &status);
        return;
    }
    if (view->n_waiting == 0) {
        view->waiting_ms = clock_boot_ms();
        rearm(view);
    }
    request_ref(request);
    view->waiting = xreallocarray(view->waiting, view->n_waiting + 1, sizeof(struct request *));
    view->waiting[view->n_waiting++] = request;
}

void standby_view_beat(struct standby_view *view)
{
    if (view->true_ms != 0 && clock_boot_ms() - view->used_ms >= UNUSED_MS && !is_busy(view, NULL))
        close_view(view);
}

/* --- life --- */

struct standby_view *standby_view_new(struct controller *controller, const char *store_dir)
{
    struct standby_view *view = xcalloc(1, sizeof(*view));
    view->controller = controller;
    view->store_dir = xstrdup(store_dir);
    view->timer = evtimer_new(controller->loop, on_timer, view);
    if (view->timer == NULL)
        abort(); // memory
    (void)process_boot_id(controller->boot_id);
    return view;
}

void standby_view_free(struct standby_view *view)
{
    if (view == NULL)
        return;
    for (size_t i = 0; i < view->n_waiting; i++)
        request_unref(view->waiting[i]);
    free(view->waiting);
    close_view(view);
    event_free(view->timer);
    free(view->store_dir);
    free(view);
}
