/* SPDX-License-Identifier: MIT */
/*
 * Notifications of jobs (`--notify`). A notification is created with its event and is a row of cluster_state
 * in the same transaction, so a restart loses none. When that is durable, a node delivers it (NOTIFY,
 * NOTIFIED) and the row is updated:
 *
 *      WAITING ──NOTIFY──> (in progress) ──NOTIFIED ok──> SENT
 *         └──10 s, 1 min, 10 min, 1 h── NOTIFIED failed ──after the last──> FAILED
 *      too many of one user in an hour, or disabled: DROPPED at once
 *
 * Whether a delivery is in progress is kept only in memory. After a restart of either side it is repeated:
 * delivery is at least once, with the same number (MGPU_NOTICE). Nothing waits for notifications.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/notification.h"
#include "controller/core/owners.h"
#include "controller/core/state.h"
#include "wire/json_job.h"

#define KIND             "notice"
#define KEY_SIZE         40
#define HOUR_MS          3600000
#define ANSWER_MS        60000 // a node that does not answer within this time after the timeout has failed
#define BUSY_MS          5000  // until the next attempt if a node is too busy
#define NODE_SENDING_MAX 8U
#define USER_SENDING_MAX 2U
#define KEPT_MAX         1000U // finished notifications kept for display

static const int64_t pauses_ms[] = { 10000, 60000, 600000, HOUR_MS };
#define PAUSES (sizeof(pauses_ms) / sizeof(pauses_ms[0]))

/* One that waits. */
struct open_notification {
    struct notification *notification;
    struct notification_user *user;
    uint64_t batch; // it may be sent when this batch is durable
    bool is_sending;
    uint32_t link; // by whom
};

/* Counters of one user. */
struct notification_user {
    uint32_t uid;
    int64_t hour_ms; // start of the counting period
    uint32_t count;  // created in this hour
    uint32_t n_sending;
    struct notification_user *next;
};

struct notifications {
    struct open_notification *open;
    size_t n_open, capacity;
    struct notification *over[KEPT_MAX]; // a ring with the oldest at `first`
    size_t first, n_over;
    struct notification_user *users;
    int64_t looked_ms; // everything due by then waits for a node, a commit or a NOTIFIED
};

static struct notifications *notifications_of(struct core *core)
{
    if (core->notifications == NULL)
        core->notifications = xcalloc(1, sizeof(*core->notifications));
    return core->notifications;
}

static struct notification_user *find_user(struct notifications *notifications, uint32_t uid)
{
    for (struct notification_user *user = notifications->users; user != NULL; user = user->next)
        if (user->uid == uid)
            return user;
    struct notification_user *user = xcalloc(1, sizeof(*user));
    *user = (struct notification_user){ .uid = uid, .next = notifications->users };
    notifications->users = user;
    return user;
}

static void count_notification(struct notification_user *user, int64_t made_ms)
{
    if (made_ms - user->hour_ms >= HOUR_MS || made_ms < user->hour_ms) {
        user->hour_ms = made_ms;
        user->count = 0;
    }
    user->count++;
}

/* --- rows --- */

/* In order of their events. */
static void write_key(const struct notification *notification, char key[KEY_SIZE])
{
    (void)snprintf(key, KEY_SIZE, "%020" PRIu64 ".%u", notification->seq, notification->target);
}

static void put_row(struct core *core, const struct notification *notification)
{
    char key[KEY_SIZE];
    _cleanup_buffer_ struct buffer bytes = { 0 };
    write_key(notification, key);
    (void)record_encode_readable(&notification_record, notification, &bytes, &(struct error){ 0 });
    store_batch_put(core_batch(core)->changes, KIND, key, &bytes);
}

static void remove_row(struct core *core, const struct notification *notification)
{
    char key[KEY_SIZE];
    write_key(notification, key);
    store_batch_remove(core_batch(core)->changes, KIND, key);
}

/* Takes ownership, for display; the oldest is dropped. */
static void keep_over(struct core *core, struct notification *notification)
{
    struct notifications *notifications = notifications_of(core);
    if (notifications->n_over == KEPT_MAX) {
        struct notification *oldest = notifications->over[notifications->first];
        remove_row(core, oldest);
        notification_free(oldest);
        notifications->first = (notifications->first + 1) % KEPT_MAX;
        notifications->n_over--;
    }
    notifications->over[(notifications->first + notifications->n_over++) % KEPT_MAX] = notification;
}

