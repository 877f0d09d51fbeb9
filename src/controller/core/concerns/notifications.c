/* SPDX-License-Identifier: MIT */
/*
 * What jobs tell somebody outside (`--notify`). A notice is made with the event that it tells of and is a row
 * of cluster_state in the same transaction, so that a restart forgets none. When that is durable a node tells
 * it (NOTIFY, NOTIFIED) and the row is changed:
 *
 *      WAITING ──NOTIFY──> (telling) ──NOTIFIED ok──> SENT
 *         └──10 s, 1 min, 10 min, 1 h── NOTIFIED failed ──after the last──> FAILED
 *      too many of one user in an hour, or switched off: DROPPED at once
 *
 * That a notice is being told is known in memory only. After a restart of either side it is told again: at
 * least once, with the same number (MGPU_NOTICE). Nothing here is waited for by anybody.
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
#define ANSWER_MS        60000 // a node that says nothing for so long after the time has failed
#define BUSY_MS          5000  // to the next try when a node has too much to do
#define NODE_SENDING_MAX 8U
#define USER_SENDING_MAX 2U
#define KEPT_MAX         1000U // notices that are over, to be shown

static const int64_t pauses_ms[] = { 10000, 60000, 600000, HOUR_MS };
#define PAUSES (sizeof(pauses_ms) / sizeof(pauses_ms[0]))

/* One that waits. */
struct open_notice {
    struct notice *notice;
    struct notice_user *user;
    uint64_t batch; // it may be told when this one is durable
    bool is_sending;
    uint32_t link; // by whom
};

/* What is counted for one user. */
struct notice_user {
    uint32_t uid;
    int64_t hour_ms; // when the counting began
    uint32_t count;  // made in this hour
    uint32_t n_sending;
    struct notice_user *next;
};

struct notices {
    struct open_notice *open;
    size_t n_open, capacity;
    struct notice *over[KEPT_MAX]; // a ring, the oldest at `first`
    size_t first, n_over;
    struct notice_user *users;
    int64_t looked_ms; // what was due by then waits for a node, a commit or a NOTIFIED
};

static struct notices *notices_of(struct core *core)
{
    if (core->notices == NULL)
        core->notices = xcalloc(1, sizeof(*core->notices));
    return core->notices;
}

static struct notice_user *find_user(struct notices *notices, uint32_t uid)
{
    for (struct notice_user *user = notices->users; user != NULL; user = user->next)
        if (user->uid == uid)
            return user;
    struct notice_user *user = xcalloc(1, sizeof(*user));
    *user = (struct notice_user){ .uid = uid, .next = notices->users };
    notices->users = user;
    return user;
}

static void count_notice(struct notice_user *user, int64_t made_ms)
{
    if (made_ms - user->hour_ms >= HOUR_MS || made_ms < user->hour_ms) {
        user->hour_ms = made_ms;
        user->count = 0;
    }
    user->count++;
}

/* --- rows --- */

/* In order of their events. */
static void write_key(const struct notice *notice, char key[KEY_SIZE])
{
    (void)snprintf(key, KEY_SIZE, "%020" PRIu64 ".%u", notice->seq, notice->target);
}

static void put_row(struct core *core, const struct notice *notice)
{
    char key[KEY_SIZE];
    _cleanup_buffer_ struct buffer bytes = { 0 };
    write_key(notice, key);
    (void)record_encode_readable(&notice_record, notice, &bytes, &(struct error){ 0 });
    store_batch_put(core_batch(core)->changes, KIND, key, &bytes);
}

static void remove_row(struct core *core, const struct notice *notice)
{
    char key[KEY_SIZE];
    write_key(notice, key);
    store_batch_remove(core_batch(core)->changes, KIND, key);
}

/* Takes it over, to be shown; the oldest gives way. */
static void keep_over(struct core *core, struct notice *notice)
{
    struct notices *notices = notices_of(core);
    if (notices->n_over == KEPT_MAX) {
        struct notice *oldest = notices->over[notices->first];
        remove_row(core, oldest);
        notice_free(oldest);
        notices->first = (notices->first + 1) % KEPT_MAX;
        notices->n_over--;
    }
    notices->over[(notices->first + notices->n_over++) % KEPT_MAX] = notice;
}

