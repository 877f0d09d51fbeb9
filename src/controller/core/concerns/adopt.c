/* SPDX-License-Identifier: MIT */
/*
 * Adoptions: GPUs reserved for a process that mgpu did not start. Only its node can identify the process, so
 * a request to adopt waits for an answer:
 *
 *      core_adopt ──INSPECT──> agent ──PROCESS_INFO──> checked, completed, submitted like any job
 *
 * From then on it is a job. While it waits, its node watches the process (INSPECT for a job, again after each
 * HELLO) and reports its end. Meanwhile the process keeps other jobs off the GPUs it uses, but does not delay
 * this adoption (core/concerns/external.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/state.h"
#include "controller/core/submit.h"
#include "controller/core/tables.h"

/* A request whose process is being inspected. */
struct adopt_question {
    uint64_t id;
    uint32_t link;
    struct identity who;
    struct job_spec *spec; // owned
    struct core_facts facts;
    void *request;
    struct adopt_question *next;
};

/* --- questions --- */

static void question_free(struct adopt_question *question)
{
    job_spec_free(question->spec);
    free(question->facts.items);
    free(question);
}

static struct adopt_question *take_question(struct core *core, uint64_t id)
{
    for (struct adopt_question **link = &core->questions; *link != NULL; link = &(*link)->next) {
        struct adopt_question *question = *link;
        if (question->id != id)
            continue;
        *link = question->next;
        return question;
    }
    return NULL;
}

static void forget(struct core *core, const void *request)
{
    for (struct adopt_question **link = &core->questions; *link != NULL;) {
        struct adopt_question *question = *link;
        if (question->request != request) {
            link = &question->next;
            continue;
        }
        *link = question->next;
        question_free(question);
    }
}

static void fail(struct core *core, struct adopt_question *question, const struct error *err)
{
    struct core_answer answer = { .code = err->code, .err = *err };
    core_reply(core, question->request, &answer);
    question_free(question);
}

static void on_cut(struct core *core, struct core_node *node, uint32_t link)
{
    struct error err = { 0 };
    (void)error_set(&err, -EHOSTDOWN, "the node of the process disconnected before it reported its owner");
    for (struct adopt_question **at = &core->questions; *at != NULL;) {
        struct adopt_question *question = *at;
        if (question->link != link) {
            at = &question->next;
            continue;
        }
        *at = question->next;
        fail(core, question, &err);
    }
}

static void clear(struct core *core)
{
    while (core->questions != NULL) {
        struct adopt_question *next = core->questions->next;
        question_free(core->questions);
        core->questions = next;
    }
}

/* --- where the process is --- */

/* The node named in gpu_ids, or the only one. */
static const struct core_node *find_node(
    const struct core *core, const struct job_ask *ask, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    const struct core_node *node = core->n_nodes == 1 ? &core->nodes[0] : NULL;
    int r = ask->gpu_ids != NULL ? parse_gpu_ids(ask->gpu_ids, &gpus, &count, err) : 0;
    if (r == 0 && count > 0 && gpus[0].node != NULL)
        node = core_find_node(core, gpus[0].node);
    ask_gpus_free(gpus, count);
    if (r < 0)
        return NULL;
    if (node == NULL && core->n_nodes == 0)
        (void)error_set(err, -EHOSTDOWN, "no node is connected yet");
    else if (node == NULL) {
        (void)error_set(
            err, -EINVAL, "there are several nodes: on which is process %" PRIu32 "?", ask->adopted_pid);
        (void)error_hint(err, "give its GPUs with their node: -G node1:0,1");
    } else if (!node->is_up)
        (void)error_set(err, -EHOSTDOWN, "node %s does not respond", node->name);
    return node != NULL && node->is_up ? node : NULL;
}

/* --- from the answer to the job --- */

static int check_owner(
    const struct identity *who, const struct message_process_info *process, struct error *err)
{
    if (who->uid == process->uid || core_may(who, ACTION_MANAGE, NULL))
        return 0;
    (void)error_set(err, -EPERM, "process %" PRIu32 " belongs to uid %" PRIu32 ", not to you", process->pid,
        process->uid);
    return error_hint(err, "only its owner or an operator can adopt it");
}

/* Nodes know waiting adoptions only after INSPECT. */
static int check_others(
    const struct core *core, const struct message_process_info *process, struct error *err)
{
    for (const struct core_entry *entry = core->jobs.first; entry != NULL; entry = entry->after) {
        const struct job *job = entry->job;
        if (job->state == JOB_DONE || job->ask->adopted_pid != process->pid ||
            job->ask->adopted_start != process->start)
            continue;
        (void)error_set(
            err, -EEXIST, "process %" PRIu32 " belongs to job %" PRIu64 " already", process->pid, job->id);
        return error_hint(err, "mgpu show %" PRIu64, job->id);
    }
    return 0;
}

