/* SPDX-License-Identifier: MIT */
#include "serve_harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/links.h"
#include "controller/streams.h"

#define DEADLINE_MS 10000

static struct harness *current; // the stand-ins below have no other way to it

/* --- work for later, so that no answer comes from within a call --- */

enum later_kind { LATER_REPLY, LATER_BARRIER, LATER_CALL };

struct later {
    struct later *next;
    enum later_kind kind;
    void *request;
    struct core_answer answer;
    void (*call)(struct later *later);
    void *arg;
    void (*callback)(void);
    uint64_t number, second;
    size_t limit;
    uint8_t hash[32];
};

struct waiter {
    struct waiter *next;
    void *request;
    uint64_t job;
    uint32_t states;
};

static struct later *add_later(enum later_kind kind)
{
    struct later *later = xcalloc(1, sizeof(*later));
    later->kind = kind;
    struct later **link = &current->later;
    while (*link != NULL)
        link = &(*link)->next;
    *link = later;
    event_active(current->later_event, EV_TIMEOUT, 0);
    return later;
}

static void on_later(int fd, short what, void *arg)
{
    struct harness *harness = arg;
    struct later **link = &harness->later;
    struct later *batch = NULL, **end = &batch;
    while (*link != NULL) { // those added meanwhile wait for the next turn
        struct later *later = *link;
        if (later->kind == LATER_BARRIER && harness->is_barrier_held) {
            link = &later->next;
            continue;
        }
        *link = later->next;
        later->next = NULL;
        *end = later;
        end = &later->next;
    }
    while (batch != NULL) {
        struct later *later = batch;
        batch = later->next;
        if (later->kind == LATER_CALL)
            later->call(later);
        else if (later->request != NULL)
            serve_reply(harness->controller.serve, later->request, &later->answer);
        free(later);
    }
}

static void reply_later(void *request, const struct core_answer *answer)
{
    struct later *later = add_later(LATER_REPLY);
    later->request = request;
    later->answer = *answer;
}

void harness_release_barriers(struct harness *harness)
{
    harness->is_barrier_held = false;
    event_active(harness->later_event, EV_TIMEOUT, 0);
}

/* --- core --- */

void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, void *request)
{
    struct core_answer answer = { .code = current->submit_code };
    current->asked_by = *who;
    job_spec_free(current->submitted);
    current->submitted = spec;
    if (answer.code < 0) {
        (void)error_set(&answer.err, answer.code, "refused by the core");
        reply_later(request, &answer);
        return;
    }
    struct job *job = job_new(core->n_jobs + 1, spec);
    job->uid = who->uid;
    job->state = JOB_QUEUED;
    job->submitted_ms = wall_ms;
    core->jobs[core->n_jobs++] = job;
    answer.job = job->id;
    if (!current->is_submit_held)
        reply_later(request, &answer);
}

static void answer_waiters(struct job *job)
{
    struct waiter **link = &current->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->job != job->id || (waiter->states & (1U << job->state)) == 0) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        reply_later(waiter->request, &(struct core_answer){ .job = job->id });
        free(waiter);
    }
}

void harness_set_state(struct harness *harness, struct job *job, enum job_state state)
{
    job->state = state;
    answer_waiters(job);
}

void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    int64_t grace_ms, void *request)
{
    struct core_answer answer = { .job = id };
    current->asked_by = *who;
    current->grace_ms = grace_ms;
    for (size_t i = 0; i < core->n_jobs; i++) {
        if (core->jobs[i]->id != id)
            continue;
        core->jobs[i]->end = END_CANCELLED;
        core->jobs[i]->ended_ms = wall_ms;
        harness_set_state(current, core->jobs[i], JOB_DONE);
    }
    reply_later(request, &answer);
}

void core_wait(struct core *core, const struct identity *who, uint64_t job, uint32_t states, void *request)
{
    const struct job *found = core_job(core, job);
    struct core_answer answer = { .job = job };
    current->asked_by = *who;
    if (found == NULL)
        answer.code = error_set(&answer.err, -ENOENT, "there is no such job");
    if (found == NULL || (states & (1U << found->state)) != 0) {
        reply_later(request, &answer);
        return;
    }
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){ .next = current->waiters, .request = request, .job = job, .states = states };
    current->waiters = waiter;
}