static void add_open(struct core *core, struct notice *notice, uint64_t batch)
{
    struct notices *notices = notices_of(core);
    if (notices->n_open == notices->capacity) {
        notices->capacity = notices->capacity == 0 ? 16 : notices->capacity * 2;
        notices->open = xreallocarray(notices->open, notices->capacity, sizeof(*notices->open));
    }
    notices->open[notices->n_open++] =
        (struct open_notice){ .notice = notice, .user = find_user(notices, notice->uid), .batch = batch };
}

/* It is not open any more. */
static void end_notice(struct core *core, size_t i, enum notice_state state, int64_t now_ms)
{
    struct notices *notices = core->notices;
    struct notice *notice = notices->open[i].notice;
    memmove(&notices->open[i], &notices->open[i + 1], (--notices->n_open - i) * sizeof(*notices->open));
    notice->state = state;
    notice->over_ms = now_ms;
    notice_shrink(notice);
    put_row(core, notice);
    keep_over(core, notice);
}

/* --- making them --- */

/* What this event is to those who are to hear of it, and under which wishes; 0: nothing. */
static enum notify_event classify(
    const struct job *job, const struct job_event *event, enum job_state before, uint32_t *ret_wishes)
{
    bool is_over = job->state == JOB_DONE && before != JOB_DONE;
    bool is_bad = is_over && (strcmp(json_job_state(job), "failed") == 0 || job->array_failed > 0);
    *ret_wishes = 0;
    if (job->array_job != 0)
        return 0; // its array tells of all of them
    if (is_over) {
        *ret_wishes = NOTIFY_END | (is_bad ? NOTIFY_FAIL : 0);
        return is_bad ? NOTIFY_FAIL : NOTIFY_END;
    }
    if (event->type == EVENT_STARTED) {
        *ret_wishes = NOTIFY_START;
        return NOTIFY_START;
    }
    if (event->type != EVENT_REQUEUED)
        return 0;
    bool has_given_way = event->cause == REQUEUE_PREEMPTED;
    *ret_wishes = NOTIFY_REQUEUE | (has_given_way ? NOTIFY_PREEMPT : 0);
    return has_given_way ? NOTIFY_PREEMPT : NOTIFY_REQUEUE;
}

/* Why this one is not told; NULL: it is. The caller frees it. */
static char *why_dropped(const struct core *core, struct notice_user *user, int64_t now_ms)
{
    uint32_t limit = core->options.notices.per_hour;
    if (core->options.notices.is_off)
        return xstrdup("notifications are disabled: setting `notices` is off");
    count_notice(user, now_ms);
    if (user->count <= limit)
        return NULL;
    user->count = limit;
    return xasprintf("more than %u of this user within an hour", limit);
}

/* --- telling --- */

