/* SPDX-License-Identifier: MIT */
/*
 * One loop: signals, changes of the two files, events of mgpud, the end of mgpud, and timers. Callbacks
 * record what is to be done; `turn` does it, stops when the connection to mgpud is lost, and starts again
 * when it is back.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/leaving_signals.h"
#include "compat/feed/feed.h"

#define SAVE_MS        500 // between a change and writing it
#define DELAY_FIRST_MS 50
#define DELAY_MAX_MS   1000
#define OWN_FDS        4 // descriptors of the loop, before those of the outputs

/* --- mgpud --- */

static void lose(struct feed *feed, const struct error *err)
{
    feed_events_close(&feed->events);
    if (!feed->is_away)
        feed_log_say(&feed->log, "mgpud is unavailable: %s", err->message);
    feed->is_away = true;
    feed->delay_ms = feed->delay_ms == 0 ? DELAY_FIRST_MS : feed->delay_ms * 2;
    if (feed->delay_ms > DELAY_MAX_MS)
        feed->delay_ms = DELAY_MAX_MS;
    feed->connect_ms = clock_boot_ms() + feed->delay_ms;
}

/* True if nodes restrict jobs to their own GPUs: the machine's numbers are then meaningless in a job. */
int feed_nodes_query(struct feed *feed, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t i = 0, k = 0;
    json_t *node = NULL, *feature = NULL;
    int r = client_get(&feed->call->client, API_PATH "/nodes", &answer, err);
    if (r < 0)
        return r;
    bool was_spread = feed->is_spread;
    feed->is_enforced = feed->is_spread = false;
    json_array_foreach(json_object_get(answer, "nodes"), i, node)
        json_array_foreach(json_object_get(node, "features"), k,
            feature) if (field_is(feature, "name", "devices") && json_is_true(json_object_get(feature, "on")))
            feed->is_enforced = true;
    json_array_foreach(json_object_get(answer, "nodes"), i, node) feed->is_spread |=
        field_is_known(node, "address");
    if (feed->is_spread && !was_spread)
        feed_log_say(&feed->log, "jobs may run on other machines, which do not have " FEED_LOG_FOLDER
                                 ": logs are stored by mgpu (mgpu logs JOB)");
    return 0;
}

/* Job numbers are meaningless to an mgpud with another store, which does not have the jobs that waited or
 * ran. */
static int ask_instance(struct feed *feed, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&feed->call->client, API_PATH "/version", &answer, err);
    const char *instance = r == 0 ? field_text(answer, "instance") : NULL;
    if (r < 0 || instance == NULL || field_is(feed->state.root, "instance", instance))
        return r;
    if (field_text(feed->state.root, "instance") != NULL)
        feed_jobs_forget(feed);
    (void)json_object_set_new(feed->state.root, "instance", json_string(instance));
    feed->state.is_dirty = true;
    return 0;
}

static int connect_again(struct feed *feed, struct error *err)
{
    if (feed->daemon.start_ms > 0 && clock_boot_ms() >= feed->daemon.start_ms) {
        struct error why = { 0 };
        if (feed_daemon_start(&feed->daemon, &why) < 0) {
            feed_log_problem(&feed->log, &why);
            feed->daemon.start_ms = clock_boot_ms() + feed->daemon.delay_ms;
        }
    }
    int r = feed_events_open(&feed->events, &feed->call->client, err);
    if (r == 0)
        r = ask_instance(feed, err);
    if (r == 0)
        r = feed_nodes_query(feed, err);
    if (r == 0 && feed->is_fresh)
        r = feed_gpus_sync(feed, true, err);
    if (r < 0) {
        feed_events_close(&feed->events);
        return r;
    }
    feed->is_fresh = false;
    if (feed->is_away)
        feed_log_say(&feed->log, "mgpud is back");
    feed->is_away = false;
    feed->delay_ms = 0;
    feed->sync_ms = 0;
    feed_jobs_note_all(feed);
    return 0;
}

/* --- turns --- */