void core_barrier(struct core *core, void *request)
{
    current->barriers++;
    add_later(LATER_BARRIER)->request = request;
}

void core_forget(struct core *core, void *request)
{
    current->forgotten++;
    for (struct later *later = current->later; later != NULL; later = later->next)
        if (later->request == request)
            later->request = NULL;
    struct waiter **link = &current->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->request != request) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        free(waiter);
    }
}

const struct job *core_job(const struct core *core, uint64_t id)
{
    for (size_t i = 0; i < core->n_jobs; i++)
        if (core->jobs[i]->id == id)
            return core->jobs[i];
    return NULL;
}

void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg)
{
    for (size_t i = core->n_jobs; i > 0; i--) // in no useful order
        visit(arg, core->jobs[i - 1]);
}

size_t core_queue_position(const struct core *core, uint64_t id)
{
    return 3;
}

const char *core_wait_reason(const struct core *core, uint64_t id, char *text, size_t size)
{
    (void)snprintf(text, size, "waits for a GPU");
    return "resources";
}

void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg)
{
    visit(arg, &core->node);
}

const struct core_node *core_node(const struct core *core, const char *name)
{
    return strcmp(core->node.name, name) == 0 ? &core->node : NULL;
}

size_t core_gpu_jobs(
    const struct core *core, const char *node, uint32_t gpu_index, uint64_t *jobs, size_t max)
{
    size_t found = 0;
    for (size_t i = 0; i < core->n_jobs; i++) {
        const struct gpu_grant *grants = core->jobs[i]->grants.items;
        for (size_t k = 0; k < core->jobs[i]->grants.count; k++) {
            if (grants[k].index != gpu_index || !job_state_is_active(core->jobs[i]->state))
                continue;
            if (found < max)
                jobs[found] = core->jobs[i]->id;
            found++;
        }
    }
    return found;
}

uint64_t core_last_event(const struct core *core)
{
    return core->last_event;
}

bool core_may_control(const struct identity *who, const struct job *job, uint32_t admin_uid)
{
    return who->is_known && (who->is_admin || who->uid == job->uid);
}

/* --- store --- */

static void call_job(struct later *later)
{
    void (*on_job)(void *, uint64_t, struct job *) =
        (void (*)(void *, uint64_t, struct job *))later->callback;
    for (size_t i = 0; i < current->n_rows; i++) {
        if (current->rows[i] == NULL || current->rows[i]->id != later->number)
            continue;
        struct job_spec spec;
        job_spec_init(&spec);
        strings_add(&spec.command, "old");
        struct job *row = job_new(later->number, &spec);
        job_spec_clear(&spec);
        row->uid = current->rows[i]->uid;
        row->state = JOB_DONE;
        row->end = END_EXIT;
        row->ended_ms = row->submitted_ms = 1;
        on_job(later->arg, later->number, row);
        return;
    }
    on_job(later->arg, later->number, NULL);
}

void store_fetch_job(
    struct store *store, uint64_t job, void (*on_job)(void *arg, uint64_t job, struct job *row), void *arg)
{
    struct later *later = add_later(LATER_CALL);
    later->call = call_job;
    later->callback = (void (*)(void))on_job;
    later->arg = arg;
    later->number = job;
}

static void call_spec(struct later *later)
{
    void (*on_spec)(void *, uint64_t, struct job_spec *) =
        (void (*)(void *, uint64_t, struct job_spec *))later->callback;
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, "sleep");
    strings_add(&spec->command, "1");
    strings_add(&spec->env, "SECRET=treasure");
    spec->cwd = xstrdup("/home/someone");
    on_spec(later->arg, later->number, spec);
}

void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct job_spec *spec), void *arg)
{
    struct later *later = add_later(LATER_CALL);
    later->call = call_spec;
    later->callback = (void (*)(void))on_spec;
    later->arg = arg;
    later->number = job;
}

static void call_events(struct later *later)
{
    void (*on_events)(void *, const struct job_event *, size_t) =
        (void (*)(void *, const struct job_event *, size_t))later->callback;
    struct job_event page[512];
    size_t count = 0;
    for (size_t i = 0; i < current->n_events && count < later->limit && count < 512; i++) {
        const struct job_event *event = &current->events[i];
        if (event->seq > later->number && (later->second == 0 || later->second == event->job))
            page[count++] = *event;
    }
    on_events(later->arg, page, count);
}

