/* SPDX-License-Identifier: MIT */
/*
 * One loop: signals, changes of the two files, events of mgpud, the end of our own mgpud, and times. What is
 * to be done is noted by who hears of it and done in `turn`, which leaves off when mgpud is lost and begins
 * again when it is back.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/exit_code.h"
#include "cli/feed.h"
#include "cli/field.h"

#define SAVE_MS        500 // between a change and its writing
#define DELAY_FIRST_MS 50
#define DELAY_MAX_MS   1000
#define MISSING_MS     1000 // editors let a file be missing for a moment
#define FILE_CHANGES   (IN_CLOSE_WRITE | IN_MOVED_TO)

/* --- the files --- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The directory is watched, because editors put new files in the place of old ones. */
static int watch_folder(struct feed *feed, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash == NULL ? xstrdup(".") : xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
    int watch = path[0] == '\0' ? -1 : inotify_add_watch(feed->inotify_fd, folder, FILE_CHANGES);
    if (watch < 0 && path[0] != '\0')
        feed_log_say(&feed->log, "%s is looked at now and then only: %s", path, strerror(errno));
    return watch;
}

static void on_change(struct feed *feed, const struct inotify_event *event)
{
    const struct feed_settings *settings = feed->settings;
    const char *name = event->len > 0 ? event->name : "";
    if ((event->mask & IN_Q_OVERFLOW) != 0)
        feed->read_ms = feed->sync_ms = 0;
    if (event->wd == feed->jobs_watch && strcmp(name, base_name(settings->jobs_path)) == 0)
        feed->read_ms = 0;
    if (event->wd == feed->state_watch && strcmp(name, base_name(settings->state_path)) == 0)
        feed->sync_ms = 0;
}

static void on_inotify(struct feed *feed)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(feed->inotify_fd, bytes, sizeof(bytes));
    for (char *p = bytes; n > 0 && p < bytes + n;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)p;
        on_change(feed, event);
        p += sizeof(*event) + event->len;
    }
}

/* --- mgpud --- */

static void lose(struct feed *feed, const struct error *err)
{
    feed_events_close(&feed->events);
    if (!feed->is_away)
        feed_log_say(&feed->log, "mgpud is away: %s", err->message);
    feed->is_away = true;
    feed->delay_ms = feed->delay_ms == 0 ? DELAY_FIRST_MS : feed->delay_ms * 2;
    if (feed->delay_ms > DELAY_MAX_MS)
        feed->delay_ms = DELAY_MAX_MS;
    feed->connect_ms = clock_boot_ms() + feed->delay_ms;
}

/* Do nodes keep jobs from GPUs that are not theirs? Then numbers of the machine mean nothing in a job. */
static int ask_nodes(struct feed *feed, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t i = 0, k = 0;
    json_t *node = NULL, *feature = NULL;
    int r = client_get(&feed->call->client, API_PATH "/nodes", &answer, err);
    if (r < 0)
        return r;
    feed->is_enforced = false;
    json_array_foreach(json_object_get(answer, "nodes"), i, node)
        json_array_foreach(json_object_get(node, "features"), k,
            feature) if (field_is(feature, "name", "devices") && json_is_true(json_object_get(feature, "on")))
            feed->is_enforced = true;
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
        r = ask_nodes(feed, err);
    if (r == 0 && feed->is_fresh)
        r = feed_gpus_sync(feed, true, err);
    if (r < 0)
        return r;
    feed->is_fresh = false;
    if (feed->is_away)
        feed_log_say(&feed->log, "mgpud is back");
    feed->is_away = false;
    feed->delay_ms = 0;
    feed->sync_ms = 0;
    feed_jobs_note_all(feed);
    return 0;
}

/* --- the state file --- */

/* An edited file that is right takes the place of what was known; paused_gpus is compared by the sync. */
static void take_edits(struct feed *feed, const char *text)
{
    json_t *root = NULL;
    struct error err = { 0 };
    if (feed_state_parse(text, strlen(text), feed->settings->state_path, &root, &err) < 0) {
        if (strcmp(feed->said, err.message) != 0)
            feed_log_problem(&feed->log, &err);
        memcpy(feed->said, err.message, sizeof(feed->said));
        return;
    }
    const json_t *paused = json_object_get(root, "paused_gpus");
    if (paused != NULL)
        (void)json_object_set(feed->state.root, "paused_gpus", json_object_get(root, "paused_gpus"));
    json_decref(root);
    feed->state.is_dirty = true;
}

static int reset(struct feed *feed, struct error *err)
{
    feed_log_say(&feed->log, "%s was deleted: lines and pauses are forgotten", feed->settings->state_path);
    int r = feed_state_reset(&feed->state, err);
    if (r == 0)
        r = feed_gpus_sync(feed, true, err);
    if (r < 0)
        return r;
    feed_jobs_index(feed);
    feed->content = 0;
    feed->read_ms = 0;
    return feed_state_save(&feed->state, err);
}