/* An adoption must not share a GPU allocated to another job. */
static int check_booked(const struct core *core, const struct core_node *node, const struct job_ask *ask,
    const struct message_process_info *process, const struct ask_gpu *seen, size_t count, struct error *err)
{
    bool is_shared = ask->gpu_mem > 0 || ask->gpu_share > 0;
    const struct cluster_node *ledger = cluster_find(sched_cluster(core->sched), node->name);
    for (size_t i = 0; ledger != NULL && i < count; i++) {
        const struct cluster_gpu *gpu = cluster_find_index(ledger, seen[i].index);
        const struct core_entry *holder = NULL;
        if (gpu == NULL || cluster_gpu_is_empty(gpu) || (is_shared && !gpu->is_exclusive))
            continue;
        (void)core_gpu_jobs(core, node->name, seen[i].index, &holder, 1);
        uint64_t job = holder != NULL ? holder->job->id : 0;
        (void)error_set(err, -EBUSY,
            "process %" PRIu32 " uses GPU %" PRIu32 ", which is allocated to job %" PRIu64, process->pid,
            seen[i].index, job);
        return error_hint(err, "adopt it after that job has ended: mgpu wait %" PRIu64, job);
    }
    return 0;
}

/* Without requested GPUs, the adoption is for the GPUs that the process uses. */
static int choose_gpus(const struct core *core, const struct core_node *node, struct job_ask *ask,
    const struct message_process_info *process, size_t n_seen, struct error *err)
{
    if (ask->gpu_ids != NULL)
        return 0;
    if (n_seen == 0 && ask->gpus == 0) {
        (void)error_set(err, -EINVAL, "process %" PRIu32 " does not use a GPU yet", process->pid);
        return error_hint(err, "give their number or list: -g 1, -G 0");
    }
    if (n_seen == 0 && core->n_nodes > 1) {
        (void)error_set(err, -EINVAL, "process %" PRIu32 " does not use a GPU yet", process->pid);
        return error_hint(err, "give its GPUs with their node: -G %s:0", node->name);
    }
    if (n_seen == 0)
        return 0;
    if (ask->gpus != 0 && ask->gpus != n_seen) {
        (void)error_set(err, -EINVAL,
            "process %" PRIu32 " uses %zu GPU%s (%s), but the request is for %" PRIu32, process->pid, n_seen,
            n_seen == 1 ? "" : "s", process->gpu_ids, ask->gpus);
        return error_hint(err, "omit the number, or list the GPUs: -G %s", process->gpu_ids);
    }
    ask->gpus = (uint32_t)n_seen;
    ask->gpu_ids = xasprintf("%s:%s", node->name, process->gpu_ids);
    return 0;
}

static int complete(const struct core *core, const struct core_node *node, const struct identity *who,
    const struct message_process_info *process, struct job_spec *spec, struct error *err)
{
    struct ask_gpu *seen = NULL;
    size_t count = 0;
    int r = check_owner(who, process, err);
    if (r == 0)
        r = check_others(core, process, err);
    if (r == 0 && process->gpu_ids != NULL)
        r = parse_gpu_ids(process->gpu_ids, &seen, &count, err);
    if (r == 0)
        r = check_booked(core, node, &spec->ask, process, seen, count, err);
    if (r == 0)
        r = choose_gpus(core, node, &spec->ask, process, count, err);
    ask_gpus_free(seen, count);
    if (r < 0)
        return r;
    spec->ask.adopted_start = process->start;
    free(spec->ask.adopted_boot);
    spec->ask.adopted_boot = xstrdup(node->hello.boot_id);
    if (spec->command.count == 0)
        strings_copy(&spec->command, &process->command);
    return 0;
}

/* The last sample was taken before the adoption was known: corrects it. */
static void mark_process(const struct core_node *node, uint64_t from, uint64_t to, uint32_t pid)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        struct gpu_process *processes = gpus[i].processes.items;
        for (size_t k = 0; k < gpus[i].processes.count; k++)
            if (processes[k].job == from && (pid == 0 || processes[k].pid == pid))
                processes[k].job = to;
    }
}

static void recheck_node(struct core *core, struct core_node *node)
{
    core_hook_processes(core, node);
    if (node->is_up)
        core_node_changed(core, node);
}

static void on_answer(struct core *core, const struct core_node *from, struct adopt_question *question,
    const struct message_process_info *process)
{
    struct error err = { 0 };
    struct core_node *node = core_find_node(core, from->name);
    int r = 0;
    if (process->error != 0) {
        r = error_set(&err, process->error == ESRCH ? -ENOENT : -process->error, "%s",
            process->text != NULL ? process->text : "its node cannot inspect the process");
        if (process->hint != NULL)
            (void)error_hint(&err, "%s", process->hint);
    }
    if (r == 0)
        r = complete(core, node, &question->who, process, question->spec, &err);
    if (r < 0) {
        fail(core, question, &err);
        return;
    }
    struct identity owner = question->who;
    owner.uid = process->uid;
    owner.gid = process->gid;
    struct job_spec *spec = question->spec;
    question->spec = NULL; // it belongs to the job from here on
    uint64_t job = core_accept(core, &owner, spec, &question->facts, question->request);
    question_free(question);
    if (job == 0)
        return;
    mark_process(node, 0, job, process->pid);
    recheck_node(core, node);
}