static void add_open(struct core *core, struct notification *notification, uint64_t batch)
{
    struct notifications *notifications = notifications_of(core);
    if (notifications->n_open == notifications->capacity) {
        notifications->capacity = notifications->capacity == 0 ? 16 : notifications->capacity * 2;
        notifications->open =
            xreallocarray(notifications->open, notifications->capacity, sizeof(*notifications->open));
    }
    notifications->open[notifications->n_open++] = (struct open_notification){
        .notification = notification, .user = find_user(notifications, notification->uid), .batch = batch
    };
}

/* It is no longer open. */
static void end_notification(struct core *core, size_t i, enum notification_state state, int64_t now_ms)
{
    struct notifications *notifications = core->notifications;
    struct notification *notification = notifications->open[i].notification;
    memmove(&notifications->open[i], &notifications->open[i + 1],
        (--notifications->n_open - i) * sizeof(*notifications->open));
    notification->state = state;
    notification->over_ms = now_ms;
    notification_shrink(notification);
    put_row(core, notification);
    keep_over(core, notification);
}

/* --- making them --- */

/* The notification event for this event, and whether it was requested; 0: none. */
static enum notify_event classify(
    const struct job *job, const struct job_event *event, enum job_state before, uint32_t *ret_events)
{
    bool is_over = job->state == JOB_DONE && before != JOB_DONE;
    bool is_bad = is_over && (strcmp(json_job_state(job), "failed") == 0 || job->array_failed > 0);
    *ret_events = 0;
    if (job->array_job != 0)
        return 0; // its array notifies for all its elements
    if (is_over) {
        *ret_events = NOTIFY_END | (is_bad ? NOTIFY_FAIL : 0);
        return is_bad ? NOTIFY_FAIL : NOTIFY_END;
    }
    if (event->type == EVENT_STARTED) {
        *ret_events = NOTIFY_START;
        return NOTIFY_START;
    }
    bool is_back = job_park_is_over(job, event);
    if (is_back || job_park_has_begun(job, event)) {
        *ret_events = is_back ? NOTIFY_UNPARK : NOTIFY_PARK;
        return is_back ? NOTIFY_UNPARK : NOTIFY_PARK;
    }
    if (event->type != EVENT_REQUEUED)
        return 0;
    bool has_given_way = event->cause == REQUEUE_PREEMPTED;
    *ret_events = NOTIFY_REQUEUE | (has_given_way ? NOTIFY_PREEMPT : 0);
    return has_given_way ? NOTIFY_PREEMPT : NOTIFY_REQUEUE;
}

/* Why this one is dropped; NULL if it is not. The caller frees it. */
static char *why_dropped(const struct core *core, struct notification_user *user, int64_t now_ms)
{
    uint32_t limit = core->options.notifications.per_hour;
    if (core->options.notifications.is_off)
        return xstrdup("notifications are disabled: setting `notices` is off");
    count_notification(user, now_ms);
    if (user->count <= limit)
        return NULL;
    user->count = limit;
    return xasprintf("more than %u of this user within an hour", limit);
}

/* --- delivery --- */

/* The node of the job, else the one with the fewest deliveries. */
static struct core_node *choose_node(const struct core *core, const struct notification *notification)
{
    struct core_node *own = core_find_node(core, notification->node), *best = NULL;
    if (own != NULL && own->is_up)
        return own->n_sending < NODE_SENDING_MAX ? own : NULL;
    for (size_t i = 0; i < core->n_nodes; i++) {
        struct core_node *node = &core->nodes[i];
        if (node->is_up && node->n_sending < NODE_SENDING_MAX &&
            (best == NULL || node->n_sending < best->n_sending))
            best = node;
    }
    return best;
}

static void send_notify(struct core *core, const struct notification *notification, uint32_t link)
{
    struct notify_target target = { 0 };
    (void)parse_notify(notification->to, &target, NULL);
    _cleanup_free_ char *to = xstrdup(target.to);
    _cleanup_free_ char *user =
        notification->user != NULL ? xstrdup(notification->user) : core_user_name(core, notification->uid);
    struct message_notify notify = {
        .notification = notification->seq,
        .target = notification->target,
        .job = notification->job,
        .uid = notification->uid,
        .gid = notification->gid,
        .user = user,
        .way = target.way,
        .to = to,
        .subject = notification->subject,
        .body = target.way == NOTIFY_MAIL ? notification->body : NULL,
        .json = target.way == NOTIFY_MAIL ? NULL : notification->json,
        .env = notification->env,
        .time_ms = core->options.notifications.time_ms,
    };
    core->effects.send(core->effects.arg, link, &message_notify_record, &notify);
}