void store_fetch_events(struct store *store, uint64_t after, uint64_t job, size_t limit,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    struct later *later = add_later(LATER_CALL);
    later->call = call_events;
    later->callback = (void (*)(void))on_events;
    later->arg = arg;
    later->number = after;
    later->second = job;
    later->limit = limit;
}

static void call_added(struct later *later)
{
    void (*on_added)(void *, uint64_t) = (void (*)(void *, uint64_t))later->callback;
    on_added(later->arg, 7);
}

void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[32],
    void (*on_added)(void *arg, uint64_t id), void *arg)
{
    current->token = *token;
    current->token.name = NULL;
    current->has_token = true;
    memcpy(current->token_hash, hash, 32);
    struct later *later = add_later(LATER_CALL);
    later->call = call_added;
    later->callback = (void (*)(void))on_added;
    later->arg = arg;
}

static void call_token(struct later *later)
{
    void (*on_token)(void *, const struct store_token *) =
        (void (*)(void *, const struct store_token *))later->callback;
    bool is_it = current->has_token && memcmp(current->token_hash, later->hash, 32) == 0;
    on_token(later->arg, is_it ? &current->token : NULL);
}

void store_find_token(struct store *store, const uint8_t hash[32], int64_t now_ms,
    void (*on_token)(void *arg, const struct store_token *token), void *arg)
{
    struct later *later = add_later(LATER_CALL);
    later->call = call_token;
    later->callback = (void (*)(void))on_token;
    later->arg = arg;
    memcpy(later->hash, hash, 32);
}

bool store_is_full(struct store *store)
{
    return current->is_store_full;
}

/* --- the agent --- */

static struct {
    streams_ready_fn on_ready;
    void *arg;
    uint64_t id;
} expected;

uint64_t streams_expect(struct streams *streams, streams_ready_fn on_ready, void *arg)
{
    expected.on_ready = on_ready;
    expected.arg = arg;
    return ++expected.id;
}

void streams_forget(struct streams *streams, uint64_t id)
{
    current->streams_forgotten++;
    if (expected.id == id)
        expected.on_ready = NULL;
}

/* An agent whose log goes on for ever writes whenever the socket takes it. */
static void on_agent_writable(int fd, short what, void *arg)
{
    struct harness *harness = arg;
    char block[65536];
    memset(block, 'x', sizeof(block));
    ssize_t n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        harness->agent_sent += (uint64_t)n;
    else if (errno != EAGAIN)
        (void)event_del(harness->agent_event);
}

static void write_log(struct harness *harness, int fd)
{
    const struct message_open_log *opened = &harness->opened;
    if (harness->is_log_large) {
        harness->agent_event =
            event_new(harness->controller.loop, fd, EV_WRITE | EV_PERSIST, on_agent_writable, harness);
        (void)event_add(harness->agent_event, NULL);
        return;
    }
    size_t offset = opened->offset < harness->log_length ? (size_t)opened->offset : harness->log_length;
    size_t length = harness->log_length - offset;
    if (opened->length != 0 && opened->length < length)
        length = (size_t)opened->length;
    (void)send(fd, harness->log + offset, length, MSG_NOSIGNAL);
}