/* Looks at the file before it is written; *ret_may_write is false while somebody else's hand is in it. */
static int look(struct feed *feed, int64_t now, bool *ret_may_write, struct error *err)
{
    enum feed_state_look what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    *ret_may_write = true;
    int r = feed_state_look(&feed->state, &what, &text, err);
    if (r < 0 || what == FEED_STATE_SAME) {
        feed->missing_ms = INT64_MAX;
        return r;
    }
    if (what == FEED_STATE_EDITED) {
        json_t *checked = NULL;
        take_edits(feed, text);
        *ret_may_write = feed_state_parse(text, strlen(text), "", &checked, NULL) == 0;
        json_decref(checked);
        free(feed->edited);
        feed->edited = take_ptr(text);
        return 0;
    }
    *ret_may_write = false;
    if (feed->missing_ms == INT64_MAX)
        feed->missing_ms = now + MISSING_MS;
    if (now < feed->missing_ms)
        return 0;
    feed->missing_ms = INT64_MAX;
    return reset(feed, err);
}

/* Writes what is known, unless somebody edited or deleted the file while GPUs were asked for: then at once
 * again. */
static int save(struct feed *feed, struct error *err)
{
    enum feed_state_look what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    int r = feed_state_look(&feed->state, &what, &text, err);
    if (r < 0)
        return r;
    bool is_as_read =
        what == FEED_STATE_SAME || (what == FEED_STATE_EDITED && text_equal(text, feed->edited));
    if (is_as_read)
        return feed_state_save(&feed->state, err);
    feed->sync_ms = 0;
    return 0;
}

/* GPUs, pauses and the file, in both directions. */
static int sync_state(struct feed *feed, int64_t now, struct error *err)
{
    bool may_write = true;
    int r = look(feed, now, &may_write, err);
    if (r == 0)
        r = feed_gpus_sync(feed, false, err);
    if (r < 0)
        return r;
    feed->sync_ms = now + feed->settings->state_ms;
    feed->is_gpu_news = false;
    return feed->state.is_dirty && may_write ? save(feed, err) : 0;
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
        r = sync_state(feed, now, err);
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

static int wait_ms(const struct feed *feed)
{
    int64_t first = earliest(feed), now = clock_boot_ms();
    if (first == INT64_MAX)
        return -1;
    if (first <= now)
        return 0;
    return first - now < INT_MAX ? (int)(first - now) : INT_MAX;
}

/* What this turn could not do: mgpud is asked again later, all else is said and tried at the next occasion.
 */
static void take_failure(struct feed *feed, int r, const struct error *err)
{
    if (r >= 0)
        return;
    if (client_is_loss(r)) {
        lose(feed, err);
        return;
    }
    if (strcmp(feed->said, err->message) != 0)
        feed_log_problem(&feed->log, err);
    memcpy(feed->said, err->message, sizeof(feed->said));
    feed->sync_ms = clock_boot_ms() + feed->settings->state_ms;
    if (feed_events_fd(&feed->events) < 0)
        lose(feed, err);
}

static void loop(struct feed *feed, int signals)
{
    for (;;) {
        struct error err = { 0 };
        take_failure(feed, turn(feed, clock_boot_ms(), &err), &err);
        struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
            { .fd = feed->inotify_fd, .events = POLLIN },
            { .fd = feed_events_fd(&feed->events), .events = POLLIN },
            { .fd = feed->daemon.pidfd, .events = POLLIN } };
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms(feed)) < 0)
            continue;
        if (fds[0].revents != 0)
            return;
        if (fds[1].revents != 0)
            on_inotify(feed);
        if (fds[2].revents != 0)
            take_failure(feed, feed_events_read(&feed->events, &err), &err);
        if (fds[3].revents != 0)
            feed_daemon_note_end(&feed->daemon);
    }
}

static int open_signals(int *ret_fd, struct error *err)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)sigaddset(&set, signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC);
    return *ret_fd < 0 ? error_set_errno(err, -errno, "cannot wait for signals") : 0;
}

/* Looks once more so that no edit of the last moment is lost, and writes. */
static int save_last(struct feed *feed, struct error *err)
{
    enum feed_state_look what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    int r = feed_state_look(&feed->state, &what, &text, err);
    if (r == 0 && what != FEED_STATE_SAME) {
        feed_log_say(
            &feed->log, "stopped; %s is left as it was edited. Jobs go on", feed->settings->state_path);
        return 0;
    }
    if (r == 0)
        r = feed_state_save(&feed->state, err);
    if (r == 0)
        feed_log_say(&feed->log, "stopped; the state is saved in %s. Jobs go on", feed->settings->state_path);
    return r;
}

int feed_run(struct feed *feed, struct error *err)
{
    _cleanup_close_ int signals = -1;
    int r = open_signals(&signals, err);
    if (r < 0)
        return r;
    feed->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (feed->inotify_fd < 0)
        return error_set_errno(err, -errno, "cannot watch files");
    feed->jobs_watch = watch_folder(feed, feed->settings->jobs_path);
    feed->state_watch = watch_folder(feed, feed->settings->state_path);
    feed->save_ms = feed->missing_ms = INT64_MAX;
    loop(feed, signals);
    r = save_last(feed, err);
    feed_events_close(&feed->events);
    (void)close(feed->inotify_fd);
    free(take_ptr(feed->edited));
    return r < 0 ? r : EXIT_OK;
}
