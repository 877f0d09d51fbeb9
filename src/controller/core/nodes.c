/* SPDX-License-Identifier: MIT */
/*
 * What agents say. A node is known by its name; the newest link with that name is the node's link, and what
 * an older one still says is refused. A statement about an attempt counts only when it names the job's
 * present attempt by its token; any other attempt is one that nobody wants any more, and the agent is told to
 * forget it.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/private.h"

#define EXIT_TIME_LIMIT 124              // as timeout(1)
#define LATE_WORDS_MS   (15 * 60 * 1000) // so old may a word be that still arrives
#define ATTEMPTS_MAX    8U               // starts of one job that come back before it is given up
#define NO_RECORD       "its node has no record of it any more"

struct core_node *core_find_node(const struct core *core, const char *name)
{
    for (size_t i = 0; name != NULL && i < core->n_nodes; i++)
        if (strcmp(core->nodes[i].name, name) == 0)
            return &core->nodes[i];
    return NULL;
}

static struct core_node *find_link(const struct core *core, uint32_t link)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        if (core->nodes[i].is_up && core->nodes[i].link == link)
            return &core->nodes[i];
    return NULL;
}

struct core_node *core_add_node(struct core *core, const char *name)
{
    struct core_node *node = core_find_node(core, name);
    if (node != NULL)
        return node;
    core->nodes = xreallocarray(core->nodes, core->n_nodes + 1, sizeof(*node));
    node = &core->nodes[core->n_nodes++];
    *node = (struct core_node){ .name = xstrdup(name), .health_due_ms = TIME_NEVER };
    core_hear(core, node);
    core_acknowledge(core, node);
    return node;
}

/* The node's wall clock need not be right, or was set while the job ran: of its word counts what lies between
 * the last time that the job was queued, and when its start was heard or, by its run time, happened. */
static void bound_start(const struct core *core, const struct job *job, struct job_event *event)
{
    int64_t earliest_ms = job->queued_ms != 0 ? job->queued_ms : job->submitted_ms;
    int64_t latest_ms = core->now_ms - event->run_ms;
    if (event->started_wall_ms == 0)
        return;
    if (job->started_ms != 0 && job->started_ms < latest_ms)
        latest_ms = job->started_ms;
    if (event->started_wall_ms > latest_ms)
        event->started_wall_ms = latest_ms;
    if (event->started_wall_ms < earliest_ms)
        event->started_wall_ms = earliest_ms;
}

/* The attempt is over. A job that gave way goes back to the queue, unless the end was its own; so does one
 * that asked to go on after such an end. */
static void end_attempt(struct core *core, struct core_job *entry, struct job_event *event)
{
    const struct job *job = entry->job;
    bool is_stopped = event->end == END_CANCELLED || event->end == END_RELEASED;
    bool has_own_text = event->end == END_IDLE_TIMEOUT; // of its shepherd, about the terminal
    if (is_stopped && job->stop_reason != END_NONE)
        event->end = job->stop_reason;
    if (event->end == END_TIME_LIMIT || event->end == END_IDLE_TIMEOUT)
        event->exit_code = EXIT_TIME_LIMIT;
    _cleanup_free_ char *idle =
        event->end == END_IDLE_TIMEOUT && !has_own_text ? core_idle_text(core, job) : NULL;
    char *text = event->text;
    event->text = idle != NULL ? idle : text;
    event->wall_ms = core->now_ms;
    bound_start(core, job, event);
    bool is_own_end = event->end != END_CANCELLED && event->end != END_UNKNOWN && event->end != END_REBOOT &&
                      event->end != END_NODE_LOST;
    bool goes_back = job->is_requeued && !is_own_end;
    uint32_t jitter = (uint32_t)(core->effects.random(core->effects.arg) % (RETRY_JITTER_MAX + 1));
    if (goes_back)
        event->cause = job_run(job)->requeue_cause;
    event->type = goes_back || job_goes_on_after(job, event, jitter) ? EVENT_REQUEUED : EVENT_ENDED;
    core_change(core, entry, event, NULL);
    event->text = text;
    core_drop_usage(entry);
}

void core_end_attempt(struct core *core, struct core_job *entry, enum job_end end, const char *text)
{
    struct job_event event = {
        .attempt = entry->job->attempt,
        .end = end,
        .exit_code = 125,
        .text = xstrdup(text),
    };
    if (entry->job->started_ms != 0) // nobody saw its end: the most that it can be
        event.run_ms = core->now_ms - entry->job->started_ms;
    end_attempt(core, entry, &event);
    job_event_clear(&event);
}

