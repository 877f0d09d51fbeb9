/* SPDX-License-Identifier: MIT */
#include "serve_harness.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/history/gpu_history.h"
#include "serve_later.h"

static int listen_unix(struct harness *harness)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", harness->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0)
        abort();
    return fd;
}

static int listen_tcp(struct harness *harness)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        abort();
    harness->port = ntohs(address.sin_port);
    return fd;
}

static void add_gpu(struct message_hello *hello, uint32_t index)
{
    hello->gpus.items = xreallocarray(hello->gpus.items, hello->gpus.count + 1, sizeof(struct gpu_state));
    struct gpu_state *gpu = (struct gpu_state *)hello->gpus.items + hello->gpus.count++;
    *gpu = (struct gpu_state){ .index = index,
        .uuid = xasprintf("GPU-%u", index),
        .model = xstrdup("Simulated"),
        .memory_bytes = 24ULL << 30,
        .valid = GPU_UTILIZATION,
        .utilization_percent = 50 };
}

struct harness *harness_new(void)
{
    struct rlimit files;
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 20000 ? files.rlim_max : 20000;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)signal(SIGPIPE, SIG_IGN);
    struct harness *harness = xcalloc(1, sizeof(*harness));
    current = harness;
    (void)snprintf(harness->directory, sizeof(harness->directory), "/tmp/mgpu-serve-XXXXXX");
    if (mkdtemp(harness->directory) == NULL)
        abort();
    (void)snprintf(harness->path, sizeof(harness->path), "%s/sock", harness->directory);
    harness->agent_fd = -1;
    harness->controller.loop = event_base_new();
    harness->controller.core = &harness->core;
    harness->controller.history = gpu_history_new();
    harness->controller.is_root = true;
    harness->controller.admin_uid = getuid();
    harness->controller.options.allow_root_jobs = true;
    (void)snprintf(harness->controller.summary.instance, 33, "00112233445566778899aabbccddeeff");
    harness->controller.summary.epoch = 4;
    harness->later_event = event_new(harness->controller.loop, -1, 0, later_run, harness);
    harness->core.node = (struct core_node){ .name = xstrdup("here"), .is_up = true, .link = 1 };
    harness->core.node.hello.gpu_backend = xstrdup("sim");
    harness->core.node.hello.cpus = 8;
    add_gpu(&harness->core.node.hello, 0);
    add_gpu(&harness->core.node.hello, 1);
    struct sched_settings settings;
    const struct sched_callbacks nobody = { 0 };
    sched_settings_init(&settings);
    harness->core.sched = sched_new(&settings, &nobody);
    harness->controller.serve = api_new(&harness->controller);
    struct error err;
    if (serve_listen(harness->controller.serve, listen_unix(harness), true, &err) < 0 ||
        serve_listen(harness->controller.serve, listen_tcp(harness), false, &err) < 0)
        abort();
    return harness;
}

void harness_free(struct harness *harness)
{
    serve_close(harness->controller.serve);
    harness->is_barrier_held = false;
    while (harness->later != NULL) // whoever holds a reference lets it go
        later_run(-1, 0, harness);
    serve_free(harness->controller.serve);
    while (harness->waiters != NULL) {
        struct waiter *waiter = harness->waiters;
        harness->waiters = waiter->next;
        free(waiter);
    }
    if (harness->agent_event != NULL)
        event_free(harness->agent_event);
    if (harness->agent_fd >= 0)
        (void)close(harness->agent_fd);
    for (size_t i = 0; i < harness->core.n_jobs; i++)
        job_free(harness->core.jobs[i]);
    for (size_t i = 0; i < harness->n_rows; i++)
        job_free(harness->rows[i]);
    for (size_t i = 0; i < harness->n_events; i++)
        job_event_clear(&harness->events[i]);
    job_spec_free(harness->submitted);
    sched_free(harness->core.sched);
    free(harness->core.node.name);
    record_clear(&message_hello_record, &harness->core.node.hello);
    event_free(harness->later_event);
    gpu_history_free(harness->controller.history);
    event_base_free(harness->controller.loop);
    (void)unlink(harness->path);
    (void)rmdir(harness->directory);
    free(harness);
}

int harness_start(void **state)
{
    *state = harness_new();
    return 0;
}

int harness_stop(void **state)
{
    harness_free(*state);
    return 0;
}

static struct job *make_job(uint64_t id, uint32_t uid, enum job_state state)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "sleep");
    strings_add(&spec.command, "1");
    struct job *job = job_new(id, &spec);
    job_spec_clear(&spec);
    job->uid = uid;
    job->state = state;
    job->submitted_ms = clock_wall_ms();
    if (state != JOB_QUEUED) {
        job->attempt = 1;
        job->node = xstrdup("here");
    }
    if (state == JOB_RUNNING || state == JOB_DONE) {
        job->started_ms = job->submitted_ms;
        job_make_run(job)->log_path = xstrdup("/home/someone/log");
    }
    if (state == JOB_DONE) {
        job->end = END_EXIT;
        job->ended_ms = job->submitted_ms;
    }
    return job;
}

struct job *harness_add_job(struct harness *harness, uint64_t id, uint32_t uid, enum job_state state)
{
    struct job *job = make_job(id, uid, state);
    harness->core.jobs[harness->core.n_jobs++] = job;
    return job;
}

struct job *harness_add_row(struct harness *harness, uint64_t id, uint32_t uid)
{
    struct job *job = make_job(id, uid, JOB_DONE);
    harness->rows[harness->n_rows++] = job;
    return job;
}

void harness_add_event(struct harness *harness, uint64_t job, bool is_published)
{
    struct job_event *event = &harness->events[harness->n_events++];
    *event = (struct job_event){
        .seq = harness->n_events, .job = job, .attempt = 1, .type = EVENT_STARTED, .wall_ms = 1000
    };
    if (!is_published)
        return;
    harness->core.last_event = event->seq;
    struct job *shown = make_job(job, 0, JOB_RUNNING);
    api_publish(harness->controller.serve, event, shown);
    job_free(shown);
}

static void on_turn_over(int fd, short what, void *arg)
{
}

void harness_turn(struct harness *harness, int ms)
{
    const struct timeval most = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    struct event *timer = evtimer_new(harness->controller.loop, on_turn_over, NULL);
    (void)event_add(timer, &most);
    (void)event_base_loop(harness->controller.loop, ms == 0 ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
    event_free(timer);
}
