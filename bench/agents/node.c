/* SPDX-License-Identifier: MIT */
/*
 *   LAUNCH ──> STARTED ── its time is over, or STOP ──> EXITED ──> RELEASE_ATTEMPT
 *     └─ one of several ranks: READY ──> GO ──> STARTED
 */
#include "node.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "job/state.h"
#include "wire/frame.h"
#include "wire/message.h"

#define GPUS_MAX     64U
#define EXIT_OF_TERM 143
#define DAY_S        86400.0

struct attempt {
    struct node *node;
    struct spool_id id;
    uint64_t token;
    double seconds;
    int64_t started_wall_ms;
    enum attempt_phase phase;
    bool is_stopped;
    struct event *end;
    struct attempt *next;
};

struct node {
    struct event_base *base;
    char *name;
    const struct node_options *options;
    void (*on_up)(void *arg);
    void *arg;
    struct bufferevent *stream; // NULL: there is no link
    struct event *beat, *sample;
    struct message_welcome known; // of the controller that was last heard
    struct attempt *attempts;
    struct gpu_state gpus[GPUS_MAX];
    unsigned samples;
};

static void send_message(const struct node *node, const struct record_type *type, const void *message)
{
    struct error err = { 0 };
    if (node->stream != NULL && frame_send(node->stream, type, message, &err) < 0)
        (void)fprintf(stderr, "%s: %s\n", node->name, err.message);
}

static void set_timer(struct event *timer, double seconds)
{
    struct timeval wait = { .tv_sec = (time_t)seconds };
    wait.tv_usec = (suseconds_t)((seconds - (double)wait.tv_sec) * 1e6);
    (void)evtimer_add(timer, &wait);
}

/* --- samples --- */

static void make_gpus(struct node *node)
{
    for (unsigned i = 0; i < node->options->gpus; i++)
        node->gpus[i] = (struct gpu_state){
            .index = i,
            .uuid = xasprintf("GPU-%s-%04u", node->name, i),
            .model = xstrdup("Simulated"),
            .memory_bytes = (uint64_t)node->options->gpu_gib << 30,
            .valid = GPU_MEMORY_USED | GPU_UTILIZATION | GPU_TEMPERATURE | GPU_POWER,
            .numa = i >= node->options->gpus / 2,
            .pcie_switch = (int32_t)(i / 2),
            .minor = (int32_t)i,
            .render_minor = -1,
        };
}

/* Values that change, as those of real GPUs do. */
static void measure(struct node *node)
{
    node->samples++;
    for (unsigned i = 0; i < node->options->gpus; i++) {
        struct gpu_state *gpu = &node->gpus[i];
        unsigned wave = (node->samples * 7 + i * 13) % 100;
        gpu->utilization_percent = wave;
        gpu->memory_used_bytes = (uint64_t)wave << 28;
        gpu->temperature_c = 40 + wave / 4;
        gpu->power_mw = 60000 + wave * 2000;
    }
}

static void on_sample(evutil_socket_t fd, short what, void *arg)
{
    struct node *node = arg;
    struct attempt_usage *usages = NULL;
    size_t count = 0, at = 0;
    for (const struct attempt *one = node->attempts; one != NULL; one = one->next)
        count += one->phase == PHASE_RUNNING;
    usages = xcalloc(count + 1, sizeof(*usages));
    struct job_usage usage = { .valid = USAGE_UTILIZATION, .sampled_ms = 1000, .utilization_milli = 500 };
    for (const struct attempt *one = node->attempts; one != NULL; one = one->next)
        if (one->phase == PHASE_RUNNING)
            usages[at++] =
                (struct attempt_usage){ .id = one->id, .token = one->token, .usage = { &usage, 1 } };
    measure(node);
    struct message_gpus gpus = { .gpus = { node->gpus, node->options->gpus }, .usages = { usages, count } };
    send_message(node, &message_gpus_record, &gpus);
    free(usages);
    set_timer(node->sample, node->options->sample_ms / 1e3);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    struct node *node = arg;
    struct message_heartbeat beat = { .sent_ms = clock_boot_ms() };
    send_message(node, &message_heartbeat_record, &beat);
    set_timer(node->beat, (double)node->known.heartbeat_ms / 1e3);
}