bool core_is_same_boot(const char *id, const char *other)
{
    size_t length = id != NULL ? strcspn(id, BOOT_SPOOL_MARK) : 0;
    return length > 0 && other != NULL && strcspn(other, BOOT_SPOOL_MARK) == length &&
           strncmp(id, other, length) == 0;
}

static bool is_listed(const struct message_hello *hello, const struct job *job)
{
    const struct known_attempt *attempts = hello->attempts.items;
    for (size_t i = 0; i < hello->attempts.count; i++)
        if (attempts[i].job == job->id && attempts[i].token == job->token)
            return true;
    return false;
}

/* An active job of this node after a HELLO: proof that it is over, or the message that it needs is said
 * again. */
static void reconcile(struct core *core, struct core_job *entry, const struct core_node *node)
{
    const struct message_hello *hello = &node->hello;
    const struct job *job = entry->job;
    bool is_same_spool = text_equal(job_run(job)->boot_id, hello->boot_id);
    bool has_started = job->state == JOB_RUNNING || job->started_ms != 0;
    bool is_gone = !is_listed(hello, job);
    if (is_gone && !core_is_same_boot(job_run(job)->boot_id, hello->boot_id))
        core_end_attempt(core, entry, END_REBOOT, "its node was started anew while it ran");
    else if (is_gone && (has_started || !is_same_spool || core_is_held(core, node)))
        core_end_attempt(core, entry, END_UNKNOWN, NO_RECORD);
    else
        core_act(core, entry);
}

/*
 * Words of a connection that the node has given up can arrive after those of the next one, and two machines
 * may have one name: a copied disk. Believing either would end attempts that run. A machine that has started
 * anew while its old connection still looks alive is let in as soon as that one is found to be silent.
 */
static int check_order(const struct core *core, const struct core_node *node,
    const struct message_hello *hello, struct error *err)
{
    const struct message_hello *last = &node->hello;
    if (last->boot_id == NULL)
        return 0;
    if (core_is_same_boot(last->boot_id, hello->boot_id)) { // the clock is the same
        if (hello->said_ms != 0 && hello->said_ms < last->said_ms)
            return error_set(err, -ESTALE, "node %s has spoken on a newer connection", node->name);
        if (text_equal(last->boot_id, hello->boot_id) || !node->is_up || core->options.loss.timeout_ms == 0)
            return 0;
        (void)error_set(err, -EBUSY, "node %s is up, with another spool", node->name);
        return error_hint(err,
            "two agents of one machine, perhaps in containers, have one key: give each its own "
            "--state-dir, and join one of them anew");
    }
    bool is_recent = core->boot_ms - node->restarted_ms < LATE_WORDS_MS;
    if (is_recent && core_is_same_boot(node->boot_before, hello->boot_id))
        return error_set(err, -ESTALE, "node %s has started anew since: it has another boot id", node->name);
    if (!node->is_up || core->options.loss.timeout_ms == 0)
        return 0;
    (void)error_set(err, -EBUSY, "node %s is up, with another boot id", node->name);
    return error_hint(err, "if it has started anew, it is let in when its old connection has been silent for "
                           "--node-timeout; else two machines have one key: join one of them anew");
}

/* Its HELLO is believed. */
static void take_hello(const struct core *core, struct core_node *node, const struct message_hello *hello)
{
    if (node->hello.boot_id != NULL && !core_is_same_boot(node->hello.boot_id, hello->boot_id)) {
        free(node->boot_before);
        node->boot_before = xstrdup(node->hello.boot_id);
        node->restarted_ms = core->boot_ms;
    }
    record_clear(&message_hello_record, &node->hello);
    record_copy(&message_hello_record, &node->hello, hello);
}