/* The node where the job was, else the one with the least to tell. */
static struct core_node *choose_node(const struct core *core, const struct notice *notice)
{
    struct core_node *own = core_find_node(core, notice->node), *best = NULL;
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

static void send_notify(struct core *core, const struct notice *notice, uint32_t link)
{
    struct notify_target target = { 0 };
    (void)parse_notify(notice->to, &target, NULL);
    _cleanup_free_ char *to = xstrdup(target.to);
    _cleanup_free_ char *user =
        notice->user != NULL ? xstrdup(notice->user) : core_user_name(core, notice->uid);
    struct message_notify tell = {
        .notice = notice->seq,
        .target = notice->target,
        .job = notice->job,
        .uid = notice->uid,
        .gid = notice->gid,
        .user = user,
        .way = target.way,
        .to = to,
        .subject = notice->subject,
        .body = target.way == NOTIFY_MAIL ? notice->body : NULL,
        .json = target.way == NOTIFY_MAIL ? NULL : notice->json,
        .env = notice->env,
        .time_ms = core->options.notices.time_ms,
    };
    core->effects.send(core->effects.arg, link, &message_notify_record, &tell);
}

static void begin_sending(struct core *core, struct open_notice *open, int64_t now_ms)
{
    bool is_ready = !open->is_sending && open->notice->due_ms <= now_ms && open->batch <= core->durable_batch;
    if (!is_ready || open->user->n_sending >= USER_SENDING_MAX)
        return;
    struct core_node *node = choose_node(core, open->notice);
    if (node == NULL)
        return;
    open->is_sending = true;
    open->link = node->link;
    open->notice->due_ms = now_ms + core->options.notices.time_ms + ANSWER_MS;
    open->user->n_sending++;
    node->n_sending++;
    send_notify(core, open->notice, node->link);
}

static void stop_sending(struct core *core, struct open_notice *open)
{
    struct core_node *node = core_find_link(core, open->link);
    open->is_sending = false;
    open->user->n_sending--;
    if (node != NULL && node->n_sending > 0)
        node->n_sending--;
}

/* The try came to nothing. `error` EBUSY: it was none. */
static void note_failure(struct core *core, size_t i, int32_t error, const char *text, int64_t now_ms)
{
    struct notice *notice = core->notices->open[i].notice;
    if (error == EBUSY) {
        notice->due_ms = now_ms + BUSY_MS;
        return;
    }
    free(notice->text);
    notice->text = xstrdup(text != NULL ? text : strerror(error));
    notice->tries++;
    if (notice->tries > PAUSES) {
        end_notice(core, i, NOTICE_FAILED, now_ms);
        return;
    }
    notice->due_ms = now_ms + pauses_ms[notice->tries - 1];
    put_row(core, notice);
}

/* What can be told now. */
static void send_due(struct core *core, int64_t now_ms)
{
    struct notices *notices = core->notices;
    if (notices != NULL)
        notices->looked_ms = now_ms;
    for (size_t i = notices != NULL ? notices->n_open : 0; i > 0; i--) {
        struct open_notice *open = &notices->open[i - 1];
        if (!open->is_sending || open->notice->due_ms > now_ms)
            continue;
        stop_sending(core, open);
        note_failure(core, i - 1, ETIMEDOUT, "its node did not report the result", now_ms);
    }
    for (size_t i = 0; notices != NULL && i < notices->n_open; i++)
        begin_sending(core, &notices->open[i], now_ms);
}

static int64_t next_ms(const struct core *core)
{
    const struct notices *notices = core->notices;
    int64_t next_ms = TIME_NEVER;
    for (size_t i = 0; notices != NULL && i < notices->n_open; i++) {
        const struct open_notice *open = &notices->open[i];
        int64_t due_ms = open->notice->due_ms;
        if (due_ms > notices->looked_ms && due_ms < next_ms && open->batch <= core->durable_batch)
            next_ms = due_ms;
    }
    return core_boot_at(core, next_ms);
}

static void on_cut(struct core *core, struct core_node *node, uint32_t link)
{
    struct notices *notices = core->notices;
    for (size_t i = 0; notices != NULL && i < notices->n_open; i++) {
        struct open_notice *open = &notices->open[i];
        if (!open->is_sending || open->link != link)
            continue;
        stop_sending(core, open);
        open->notice->due_ms = core->now_ms;
    }
    node->n_sending = 0;
}

static void on_told(struct core *core, struct core_node *node, const void *message)
{
    const struct message_notified *told = message;
    struct notices *notices = core->notices;
    for (size_t i = 0; notices != NULL && i < notices->n_open; i++) {
        struct open_notice *open = &notices->open[i];
        if (open->notice->seq != told->notice || open->notice->target != told->target)
            continue;
        if (open->is_sending && open->link != node->link)
            return; // another node is at it now
        if (open->is_sending)
            stop_sending(core, open);
        if (told->error != 0) {
            note_failure(core, i, told->error, told->text, core->now_ms);
        } else {
            free(take_ptr(open->notice->text));
            open->notice->tries++;
            end_notice(core, i, NOTICE_SENT, core->now_ms);
        }
        break;
    }
    send_due(core, core->now_ms);
}

/* --- hooks --- */

/* What its job wants to tell of an event, in the same batch. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    const struct job_event *event = news->event;
    uint32_t wishes;
    if (job->ask->notify.count == 0)
        return;
    enum notify_event what = classify(job, event, news->before, &wishes);
    if ((notify_events(job->ask) & wishes) == 0)
        return;
    _cleanup_free_ char *json =
        core->effects.describe != NULL ? core->effects.describe(core->effects.arg, job) : NULL;
    const char *owner = core_owner_name(core, job);
    for (uint32_t i = 0; i < job->ask->notify.count; i++) {
        struct notice *notice = notice_new(job, event, what, i, json);
        notice->user = owner != NULL && strlen(owner) <= SPEC_NAME_MAX ? xstrdup(owner) : NULL;
        notice->text = why_dropped(core, find_user(notices_of(core), job->uid), event->wall_ms);
        add_open(core, notice, core_batch(core)->id);
        if (notice->text != NULL)
            end_notice(core, core->notices->n_open - 1, NOTICE_DROPPED, event->wall_ms);
        else
            put_row(core, notice);
    }
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct notice *notice = xcalloc(1, sizeof(*notice));
    int r = record_decode(&notice_record, bytes, length, notice, err);
    if (r == 0 && notice->to == NULL)
        r = error_set(err, -EBADMSG, "it has no recipient");
    if (r < 0) {
        notice_free(notice);
        return r;
    }
    if (notice->state != NOTICE_DROPPED)
        count_notice(find_user(notices_of(core), notice->uid), notice->made_ms);
    if (notice->state == NOTICE_WAITING)
        add_open(core, notice, 0);
    else
        keep_over(core, notice);
    return 0;
}

static void run(struct core *core)
{
    send_due(core, core->now_ms);
}

static void on_durable(struct core *core)
{
    send_due(core, core_look_ms(core, 0));
}

static void on_link(struct core *core, struct core_node *node)
{
    send_due(core, core->now_ms);
}

static void clear(struct core *core)
{
    struct notices *notices = core->notices;
    if (notices == NULL)
        return;
    for (size_t i = 0; i < notices->n_open; i++)
        notice_free(notices->open[i].notice);
    for (size_t i = 0; i < notices->n_over; i++)
        notice_free(notices->over[(notices->first + i) % KEPT_MAX]);
    while (notices->users != NULL) {
        struct notice_user *next = notices->users->next;
        free(notices->users);
        notices->users = next;
    }
    free(notices->open);
    free(notices);
    core->notices = NULL;
}

static void visit_one(const struct notice *notice, bool is_sending, uint64_t job,
    void (*visit)(void *arg, const struct notice *notice, bool is_sending), void *arg)
{
    if (notice->job == job)
        visit(arg, notice, is_sending);
}

void core_each_notice(const struct core *core, uint64_t job,
    void (*visit)(void *arg, const struct notice *notice, bool is_sending), void *arg)
{
    const struct notices *notices = core->notices;
    if (notices == NULL)
        return;
    for (size_t i = 0; i < notices->n_over; i++)
        visit_one(notices->over[(notices->first + i) % KEPT_MAX], false, job, visit, arg);
    for (size_t i = 0; i < notices->n_open; i++)
        visit_one(notices->open[i].notice, notices->open[i].is_sending, job, visit, arg);
}

static const struct core_kind kinds[] = { { .kind = KIND, .load = load }, { 0 } };

static const struct core_message messages[] = { { MESSAGE_NOTIFIED, on_told }, { 0 } };

const struct core_concern core_concern_notifications = {
    .name = "notices",
    .free = clear,
    .kinds = kinds,
    .event = on_event,
    .messages = messages,
    .back = on_link,
    .cut = on_cut,
    .down = on_link,
    .durable = on_durable,
    .next_ms = next_ms,
    .run = run,
};