/* --- attempts --- */

static struct attempt *find(const struct node *node, const struct spool_id *id)
{
    struct attempt *one = node->attempts;
    while (one != NULL && !spool_id_equal(&one->id, id))
        one = one->next;
    return one;
}

static void attempt_drop(struct attempt *attempt)
{
    struct attempt **at = &attempt->node->attempts;
    while (*at != attempt)
        at = &(*at)->next;
    *at = attempt->next;
    event_free(attempt->end);
    free(attempt);
}

static void report(const struct attempt *attempt)
{
    char log_path[] = "/dev/null";
    struct spool_id id = attempt->id;
    if (attempt->phase == PHASE_RUNNING) {
        struct launch_started started = {
            .id = id, .token = attempt->token, .shepherd_pid = 1, .init_pid = 1
        };
        started.wall_ms = attempt->started_wall_ms;
        started.log_path = log_path;
        send_message(attempt->node, &message_started_record, &started);
    } else if (attempt->phase == PHASE_EXITED) {
        struct launch_exit end = {
            .id = id, .token = attempt->token, .is_executed = 1, .log_path = log_path
        };
        end.end = attempt->is_stopped ? END_CANCELLED : END_EXIT;
        end.exit_code = attempt->is_stopped ? EXIT_OF_TERM : 0;
        end.started_wall_ms = attempt->started_wall_ms;
        end.ended_wall_ms = clock_wall_ms();
        end.run_ms = end.ended_wall_ms - end.started_wall_ms;
        send_message(attempt->node, &message_exited_record, &end);
    } else {
        struct message_ready ready = { .id = id, .token = attempt->token };
        send_message(attempt->node, &message_ready_record, &ready);
    }
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    struct attempt *attempt = arg;
    attempt->phase = PHASE_EXITED;
    attempt->node->options->counts->ended++;
    report(attempt);
}

static void start(struct attempt *attempt)
{
    attempt->phase = PHASE_RUNNING;
    attempt->started_wall_ms = clock_wall_ms();
    attempt->node->options->counts->started++;
    report(attempt);
    set_timer(attempt->end, attempt->seconds);
}

static double seconds_of(const struct message_launch *launch)
{
    struct job_spec spec;
    double seconds = 0;
    if (launch->spec.length == 0 || record_unpack(&job_spec_record, &launch->spec, &spec, NULL) < 0)
        return 0;
    if (spec.command.count == 2 && strcmp(spec.command.items[0], "sleep") == 0)
        seconds = strtod(spec.command.items[1], NULL);
    record_clear(&job_spec_record, &spec);
    return seconds > 0 && seconds < DAY_S ? seconds : 0;
}

static void on_launch(struct node *node, const struct message_launch *launch)
{
    struct attempt *attempt = find(node, &launch->id);
    node->options->counts->launches++;
    if (attempt != NULL && attempt->token == launch->token) {
        node->options->counts->repeated++;
        report(attempt);
        return;
    }
    if (attempt != NULL)
        attempt_drop(attempt);
    attempt = xcalloc(1, sizeof(*attempt));
    *attempt = (struct attempt){ .node = node, .id = launch->id, .token = launch->token };
    attempt->phase = PHASE_STAGED;
    attempt->seconds = seconds_of(launch);
    attempt->end = evtimer_new(node->base, on_end, attempt);
    attempt->next = node->attempts;
    node->attempts = attempt;
    if (launch->peers.count > 0)
        report(attempt);
    else
        start(attempt);
}

/* An attempt that was never launched here has ended too: the controller gives its GPUs to others then. */
static void on_stop(struct node *node, const struct message_stop *stop)
{
    struct attempt *attempt = find(node, &stop->id);
    if (attempt == NULL || attempt->phase == PHASE_STAGED) {
        struct message_returned returned = { .id = stop->id, .token = stop->token };
        send_message(node, &message_returned_record, &returned);
        return;
    }
    if (attempt->phase == PHASE_RUNNING) {
        attempt->is_stopped = true;
        (void)evtimer_del(attempt->end);
        on_end(-1, 0, attempt);
    } else {
        report(attempt);
    }
}