int core_link_up(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link,
    const struct message_hello *hello, struct error *err)
{
    if (hello->protocol != LINK_PROTOCOL)
        return error_set(
            err, -EPROTO, "agent speaks protocol %u, this controller %u", hello->protocol, LINK_PROTOCOL);
    if (hello->node == NULL || hello->boot_id == NULL)
        return error_set(err, -EPROTO, "HELLO names no node or no boot");
    core_begin(core, boot_ms, wall_ms);
    struct core_node *node = core_add_node(core, hello->node);
    int r = check_order(core, node, hello, err);
    if (r < 0)
        return r;
    bool was_up = node->is_up;
    uint32_t old_link = node->link;
    node->left_ms = node->heard_ms;
    core_hear(core, node);
    take_hello(core, node, hello);
    core_check_store(core, hello);
    core_hold_node(core, node);
    node->is_up = true;
    node->link = link;
    node->n_telling = 0;
    if (was_up)
        core_stop_telling(core, old_link, core->now_ms);
    struct message_welcome welcome = {
        .epoch = core->epoch,
        .said_ms = hello->said_ms,
        .last_order = core->last_order,
        .began_ms = core->began_ms,
        .event = core->last_durable_event,
    };
    core_set_heartbeat(core, &welcome);
    core_acknowledge(core, node);
    core->effects.send(core->effects.arg, link, &message_welcome_record, &welcome);
    core_stop_unwanted(core, node);
    if (!was_up && node->n_unwanted > 0)
        core_change_cluster(core, &(struct cluster_change){ .kind = CHANGE_NODE_BACK, .node = node->name });
    core_tell_released(core, node);
    core_watch_gpus(core, node);
    core_check_health(core, node);
    core_node_changed(core, node);
    struct core_job *after = NULL;
    for (struct core_job *entry = core->active_first; entry != NULL; entry = after) {
        after = core_extra(entry)->active_after;
        if (job_rank_on(entry->job, node->name) < 0)
            continue;
        if (job_is_wide(entry->job))
            core_parts_reconcile(core, entry, node);
        else
            reconcile(core, entry, node);
    }
    core_resume_leases(core, node);
    core_run_notices(core, core->now_ms);
    return 0;
}

void core_drop_link(struct core *core, struct core_node *node)
{
    node->is_up = false;
    core_clear_unwanted(node);
    core_fail_questions(core, node->link);
    core_stop_telling(core, node->link, core->now_ms);
    core_run_notices(core, core->now_ms);
    core_parts_away(core, node);
    core_node_down(core, node);
}

static char *without_port(const char *address)
{
    const char *first = strchr(address, ':'), *last = strrchr(address, ':');
    if (address[0] == '[')
        return xstrndup(address + 1, strcspn(address + 1, "]"));
    return first != NULL && first == last ? xstrndup(address, (size_t)(first - address)) : xstrdup(address);
}

void core_set_address(struct core *core, uint32_t link, const char *address, const char *here)
{
    struct core_node *node = find_link(core, link);
    if (node == NULL)
        return;
    free(node->address);
    node->address = without_port(address);
    free(node->here);
    node->here = here != NULL ? without_port(here) : NULL;
}

void core_link_down(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link)
{
    struct core_node *node = find_link(core, link);
    if (node == NULL)
        return;
    core_begin(core, boot_ms, wall_ms);
    core_drop_link(core, node);
}

/* What every statement about an attempt begins with. */
struct statement {
    uint64_t job;
    uint32_t attempt, step, task;
    uint64_t token;
};

/* The agent may drop this attempt as soon as what made it needless is durable. */
static void forget(struct core *core, const struct core_node *node, const struct statement *statement)
{
    struct message_forget forget = {
        .job = statement->job,
        .attempt = statement->attempt,
        .step = statement->step,
        .task = statement->task,
        .token = statement->token,
    };
    core_forget_attempt(core, node->link, &forget);
    core_settle_unwanted(core, core_find_node(core, node->name), &forget);
}

/* The job when the statement is about its present attempt and can still change it; else the agent may forget.
 */
static struct core_job *find_current(
    struct core *core, const struct core_node *node, const struct statement *statement)
{
    struct core_job *entry = core_find(core, statement->job);
    bool is_current = entry != NULL && entry->job->token == statement->token &&
                      entry->job->attempt == statement->attempt && job_state_is_active(entry->job->state) &&
                      (int)statement->task == job_rank_on(entry->job, node->name);
    if (is_current)
        return entry;
    if (statement->job <= core->last_job)
        forget(core, node, statement);
    return NULL;
}

/* Is this the part of a present attempt on several nodes that this node has? */
static bool is_part(const struct core_job *entry, const struct core_node *node, uint32_t task, uint64_t token)
{
    return entry != NULL && job_is_wide(entry->job) && job_state_is_active(entry->job->state) &&
           entry->job->token == token && (int)task == job_rank_on(entry->job, node->name);
}