static void call_stream(struct later *later)
{
    struct harness *harness = current;
    if (expected.on_ready == NULL || expected.id != later->number)
        return;
    streams_ready_fn on_ready = expected.on_ready;
    expected.on_ready = NULL;
    if (harness->is_log_mute) {
        on_ready(expected.arg, NULL, NULL);
        return;
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    struct bufferevent *stream =
        bufferevent_socket_new(harness->controller.loop, ends[0], BEV_OPT_CLOSE_ON_FREE);
    (void)bufferevent_disable(stream, EV_READ);
    struct message_stream first = { .stream = later->number,
        .error = harness->log_error,
        .size = harness->is_log_large ? 1ULL << 40 : harness->log_length + harness->log_missing };
    if (harness->log_error == 0)
        write_log(harness, ends[1]);
    if (harness->opened.follow != 0 || harness->is_log_large) {
        if (harness->agent_fd >= 0)
            (void)close(harness->agent_fd);
        harness->agent_fd = ends[1];
    } else {
        (void)close(ends[1]);
    }
    on_ready(expected.arg, stream, &first);
}

void links_send(struct links *links, uint32_t link, const struct record_type *type, const void *message)
{
    if (type->id != MESSAGE_OPEN_LOG)
        abort();
    current->opened = *(const struct message_open_log *)message;
    current->opened.path = NULL;
    struct later *later = add_later(LATER_CALL);
    later->call = call_stream;
    later->number = current->opened.stream;
}

/* --- the harness --- */

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
    harness->controller.is_root = true;
    harness->controller.admin_uid = getuid();
    harness->controller.options.allow_root_jobs = true;
    (void)snprintf(harness->controller.summary.instance, 33, "00112233445566778899aabbccddeeff");
    harness->controller.summary.epoch = 4;
    harness->later_event = event_new(harness->controller.loop, -1, 0, on_later, harness);
    harness->core.node = (struct core_node){ .name = xstrdup("here"), .is_up = true, .link = 1 };
    harness->core.node.hello.gpu_backend = xstrdup("sim");
    harness->core.node.hello.cpus = 8;
    add_gpu(&harness->core.node.hello, 0);
    add_gpu(&harness->core.node.hello, 1);
    harness->controller.serve = serve_new(&harness->controller);
    struct error err;
    if (serve_listen(harness->controller.serve, listen_unix(harness), true, &err) < 0 ||
        serve_listen(harness->controller.serve, listen_tcp(harness), false, &err) < 0)
        abort();
    return harness;
}

void harness_free(struct harness *harness)
{
    serve_free(harness->controller.serve);
    harness->is_barrier_held = false;
    while (harness->later != NULL) // whoever holds a reference lets it go
        on_later(-1, 0, harness);
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
    free(harness->core.node.name);
    record_clear(&message_hello_record, &harness->core.node.hello);
    event_free(harness->later_event);
    event_base_free(harness->controller.loop);
    (void)unlink(harness->path);
    (void)rmdir(harness->directory);
    free(harness);
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
        job->log_path = xstrdup("/home/someone/log");
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
    serve_publish(harness->controller.serve, event, shown);
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

/* --- the client --- */

static void make_nonblocking(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int client_connect(struct harness *harness)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", harness->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    make_nonblocking(fd);
    while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno != EAGAIN)
            abort();
        harness_turn(harness, 1); // the backlog is full
    }
    return fd;
}

int client_connect_tcp(struct harness *harness)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(harness->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        abort();
    make_nonblocking(fd);
    return fd;
}

bool client_send(struct harness *harness, int fd, const void *bytes, size_t length)
{
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (length > 0 && clock_boot_ms() < deadline) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0) {
            bytes = (const char *)bytes + n;
            length -= (size_t)n;
        }
        harness_turn(harness, n > 0 ? 0 : 1);
    }
    return length == 0;
}

/* Reads what is there; -1 at the end, 0 when the deadline passed. */
static ssize_t read_some(struct harness *harness, int fd, struct buffer *in, int64_t deadline)
{
    char block[65536];
    while (clock_boot_ms() < deadline) {
        ssize_t n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return -1;
        if (n > 0) {
            buffer_append(in, block, (size_t)n);
            return n;
        }
        harness_turn(harness, 1);
    }
    return 0;
}

static const char *find_header(const char *head, const char *name)
{
    const char *found = strcasestr(head, name);
    return found != NULL ? found + strlen(name) : NULL;
}

/* Takes chunks apart; true when the last one is there. */
static bool join_chunks(const char *bytes, size_t length, struct buffer *out)
{
    out->length = 0;
    const char *at = bytes, *end = bytes + length;
    while (at < end) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (line_end == NULL)
            return false;
        size_t size = strtoul(at, NULL, 16);
        at = line_end + 2;
        if ((size_t)(end - at) < size + 2) {
            buffer_append(out, at, (size_t)(end - at) < size ? (size_t)(end - at) : size);
            return false;
        }
        buffer_append(out, at, size);
        at += size + 2;
        if (size == 0)
            return true;
    }
    return false;
}