/* The process of a waiting adoption has ended. */
static void on_over(struct core *core, struct core_entry *entry, const char *text)
{
    if (entry == NULL || entry->job->state != JOB_QUEUED || entry->job->ask->adopted_pid == 0)
        return;
    struct job_event event = {
        .type = EVENT_ENDED, .attempt = entry->job->attempt, .end = END_CANCELLED, .text = xstrdup(text)
    };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

static void on_process(struct core *core, struct core_node *node, const void *message)
{
    const struct message_process_info *process = message;
    if (process->question == 0) {
        struct core_entry *entry = core_find(core, process->job);
        if (entry != NULL && entry->job->ask->adopted_pid == process->pid)
            on_over(core, entry, process->text);
        return;
    }
    struct adopt_question *question = take_question(core, process->question);
    if (question != NULL)
        on_answer(core, node, question, process);
}

void core_adopt(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request)
{
    struct error err = { 0 };
    core_begin(core, boot_ms, wall_ms);
    if (core_answer_repeated(core, who, spec, request)) {
        job_spec_free(spec);
        return;
    }
    struct adopt_question *question = xcalloc(1, sizeof(*question));
    *question = (struct adopt_question){ .who = *who, .spec = spec, .request = request };
    const struct core_node *node = find_node(core, &spec->ask, &err);
    if (!who->is_known)
        (void)error_set(&err, -EPERM, "the request is not authenticated");
    if (err.code < 0) {
        fail(core, question, &err);
        return;
    }
    if (facts != NULL && facts->count > 0) {
        question->facts.items = xcalloc(facts->count, sizeof(*facts->items));
        for (; question->facts.count < facts->count; question->facts.count++)
            question->facts.items[question->facts.count] = facts->items[question->facts.count];
    }
    question->id = core->effects.random(core->effects.arg) | 1;
    question->link = node->link;
    question->next = core->questions;
    core->questions = question;
    struct message_inspect look = {
        .question = question->id, .pid = spec->ask.adopted_pid, .start = spec->ask.adopted_start
    };
    core->effects.send(core->effects.arg, node->link, &message_inspect_record, &look);
}

/* --- while it waits --- */

static void send_inspect(struct core *core, const struct job *job, uint32_t pid)
{
    struct message_inspect look = { .job = job->id, .pid = pid, .start = job->ask->adopted_start };
    const struct core_node *node = find_node(core, job->ask, NULL);
    if (node != NULL)
        core->effects.send(core->effects.arg, node->link, &message_inspect_record, &look);
}

static void on_act(struct core *core, struct core_entry *entry)
{
    if (entry->job->state == JOB_QUEUED && entry->job->ask->adopted_pid != 0)
        send_inspect(core, entry->job, entry->job->ask->adopted_pid);
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    core->may_have_adoptions |= entry->job->ask->adopted_pid != 0;
}

/* Most sites have none, and a thousand nodes that return must not each walk the whole queue. */
static void on_back(struct core *core, struct core_node *node)
{
    struct core_entry *after = NULL;
    if (!core->may_have_adoptions)
        return;
    core->may_have_adoptions = false;
    for (struct core_entry *entry = core->jobs.first; entry != NULL; entry = after) {
        const struct job *job = entry->job;
        bool is_waiting = job->state == JOB_QUEUED && job->ask->adopted_pid != 0;
        const struct core_node *where = is_waiting ? find_node(core, job->ask, NULL) : NULL;
        after = entry->after;
        core->may_have_adoptions |= is_waiting;
        if (where == NULL || where != node)
            continue;
        if (core_is_same_boot(job->ask->adopted_boot, where->hello.boot_id))
            core_act(core, entry);
        else
            on_over(core, entry, "its node rebooted while the process waited to be adopted");
    }
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    enum job_state before = news->before;
    if (job->ask->adopted_pid == 0)
        return;
    core->may_have_adoptions = true;
    struct core_node *node = core_find_node(core, job->node);
    if (before == JOB_QUEUED && job->state == JOB_DONE)
        send_inspect(core, job, 0);
    if (job->state != JOB_DONE || before == JOB_QUEUED || job->end == END_RELEASED || node == NULL)
        return;
    /* It was released and may still be running: until the next sample it counts as external. */
    mark_process(node, job->id, 0, 0);
    recheck_node(core, node);
}

static const struct core_message messages[] = { { MESSAGE_PROCESS_INFO, on_process }, { 0 } };

const struct core_concern core_concern_adoptions = {
    .name = "adoptions",
    .free = clear,
    .resume = on_resume,
    .events = CORE_ON_ALL,
    .event = on_event,
    .act = on_act,
    .messages = messages,
    .back = on_back,
    .cut = on_cut,
    .forget = forget,
};
