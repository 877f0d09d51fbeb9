/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "memory_store.h"

static void commit(void *arg, struct store_batch *batch)
{
    struct bench *bench = arg;
    assert_null(bench->flying);
    bench->flying = batch;
}

static void send_message(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
    struct bench *bench = arg;
    assert_true(bench->n_sent < BENCH_MAX);
    struct sent *sent = &bench->sent[bench->n_sent++];
    *sent = (struct sent){ .id = type->id, .link = link };
    if (type->id == MESSAGE_WELCOME) {
        const struct message_welcome *welcome = message;
        sent->order = welcome->last_order;
        sent->heartbeat_ms = welcome->heartbeat_ms;
        sent->epoch = welcome->epoch;
        sent->began_ms = welcome->began_ms;
        sent->event = welcome->event;
    }
    if (type->id == MESSAGE_WELCOME || type->id == MESSAGE_HEARTBEAT_ACK)
        return;
    if (type->id == MESSAGE_RELEASE_GPUS) {
        sent->n_gpus = (uint32_t)((const struct message_release_gpus *)message)->uuids.count;
        return;
    }
    const struct message_launch *launch = message; // LAUNCH, STOP and RELEASE_ATTEMPT begin alike
    sent->job = launch->id.job;
    sent->attempt = launch->id.attempt;
    sent->token = launch->token;
    sent->rank = launch->id.rank;
    if (type->id == MESSAGE_LAUNCH || type->id == MESSAGE_PREPARE)
        sent->order = launch->order;
    if (type->id == MESSAGE_LAUNCH)
        sent->event = launch->event;
    if (type->id == MESSAGE_RELEASE_ATTEMPT)
        sent->event = ((const struct message_release_attempt *)message)->event;
    if (type->id == MESSAGE_LAUNCH || type->id == MESSAGE_PREPARE)
        sent->n_gpus = (uint32_t)launch->gpus.count;
    if (type->id == MESSAGE_LAUNCH || type->id == MESSAGE_PREPARE)
        sent->has_spec = launch->spec.length > 0;
    if (type->id == MESSAGE_LAUNCH)
        sent->gid = launch->gid;
    if (type->id == MESSAGE_LAUNCH)
        sent->is_early = launch->is_early != 0;
    if (type->id == MESSAGE_LAUNCH && launch->user != NULL)
        (void)snprintf(sent->user, sizeof(sent->user), "%s", launch->user);
    if (type->id == MESSAGE_PARK) {
        sent->number = ((const struct message_park *)message)->number;
        sent->action = ((const struct message_park *)message)->action;
        sent->n_gpus = (uint32_t)((const struct message_park *)message)->gpus.count;
    }
    if (type->id == MESSAGE_UPDATE) {
        sent->number = ((const struct message_update *)message)->number;
        sent->is_suspended = ((const struct message_update *)message)->is_suspended;
    }
    if (type->id == MESSAGE_GO)
        sent->port = ((const struct message_go *)message)->port;
    if (type->id == MESSAGE_STOP)
        sent->signal = ((const struct message_stop *)message)->signal;
    if (type->id == MESSAGE_STOP)
        sent->grace_ms = ((const struct message_stop *)message)->grace_ms;
    if (type->id == MESSAGE_LAUNCH && launch->peers.count > 0)
        (void)snprintf(sent->meeting, sizeof(sent->meeting), "%s:%u",
            ((const struct launch_peer *)launch->peers.items)->address, launch->port);
}

static const char *user_name(void *arg, uint32_t uid)
{
    return uid == 1000 ? ((struct bench *)arg)->user : NULL;
}

static uint32_t group_of(void *arg, uint32_t uid, uint32_t gid)
{
    uint32_t group = ((struct bench *)arg)->group;
    return group != 0 ? group : gid;
}

static void close_link(void *arg, uint32_t link)
{
    ((struct bench *)arg)->closed = link;
}