static void begin_sending(struct core *core, struct open_notification *open, int64_t now_ms)
{
    bool is_ready =
        !open->is_sending && open->notification->due_ms <= now_ms && open->batch <= core->durable_batch;
    if (!is_ready || open->user->n_sending >= USER_SENDING_MAX)
        return;
    struct core_node *node = choose_node(core, open->notification);
    if (node == NULL)
        return;
    open->is_sending = true;
    open->link = node->link;
    open->notification->due_ms = now_ms + core->options.notifications.time_ms + ANSWER_MS;
    open->user->n_sending++;
    node->n_sending++;
    send_notify(core, open->notification, node->link);
}

static void stop_sending(struct core *core, struct open_notification *open)
{
    struct core_node *node = core_find_link(core, open->link);
    open->is_sending = false;
    open->user->n_sending--;
    if (node != NULL && node->n_sending > 0)
        node->n_sending--;
}

/* The attempt failed. `error` EBUSY: it does not count as one. */
static void note_failure(struct core *core, size_t i, int32_t error, const char *text, int64_t now_ms)
{
    struct notification *notification = core->notifications->open[i].notification;
    if (error == EBUSY) {
        notification->due_ms = now_ms + BUSY_MS;
        return;
    }
    free(notification->text);
    notification->text = xstrdup(text != NULL ? text : strerror(error));
    notification->tries++;
    if (notification->tries > PAUSES) {
        end_notification(core, i, NOTIFICATION_FAILED, now_ms);
        return;
    }
    notification->due_ms = now_ms + pauses_ms[notification->tries - 1];
    put_row(core, notification);
}

/* Sends all that are due. */
static void send_due(struct core *core, int64_t now_ms)
{
    struct notifications *notifications = core->notifications;
    if (notifications != NULL)
        notifications->looked_ms = now_ms;
    for (size_t i = notifications != NULL ? notifications->n_open : 0; i > 0; i--) {
        struct open_notification *open = &notifications->open[i - 1];
        if (!open->is_sending || open->notification->due_ms > now_ms)
            continue;
        stop_sending(core, open);
        note_failure(core, i - 1, ETIMEDOUT, "its node did not report the result", now_ms);
    }
    for (size_t i = 0; notifications != NULL && i < notifications->n_open; i++)
        begin_sending(core, &notifications->open[i], now_ms);
}

static int64_t next_ms(const struct core *core)
{
    const struct notifications *notifications = core->notifications;
    int64_t next_ms = TIME_NEVER;
    for (size_t i = 0; notifications != NULL && i < notifications->n_open; i++) {
        const struct open_notification *open = &notifications->open[i];
        int64_t due_ms = open->notification->due_ms;
        if (due_ms > notifications->looked_ms && due_ms < next_ms && open->batch <= core->durable_batch)
            next_ms = due_ms;
    }
    return core_boot_at(core, next_ms);
}

static void on_cut(struct core *core, struct core_node *node, uint32_t link)
{
    struct notifications *notifications = core->notifications;
    for (size_t i = 0; notifications != NULL && i < notifications->n_open; i++) {
        struct open_notification *open = &notifications->open[i];
        if (!open->is_sending || open->link != link)
            continue;
        stop_sending(core, open);
        open->notification->due_ms = core->now_ms;
    }
    node->n_sending = 0;
}

static void on_notified(struct core *core, struct core_node *node, const void *message)
{
    const struct message_notified *result = message;
    struct notifications *notifications = core->notifications;
    for (size_t i = 0; notifications != NULL && i < notifications->n_open; i++) {
        struct open_notification *open = &notifications->open[i];
        if (open->notification->seq != result->notification || open->notification->target != result->target)
            continue;
        if (open->is_sending && open->link != node->link)
            return; // another node is delivering it now
        if (open->is_sending)
            stop_sending(core, open);
        if (result->error != 0) {
            note_failure(core, i, result->error, result->text, core->now_ms);
        } else {
            free(take_ptr(open->notification->text));
            open->notification->tries++;
            end_notification(core, i, NOTIFICATION_SENT, core->now_ms);
        }
        break;
    }
    send_due(core, core->now_ms);
}