static void on_release(struct node *node, const struct spool_id *id)
{
    struct attempt *attempt = find(node, id);
    if (attempt == NULL)
        return;
    node->options->counts->released++;
    attempt_drop(attempt);
}

/* --- the link --- */

static void on_welcome(struct node *node, const struct message_welcome *welcome)
{
    node->known = *welcome;
    for (struct attempt *one = node->attempts; one != NULL; one = one->next)
        report(one);
    /* Spread over the interval by the node's address, as machines started at different times. */
    double phase = (double)((uintptr_t)node / 64 % 1000) / 1000;
    set_timer(node->sample, node->options->sample_ms / 1e3 * phase);
    if (welcome->heartbeat_ms > 0)
        set_timer(node->beat, (double)welcome->heartbeat_ms / 1e3 * phase);
    node->on_up(node->arg);
}

int node_take(struct node *node, const struct record_type *type, void *message, struct error *err)
{
    if (type == &message_welcome_record) {
        on_welcome(node, message);
    } else if (type == &message_launch_record) {
        on_launch(node, message);
    } else if (type == &message_stop_record) {
        on_stop(node, message);
    } else if (type == &message_release_attempt_record) {
        on_release(node, &((const struct message_release_attempt *)message)->id);
    } else if (type == &message_go_record) {
        struct attempt *attempt = find(node, &((const struct message_go *)message)->id);
        if (attempt != NULL && attempt->phase == PHASE_STAGED)
            start(attempt);
    } else if (type == &message_refused_record) {
        (void)fprintf(
            stderr, "%s: refused: %s\n", node->name, ((const struct message_refused *)message)->text);
    }
    return 0;
}

void node_set_link(struct node *node, struct bufferevent *stream)
{
    char boot_id[64], version[] = MGPU_VERSION, backend[] = "sim";
    size_t count = 0, at = 0;
    node->stream = stream;
    (void)evtimer_del(node->beat);
    (void)evtimer_del(node->sample);
    if (stream == NULL)
        return;
    for (const struct attempt *one = node->attempts; one != NULL; one = one->next)
        count++;
    struct known_attempt *known = xcalloc(count + 1, sizeof(*known));
    for (const struct attempt *one = node->attempts; one != NULL; one = one->next)
        known[at++] = (struct known_attempt){ .id = one->id, .token = one->token, .phase = one->phase };
    (void)snprintf(boot_id, sizeof(boot_id), "sim+1"); // all are on one machine: they can meet
    struct message_hello hello = {
        .protocol = LINK_PROTOCOL,
        .node = node->name,
        .boot_id = boot_id,
        .version = version,
        .cpus = 16 * node->options->gpus,
        .memory_bytes = (uint64_t)node->options->gpus << 37,
        .gpu_backend = backend,
        .gpus = { node->gpus, node->options->gpus },
        .attempts = { known, count },
        .sent_ms = clock_boot_ms(),
        .epoch = node->known.epoch,
        .began_ms = node->known.began_ms,
        .event = node->known.event,
    };
    send_message(node, &message_hello_record, &hello);
    free(known);
}

struct node *node_new(struct event_base *base, const char *name, const struct node_options *options,
    void (*on_up)(void *arg), void *arg)
{
    struct node *node = xcalloc(1, sizeof(*node));
    *node = (struct node){ .base = base, .name = xstrdup(name), .options = options };
    node->on_up = on_up;
    node->arg = arg;
    node->beat = evtimer_new(base, on_beat, node);
    node->sample = evtimer_new(base, on_sample, node);
    make_gpus(node);
    return node;
}

void node_free(struct node *node)
{
    while (node->attempts != NULL)
        attempt_drop(node->attempts);
    for (unsigned i = 0; i < node->options->gpus; i++) {
        free(node->gpus[i].uuid);
        free(node->gpus[i].model);
    }
    event_free(node->beat);
    event_free(node->sample);
    free(node->name);
    free(node);
}