static void reply(void *arg, void *request, const struct core_answer *answer)
{
    struct bench *bench = arg;
    assert_null(bench_answer(bench, request));
    assert_true(bench->n_answers < BENCH_MAX);
    bench->answers[bench->n_answers++] = (struct answer){ request, *answer };
}

static void publish(void *arg, const struct job_event *event, const struct job *job)
{
    struct bench *bench = arg;
    assert_true(bench->n_published < BENCH_MAX);
    bench->published[bench->n_published++] = event->type;
    if (event->type == EVENT_CLUSTER) {
        assert_true(bench->n_changes < BENCH_MAX);
        bench->changes[bench->n_changes++] = ((const struct cluster_change *)event->change.items)->kind;
    }
}

static void fetch_spec(void *arg, uint64_t job)
{
    ((struct bench *)arg)->fetched = job;
}

static void fetch_end(void *arg, uint64_t job)
{
    ((struct bench *)arg)->asked = job;
}

static void arm(void *arg, int64_t boot_ms)
{
    ((struct bench *)arg)->armed_ms = boot_ms;
}

static uint64_t random_number(void *arg)
{
    return ++((struct bench *)arg)->last_random * 2 + 1;
}

int bench_open(void **state)
{
    struct bench *bench = xcalloc(1, sizeof(*bench));
    struct core_options options = {
        .queue_max = 4, .recent_done_max = 2, .grace_ms = 30000, .admin_uid = 77
    };
    sched_settings_init(&options.sched);
    options.external = (struct external_settings){ .policy = EXTERNAL_AVOID,
        .external_memory = 512ULL << 20,
        .external_load = 5,
        .share_memory = 80,
        .share_load = 80 };
    options.health = (struct health_settings){ .recover_ms = 600000, .unclean_ms = 600000 };
    options.idle = (struct idle_policy){ .warn_ms = 10000, .yields_ms = 20000, .is_ok_for_operators = true };
    options.notifications = (struct notification_settings){ .per_hour = 5, .time_ms = 30000 };
    struct core_effects effects = {
        .arg = bench,
        .commit = commit,
        .send = send_message,
        .close_link = close_link,
        .reply = reply,
        .publish = publish,
        .fetch_spec = fetch_spec,
        .fetch_end = fetch_end,
        .arm = arm,
        .random = random_number,
        .user_name = user_name,
        .group_of = group_of,
    };
    bench->options = options;
    bench->effects = effects;
    bench->user = "ana";
    bench->core = core_new(&options, &effects);
    struct store_summary summary = { .epoch = 3, .last_job = 10, .last_event = 19 };
    core_load_summary(bench->core, &summary);
    bench->now_ms = 1000;
    core_load_end(bench->core, bench->now_ms, bench->now_ms); // makes one event
    bench_settle(bench);
    bench->n_published = bench->n_changes = 0;
    *state = bench;
    return 0;
}

static void restart(struct bench *bench, struct job *const *jobs, size_t count)
{
    struct store_summary summary = { .epoch = 4, .last_job = core_last_job(bench->core), .last_event = 100 };
    core_free(bench->core);
    store_batch_free(take_ptr(bench->flying));
    bench->core = core_new(&bench->options, &bench->effects);
    core_load_summary(bench->core, &summary);
    for (size_t i = 0; i < count; i++)
        core_load_job(bench->core, jobs[i]);
    core_load_end(bench->core, bench->now_ms, bench->now_ms);
    bench_settle(bench);
}

void bench_restart(struct bench *bench, struct job *job)
{
    restart(bench, &job, job != NULL);
}

void bench_restart_all(struct bench *bench)
{
    struct job *loaded[BENCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < BENCH_MAX; i++)
        if (bench->stored[i] != NULL)
            loaded[count++] = take_ptr(bench->stored[i]);
    restart(bench, loaded, count);
}

struct job *bench_stored(struct bench *bench, uint64_t job)
{
    assert_non_null(bench->stored[job]);
    return take_ptr(bench->stored[job]);
}