/* --- hooks --- */

/* Creates the job's notifications of an event, in the same batch. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    const struct job_event *event = news->event;
    uint32_t events;
    if (job->ask->notify.count == 0)
        return;
    enum notify_event what = classify(job, event, news->before, &events);
    if ((notify_events(job->ask) & events) == 0)
        return;
    _cleanup_free_ char *json =
        core->effects.describe != NULL ? core->effects.describe(core->effects.arg, job) : NULL;
    const char *owner = core_owner_name(core, job);
    int64_t back_ms = job_park_latest_ms(job, core->options.sched.park_bound);
    if (what == NOTIFY_START)
        (void)sched_lender(core->sched, job->id, &back_ms);
    for (uint32_t i = 0; i < job->ask->notify.count; i++) {
        struct notification *notification = notification_new(job, event, what, back_ms, i, json);
        notification->user = owner != NULL && strlen(owner) <= SPEC_NAME_MAX ? xstrdup(owner) : NULL;
        notification->text = why_dropped(core, find_user(notifications_of(core), job->uid), event->wall_ms);
        add_open(core, notification, core_batch(core)->id);
        if (notification->text != NULL)
            end_notification(core, core->notifications->n_open - 1, NOTIFICATION_DROPPED, event->wall_ms);
        else
            put_row(core, notification);
    }
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct notification *notification = xcalloc(1, sizeof(*notification));
    int r = record_decode(&notification_record, bytes, length, notification, err);
    if (r == 0 && notification->to == NULL)
        r = error_set(err, -EBADMSG, "it has no recipient");
    if (r < 0) {
        notification_free(notification);
        return r;
    }
    if (notification->state != NOTIFICATION_DROPPED)
        count_notification(find_user(notifications_of(core), notification->uid), notification->made_ms);
    if (notification->state == NOTIFICATION_WAITING)
        add_open(core, notification, 0);
    else
        keep_over(core, notification);
    return 0;
}

static void run(struct core *core)
{
    send_due(core, core->now_ms);
}

static void on_durable(struct core *core)
{
    send_due(core, core_now_ms(core, 0));
}

static void on_link(struct core *core, struct core_node *node)
{
    send_due(core, core->now_ms);
}

static void clear(struct core *core)
{
    struct notifications *notifications = core->notifications;
    if (notifications == NULL)
        return;
    for (size_t i = 0; i < notifications->n_open; i++)
        notification_free(notifications->open[i].notification);
    for (size_t i = 0; i < notifications->n_over; i++)
        notification_free(notifications->over[(notifications->first + i) % KEPT_MAX]);
    while (notifications->users != NULL) {
        struct notification_user *next = notifications->users->next;
        free(notifications->users);
        notifications->users = next;
    }
    free(notifications->open);
    free(notifications);
    core->notifications = NULL;
}

static void visit_one(const struct notification *notification, bool is_sending, uint64_t job,
    void (*visit)(void *arg, const struct notification *notification, bool is_sending), void *arg)
{
    if (notification->job == job)
        visit(arg, notification, is_sending);
}

void core_each_notification(const struct core *core, uint64_t job,
    void (*visit)(void *arg, const struct notification *notification, bool is_sending), void *arg)
{
    const struct notifications *notifications = core->notifications;
    if (notifications == NULL)
        return;
    for (size_t i = 0; i < notifications->n_over; i++)
        visit_one(notifications->over[(notifications->first + i) % KEPT_MAX], false, job, visit, arg);
    for (size_t i = 0; i < notifications->n_open; i++)
        visit_one(notifications->open[i].notification, notifications->open[i].is_sending, job, visit, arg);
}

static const struct core_kind kinds[] = { { .kind = KIND, .load = load }, { 0 } };

static const struct core_message messages[] = { { MESSAGE_NOTIFIED, on_notified }, { 0 } };

const struct core_concern core_concern_notifications = {
    .name = "notifications",
    .free = clear,
    .kinds = kinds,
    .events = CORE_ON(EVENT_STARTED) | CORE_ON(EVENT_REQUEUED) | CORE_ON(EVENT_PARKED) |
              CORE_ON(EVENT_UNPARKED) | CORE_ON_DONE,
    .event = on_event,
    .messages = messages,
    .back = on_link,
    .cut = on_cut,
    .down = on_link,
    .durable = on_durable,
    .next_ms = next_ms,
    .run = run,
};