static int turn(struct feed *feed, int64_t now, struct error *err)
{
    int r = 0;
    if (feed_events_fd(&feed->events) < 0) {
        if (now < feed->connect_ms)
            return 0;
        r = connect_again(feed, err);
    }
    if (r == 0 && (now >= feed->sync_ms || now >= feed->save_ms || now >= feed->missing_ms)) {
        feed->save_ms = INT64_MAX;
        r = feed_sync(feed, now, err);
    }
    if (r == 0 && now >= feed->read_ms) {
        feed->read_ms = now + feed->settings->monitor_ms;
        feed_lines_read(feed);
    }
    if (r == 0 && feed->at < feed->n_lines && now >= feed->hand_ms)
        r = feed_lines_hand(feed, err);
    if (r == 0)
        r = feed_jobs_refresh(feed, err);
    if ((feed->state.is_dirty || feed->is_gpu_news) && feed->save_ms == INT64_MAX)
        feed->save_ms = now + SAVE_MS;
    return r;
}

static int64_t earliest(const struct feed *feed)
{
    bool is_connected = feed_events_fd(&feed->events) >= 0;
    const int64_t times[] = {
        is_connected ? INT64_MAX : feed->connect_ms,
        is_connected ? feed->sync_ms : INT64_MAX,
        is_connected ? feed->read_ms : INT64_MAX,
        is_connected ? feed->save_ms : INT64_MAX,
        is_connected ? feed->missing_ms : INT64_MAX,
        is_connected && feed->at < feed->n_lines ? feed->hand_ms : INT64_MAX,
    };
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        first = times[i] < first ? times[i] : first;
    return first;
}

static int wait_ms(const struct feed *feed, int at_most_ms)
{
    int64_t first = earliest(feed), now = clock_boot_ms();
    int64_t most = at_most_ms < 0 ? INT64_MAX : now + at_most_ms;
    first = first < most ? first : most;
    if (first == INT64_MAX)
        return -1;
    if (first <= now)
        return 0;
    return first - now < INT_MAX ? (int)(first - now) : INT_MAX;
}

/* Handles a failure of this turn: requests to mgpud are retried later; others are reported and retried at the
 * next opportunity. */
static void take_failure(struct feed *feed, int r, const struct error *err)
{
    if (r >= 0)
        return;
    if (client_is_loss(r)) {
        lose(feed, err);
        return;
    }
    feed_say_once(feed, err);
    feed->sync_ms = clock_boot_ms() + feed->settings->state_ms;
    if (feed_events_fd(&feed->events) < 0)
        lose(feed, err);
}

static void loop(struct feed *feed, int signals)
{
    for (;;) {
        struct error err = { 0 };
        take_failure(feed, turn(feed, clock_boot_ms(), &err), &err);
        struct pollfd fds[OWN_FDS + FEED_OUTPUTS_MAX + 1] = { { .fd = signals, .events = POLLIN },
            { .fd = feed->inotify_fd, .events = POLLIN },
            { .fd = feed_events_fd(&feed->events), .events = POLLIN },
            { .fd = feed->daemon.pidfd, .events = POLLIN } };
        int output_ms = feed_outputs_poll(&feed->outputs, fds + OWN_FDS);
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms(feed, output_ms)) < 0)
            continue;
        if (fds[0].revents != 0)
            return;
        if (fds[1].revents != 0)
            feed_watch_read(feed);
        if (fds[2].revents != 0)
            take_failure(feed, feed_events_read(&feed->events, &err), &err);
        if (fds[3].revents != 0)
            feed_daemon_note_end(&feed->daemon);
        feed_outputs_advance(&feed->outputs, fds + OWN_FDS);
    }
}

static int open_signals(int *ret_fd, struct error *err)
{
    sigset_t set;
    leaving_signals(&set);
    *ret_fd = leaving_signals_open(&set, err);
    return *ret_fd < 0 ? *ret_fd : 0;
}

int feed_run(struct feed *feed, struct error *err)
{
    _cleanup_close_ int signals = -1;
    int r = open_signals(&signals, err);
    if (r == 0)
        r = feed_watch_open(feed, err);
    if (r < 0)
        return r;
    feed->save_ms = feed->missing_ms = INT64_MAX;
    /* A user who reads this may press Ctrl-C, which is handled from here on. */
    feed_log_say(&feed->log, "started; jobs come from %s. Ctrl-C stops the scheduler, jobs continue",
        feed->settings->jobs_path[0] != '\0' ? feed->settings->jobs_path : "no file");
    /* No request waits for an mgpud that is restarting or whose connection was lost: this process restarts
     * only its own mgpud, and another one may have another store, which connect_again() checks first. */
    client_hurry(&feed->call->client);
    loop(feed, signals);
    r = feed_sync_last(feed, err);
    feed_events_close(&feed->events);
    feed_watch_close(feed);
    return r < 0 ? r : EXIT_OK;
}