void bench_configure(struct bench *bench)
{
    core_configure(bench->core, bench->now_ms, bench->now_ms, &bench->options);
    bench_settle(bench);
}

int bench_open_with_one(void **state)
{
    (void)bench_open(state);
    return bench_hello(*state, 1, "boot", 1, NULL, 0);
}

int bench_open_with_two(void **state)
{
    (void)bench_open(state);
    return bench_hello(*state, 1, "boot", 2, NULL, 0);
}

int bench_open_with_four(void **state)
{
    (void)bench_open(state);
    return bench_hello(*state, 1, "boot", 4, NULL, 0);
}

int bench_close(void **state)
{
    struct bench *bench = *state;
    core_free(bench->core);
    store_batch_free(bench->flying);
    for (size_t i = 0; i < BENCH_MAX; i++)
        job_free(bench->stored[i]);
    free(bench);
    return 0;
}

struct job_spec *bench_spec(const char *command)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, command);
    spec->cwd = xstrdup("/");
    return spec;
}

void bench_submit(struct bench *bench, uint32_t uid, uint32_t gpus, const char *key, void *request)
{
    struct identity who = { .is_known = true, .uid = uid, .gid = uid };
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = gpus;
    spec->submit_key = xstrdup(key);
    core_submit(bench->core, bench->now_ms, bench->now_ms, &who, spec, NULL, request);
}

/* Turns never end in the same millisecond. */
void bench_turn(struct bench *bench)
{
    bench->now_ms++;
    core_turn(bench->core, bench->now_ms, bench->now_ms);
}

static void keep(struct bench *bench, const struct change *change)
{
    struct error err = { 0 };
    if (change->event.job == 0 || change->event.job >= BENCH_MAX)
        return;
    struct job **job = &bench->stored[change->event.job];
    if (change->spec != NULL && *job == NULL)
        *job = job_new(change->event.job, change->spec);
    if (*job != NULL && job_apply(*job, &change->event, &err) < 0)
        fail_msg("%s", err.message);
}

void bench_settle(struct bench *bench)
{
    bench_turn(bench);
    while (bench->flying != NULL) {
        struct store_batch *batch = take_ptr(bench->flying);
        uint64_t id = batch->id;
        for (size_t i = 0; i < batch->count; i++)
            keep(bench, &batch->changes[i]);
        store_batch_free(batch);
        core_on_durable(bench->core, id);
        bench_turn(bench);
    }
}

void bench_submit_spec(struct bench *bench, const struct identity *who, struct job_spec *spec, void *request)
{
    core_submit(bench->core, bench->now_ms, bench->now_ms, who, spec, NULL, request);
    bench_settle(bench);
}

static int hello(struct bench *bench, uint32_t link, uint32_t gpus, const struct message_hello *fixed,
    const struct known_attempt *known, size_t n_known)
{
    struct message_hello hello = *fixed;
    hello.protocol = LINK_PROTOCOL;
    hello.node = xstrdup(fixed->node != NULL ? fixed->node : "box");
    hello.boot_id = xstrdup(fixed->boot_id);
    hello.cpus = 2;
    struct gpu_state *states = xcalloc(gpus, sizeof(*states));
    for (uint32_t i = 0; i < gpus; i++)
        states[i] = (struct gpu_state){
            .index = i, .uuid = xasprintf("GPU-%u", i), .memory_bytes = 24ULL << 30, .numa = -1
        };
    struct known_attempt *attempts = xcalloc(n_known, sizeof(*attempts));
    for (size_t i = 0; i < n_known; i++)
        attempts[i] = known[i];
    hello.gpus = (struct record_list){ states, gpus };
    hello.attempts = (struct record_list){ attempts, n_known };
    struct error err;
    int r = core_link_up(bench->core, bench->now_ms, bench->now_ms, link, &hello, &err);
    record_clear(&message_hello_record, &hello);
    return r;
}