struct answer client_receive(struct harness *harness, int fd, bool is_head)
{
    struct answer answer = { 0 };
    struct buffer in = { 0 }, body = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    bool is_whole = false, is_over = false;
    while (!is_whole && !is_over) {
        is_over = read_some(harness, fd, &in, deadline) <= 0;
        const char *text = buffer_text(&in);
        const char *end = memmem(text, in.length, "\r\n\r\n", 4);
        if (end != NULL && strncmp(text, "HTTP/1.1 100", 12) == 0) {
            size_t skipped = (size_t)(end + 4 - text);
            memmove(in.bytes, in.bytes + skipped, in.length - skipped);
            in.length -= skipped;
            text = buffer_text(&in);
            end = memmem(text, in.length, "\r\n\r\n", 4);
        }
        if (end == NULL)
            continue;
        size_t head_length = (size_t)(end + 4 - text), rest = in.length - head_length;
        free(answer.head);
        answer.head = xstrndup(text, head_length);
        answer.status = (unsigned)strtoul(text + 9, NULL, 10);
        const char *length = find_header(answer.head, "\nContent-Length: ");
        if (is_head) {
            is_whole = true;
        } else if (find_header(answer.head, "\nTransfer-Encoding: chunked") != NULL) {
            is_whole = join_chunks(text + head_length, rest, &body);
        } else {
            body.length = 0;
            buffer_append(&body, text + head_length, rest);
            is_whole = length != NULL ? rest >= strtoull(length, NULL, 10) : is_over;
        }
    }
    answer.is_cut = !is_whole;
    answer.length = body.length;
    answer.body = buffer_take(&body);
    buffer_clear(&in);
    return answer;
}

char *client_read_until(struct harness *harness, int fd, const char *text)
{
    struct buffer in = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (in.length == 0 || memmem(in.bytes, in.length, text, strlen(text)) == NULL)
        if (read_some(harness, fd, &in, deadline) <= 0)
            break;
    return buffer_take(&in);
}

char *client_read_chunks(struct harness *harness, int fd, const char *text)
{
    struct buffer in = { 0 }, body = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (body.length == 0 || strstr(buffer_text(&body), text) == NULL) {
        if (read_some(harness, fd, &in, deadline) <= 0)
            break;
        const char *head_end = memmem(in.bytes, in.length, "\r\n\r\n", 4);
        if (head_end == NULL)
            continue;
        size_t head_length = (size_t)(head_end + 4 - (const char *)in.bytes);
        (void)join_chunks(head_end + 4, in.length - head_length, &body);
    }
    buffer_clear(&in);
    return buffer_take(&body);
}

bool client_is_closed(struct harness *harness, int fd)
{
    struct buffer in = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    ssize_t n;
    do
        n = read_some(harness, fd, &in, deadline);
    while (n > 0);
    buffer_clear(&in);
    return n < 0;
}

struct answer client_ask(struct harness *harness, const char *request)
{
    int fd = client_connect(harness);
    (void)client_send(harness, fd, request, strlen(request));
    struct answer answer = client_receive(harness, fd, strncmp(request, "HEAD", 4) == 0);
    (void)close(fd);
    harness_turn(harness, 0);
    return answer;
}

struct answer client_get(struct harness *harness, const char *path)
{
    _cleanup_free_ char *request = xasprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    return client_ask(harness, request);
}

struct answer client_post(struct harness *harness, const char *path, const char *body)
{
    _cleanup_free_ char *request = xasprintf(
        "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    return client_ask(harness, request);
}

void answer_clear(struct answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct answer){ 0 };
}

const char *answer_string(const struct answer *answer, const char *key)
{
    static char text[1024];
    json_t *body = json_loads(answer->body, 0, NULL);
    const char *value = json_string_value(json_object_get(body, key));
    (void)snprintf(text, sizeof(text), "%s", value != NULL ? value : "");
    json_decref(body);
    return text;
}

int64_t answer_integer(const struct answer *answer, const char *key)
{
    json_t *body = json_loads(answer->body, 0, NULL);
    const json_t *value = json_object_get(body, key);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(body);
    return number;
}

bool answer_has(const struct answer *answer, const char *text)
{
    return answer->body != NULL && strstr(answer->body, text) != NULL;
}