static void on_ready(struct core *core, const struct core_node *node, const void *message)
{
    const struct message_ready *ready = message;
    struct core_job *entry = core_find(core, ready->job);
    if (is_part(entry, node, ready->task, ready->token))
        core_part_ready(core, entry, ready->task, ready);
}

static void on_started(struct core *core, const struct core_node *node, const void *message)
{
    const struct launch_started *started = message;
    struct core_job *entry = core_find(core, started->job);
    if (is_part(entry, node, started->task, started->token)) {
        core_part_started(core, entry, started->task, started);
        return;
    }
    /* A start says nothing that must be forgotten: a job that has moved on is reported again by its end. */
    if (entry == NULL || job_is_wide(entry->job) || entry->job->token != started->token ||
        entry->job->started_ms != 0 ||
        (entry->job->state != JOB_STARTING && entry->job->state != JOB_STOPPING))
        return;
    struct job_event event = { .type = EVENT_STARTED,
        .attempt = started->attempt,
        .log_path = started->log_path,
        .text = started->text };
    core_change(core, entry, &event, NULL);
}

/* The job goes back to the queue, or ends when that happens too often. */
void core_give_back(struct core *core, struct core_job *entry, const char *text)
{
    struct job *job = entry->job;
    if (job->state != JOB_STOPPING && job->attempt - job->preemptions >= ATTEMPTS_MAX) {
        _cleanup_free_ char *sentence = xasprintf("given up after %u attempts to start it: %.800s",
            job->attempt, text != NULL ? text : "no reason");
        core_end_attempt(core, entry, END_START_FAILED, sentence);
        return;
    }
    struct job_event event = { .type = EVENT_RETURNED, .attempt = job->attempt, .text = xstrdup(text) };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

/* What becomes part of the job's record: what it made of its GPUs, and the last lines of its output. */
static void take_usage(const struct launch_exit *record, struct record_list *ret)
{
    if (record->usage.count == 0 && record->tail == NULL)
        return;
    struct job_usage *usage =
        record->usage.count > 0 ? job_usage_copy(record->usage.items) : xcalloc(1, sizeof(struct job_usage));
    if (record->tail != NULL) {
        free(usage->tail);
        usage->tail = xstrdup(record->tail);
    }
    *ret = (struct record_list){ usage, 1 };
}

/* A command that failed after an error of the driver on one of its GPUs: that is why. */
static void take_fault(struct job_event *event)
{
    const struct job_usage *usage = event->usage.items;
    bool has_failed = (event->end == END_EXIT && event->exit_code != 0) || event->end == END_SIGNAL;
    if (!has_failed || usage == NULL || xid_class_of(usage->xid) == XID_INFO || usage->fault == NULL)
        return;
    event->end = END_GPU_FAULT;
    if (event->text == NULL)
        event->text = usage->fault;
}

void core_close_attempt(struct core *core, struct core_job *entry, struct job_event *event)
{
    take_fault(event);
    end_attempt(core, entry, event);
}

static void on_exited(struct core *core, const struct core_node *node, const void *message)
{
    const struct launch_exit *record = message;
    struct statement statement = { record->job, record->attempt, record->step, record->task, record->token };
    struct core_job *entry = find_current(core, node, &statement);
    if (entry == NULL)
        return;
    if (job_is_wide(entry->job) && !core_part_is_lost(entry, record->task)) {
        core_part_exited(core, entry, record->task, record);
        return; // it is forgotten with the others
    }
    if (job_is_wide(entry->job)) {
        forget(core, node, &statement);
        return;
    }
    if (record->is_executed == 0 && record->end == END_UNKNOWN) {
        core_give_back(core, entry, record->text);
    } else {
        struct job_event event = {
            .attempt = record->attempt,
            .end = record->end > END_NONE && record->end < END_KINDS ? record->end : END_UNKNOWN,
            .exit_code = record->exit_code,
            .signal = record->signal,
            .started_wall_ms = record->started_wall_ms,
            .run_ms = record->run_ms,
            .cpu_ms = record->cpu_ms,
            .max_rss = record->max_rss,
            .log_bytes = record->log_bytes,
            .log_path = record->log_path,
            .text = record->text,
        };
        take_usage(record, &event.usage);
        core_close_attempt(core, entry, &event);
        job_usage_free(event.usage.items);
    }
    forget(core, node, &statement);
}

static void on_returned(struct core *core, const struct core_node *node, const void *message)
{
    const struct message_returned *returned = message;
    struct statement statement = { returned->job, returned->attempt, returned->step, returned->task,
        returned->token };
    struct core_job *entry = find_current(core, node, &statement);
    if (entry == NULL)
        return;
    bool is_wide = job_is_wide(entry->job);
    bool has_started = is_wide ? core_part_has_started(entry, returned->task) : entry->job->started_ms != 0;
    if (is_wide && !has_started && !core_part_is_lost(entry, returned->task)) {
        core_part_returned(core, entry, returned->task, returned->text);
        return; // it is forgotten with the others
    }
    /* What has started cannot have been returned: its agent has lost what it knew of it. */
    if (is_wide && has_started)
        core_part_lost(core, entry, returned->task, END_UNKNOWN, NO_RECORD);
    else if (!is_wide && has_started)
        core_end_attempt(core, entry, END_UNKNOWN, NO_RECORD);
    else if (!is_wide)
        core_give_back(core, entry, returned->text);
    forget(core, node, &statement);
}

/* Each instead of the one of its name. */
static void take_features(struct message_hello *hello, const struct message_gpus *gpus)
{
    struct message_hello fresh = { .gpu_backend = gpus->gpu_backend, .features = gpus->features }, copy;
    if (gpus->features.count == 0)
        return;
    record_copy(&message_hello_record, &copy, &fresh);
    struct node_feature *new_ones = copy.features.items, *features = hello->features.items;
    for (size_t i = 0; i < copy.features.count; i++)
        for (size_t k = 0; k < hello->features.count; k++)
            if (text_equal(features[k].name, new_ones[i].name)) {
                struct node_feature old = features[k];
                features[k] = new_ones[i];
                new_ones[i] = old;
                break;
            }
    if (copy.gpu_backend != NULL) {
        char *old = hello->gpu_backend;
        hello->gpu_backend = copy.gpu_backend;
        copy.gpu_backend = old;
    }
    record_clear(&message_hello_record, &copy);
}

static void on_gpus(struct core *core, const struct core_node *node, const void *message)
{
    const struct message_gpus *gpus = message;
    struct core_node *known = core_find_node(core, node->name);
    struct message_gpus seen = { .gpus = gpus->gpus }, copy;
    record_copy(&message_gpus_record, &copy, &seen);
    core_take_usages(core, &gpus->usages);
    struct message_gpus old = { .gpus = known->hello.gpus };
    known->hello.gpus = copy.gpus;
    record_clear(&message_gpus_record, &old);
    take_features(&known->hello, gpus);
    core_tell_released(core, known);
    core_watch_gpus(core, known);
    core_check_health(core, known);
    core_node_changed(core, known);
}

static void on_heartbeat(struct core *core, const struct core_node *node, const void *message)
{
    const struct message_heartbeat *heartbeat = message;
    const struct message_heartbeat heard = { .sent_ms = heartbeat->sent_ms,
        .event = core->last_durable_event };
    core_acknowledge(core, core_find_node(core, node->name));
    core->effects.send(core->effects.arg, node->link, &message_heard_record, &heard);
}

static void on_process(struct core *core, const struct core_node *node, const void *message)
{
    core_on_process(core, node, message);
}

static void on_told(struct core *core, const struct core_node *node, const void *message)
{
    core_on_told(core, node, message);
}

static const struct {
    uint16_t id;
    void (*handle)(struct core *core, const struct core_node *node, const void *message);
} handlers[] = {
    { MESSAGE_READY, on_ready },
    { MESSAGE_STARTED, on_started },
    { MESSAGE_EXITED, on_exited },
    { MESSAGE_RETURNED, on_returned },
    { MESSAGE_GPUS, on_gpus },
    { MESSAGE_PROCESS, on_process },
    { MESSAGE_TOLD, on_told },
    { MESSAGE_HEARTBEAT, on_heartbeat },
};

int core_link_message(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link, uint16_t id,
    const void *message, struct error *err)
{
    struct core_node *node = find_link(core, link);
    if (node == NULL)
        return error_set(err, -EPROTO, "message %u on a link that is no node's", id);
    core_begin(core, boot_ms, wall_ms);
    core_hear(core, node);
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (handlers[i].id == id) {
            handlers[i].handle(core, node, message);
            return 0;
        }
    }
    return error_set(err, -EPROTO, "an agent may not send message %u", id);
}