int bench_hello_as(struct bench *bench, uint32_t link, const char *node, uint32_t gpus)
{
    char boot[] = "boot";
    _cleanup_free_ char *name = xstrdup(node);
    return hello(bench, link, gpus, &(struct message_hello){ .node = name, .boot_id = boot }, NULL, 0);
}

int bench_hello(struct bench *bench, uint32_t link, const char *boot_id, uint32_t gpus,
    const struct known_attempt *known, size_t n_known)
{
    _cleanup_free_ char *boot = xstrdup(boot_id);
    const struct message_hello fixed = { .boot_id = boot };
    return hello(bench, link, gpus, &fixed, known, n_known);
}

int bench_hello_seen(struct bench *bench, uint32_t link, uint64_t epoch, int64_t began_ms, uint64_t event,
    const struct known_attempt *known)
{
    char boot[] = "b00t";
    const struct message_hello fixed = {
        .boot_id = boot, .epoch = epoch, .began_ms = began_ms, .event = event
    };
    return hello(bench, link, 1, &fixed, known, known != NULL);
}

static int say(struct bench *bench, uint32_t link, uint16_t id, const void *message)
{
    struct error err;
    return core_link_message(bench->core, bench->now_ms, bench->now_ms, link, id, message, &err);
}

int bench_started(struct bench *bench, uint32_t link, const struct sent *launch)
{
    struct launch_started started = {
        .id.job = launch->job, .id.attempt = launch->attempt, .token = launch->token
    };
    return say(bench, link, MESSAGE_STARTED, &started);
}

int bench_exited(
    struct bench *bench, uint32_t link, const struct sent *launch, enum job_end end, int exit_code)
{
    struct launch_exit record = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = end,
        .exit_code = exit_code,
        .is_executed = end != END_UNKNOWN,
        .started_wall_ms = 5 };
    return say(bench, link, MESSAGE_EXITED, &record);
}

int bench_refused(struct bench *bench, uint32_t link, const struct sent *launch)
{
    char text[] = "there is no user 1000";
    struct launch_exit record = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .id.rank = launch->rank,
        .token = launch->token,
        .end = END_START_FAILED,
        .exit_code = 125,
        .is_refused = 1,
        .text = text };
    return say(bench, link, MESSAGE_EXITED, &record);
}

int bench_troubled(struct bench *bench, uint32_t link, const struct sent *launch, uint32_t cause)
{
    char text[] = "unknown user id on this node: 1000";
    struct message_returned returned = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .id.rank = launch->rank,
        .token = launch->token,
        .cause = cause,
        .text = text };
    return say(bench, link, MESSAGE_RETURNED, &returned);
}

int bench_returned(struct bench *bench, uint32_t link, const struct sent *launch)
{
    char text[] = "fork: try again";
    struct message_returned returned = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .id.rank = launch->rank,
        .token = launch->token,
        .text = text };
    return say(bench, link, MESSAGE_RETURNED, &returned);
}

const struct core_answer *bench_answer(const struct bench *bench, const void *request)
{
    for (size_t i = 0; i < bench->n_answers; i++)
        if (bench->answers[i].request == request)
            return &bench->answers[i].answer;
    return NULL;
}

const struct sent *bench_sent(const struct bench *bench, uint16_t id, uint64_t job)
{
    for (size_t i = bench->n_sent; i-- > 0;)
        if (bench->sent[i].id == id && bench->sent[i].job == job)
            return &bench->sent[i];
    return NULL;
}

void bench_pass(struct bench *bench, int64_t ms)
{
    bench->now_ms += ms;
    core_timer(bench->core, bench->now_ms, bench->now_ms);
    bench_settle(bench);
}

void bench_say(struct bench *bench, uint32_t link, uint16_t id, const void *message)
{
    struct error err = { 0 };
    assert_int_equal(
        core_link_message(bench->core, bench->now_ms, bench->now_ms, link, id, message, &err), 0);
    bench_settle(bench);
}
