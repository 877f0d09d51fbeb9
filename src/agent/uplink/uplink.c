/* SPDX-License-Identifier: MIT */
/*
 * controller <──TLS: link──> uplink <──socket: link──> worker ── shepherds, jobs
 *            <──TLS: stream─        <──RUN/link.sock── children of the worker, running as users
 *
 * The worker and its children use plain sockets, as on the controller's own machine; only this process has
 * the node's key. The link is opened again and again until that succeeds: the worker receives each new link
 * over its control socket (SCM_RIGHTS) and sends HELLO on it. If the worker dies, another is started; if this
 * process dies, the worker exits. Jobs are not affected.
 *
 *   AWAY ──dial──> DIALLING ──done──> LINKED ──the session ends──> AWAY, for increasing times
 */
#include "agent/uplink/uplink.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/node_addresses.h"
#include "agent/host/node_home.h"
#include "agent/uplink/dial.h"
#include "agent/uplink/enroll.h"
#include "agent/uplink/uplink_dirs.h"
#include "agent/uplink/uplink_worker.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/detach.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "wire/listening.h"
#include "wire/tls/context.h"
#include "wire/tls/sessions.h"

#define LINK           "link"
#define STREAM         "stream"
#define STREAMS_MAX    1024U
#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS   30000
#define ROUND_MAX_MS   2000 // between rounds through several controllers, one of which will soon become leader
#define STEADY_MS      10000 // a link that lasted this long was good

struct uplink {
    const struct agent_options *options;
    struct event_base *base;
    struct uplink_dirs dirs;
    struct node_home home;
    SSL_CTX *context;
    struct uplink_worker *worker;
    struct tls_sessions *sessions;
    struct listening *listening;
    struct event *signals[2], *retry;
    struct dial *dial;                         // of the link
    struct address controllers[ADDRESSES_MAX]; // only the leader accepts links
    size_t n_controllers, controller;          // the controller in use, or to be dialled next
    char *learnt;                              // the list sent by the leader among them
    size_t n_refused;                          // of this round
    int64_t retry_ms;                          // duration of the last wait
    int64_t linked_ms;                         // when the link came up; 0: it is down
    char *last_trouble;
    size_t n_dialling; // streams
};

/* A stream that is being dialled: bytes from its creator wait in its socket. */
struct stream {
    struct uplink *uplink;
    int plain_fd;
};

static void start_dial(struct uplink *uplink);

/* A random time between half of the planned delay and all of it, so that nodes do not reconnect all at
 * once. */
static void plan_dial(struct uplink *uplink)
{
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    int64_t next_ms = uplink->retry_ms == 0 ? RETRY_FIRST_MS : uplink->retry_ms * 2;
    int64_t max_ms = uplink->n_controllers > 1 ? ROUND_MAX_MS : RETRY_MAX_MS;
    uplink->retry_ms = next_ms > max_ms ? max_ms : next_ms;
    int64_t wait_ms = uplink->retry_ms / 2 + random % (uint32_t)(uplink->retry_ms / 2 + 1);
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    (void)evtimer_add(uplink->retry, &wait);
}

/* Dials the next controller at once, until all have been tried. */
static void plan_next(struct uplink *uplink)
{
    uplink->controller = (uplink->controller + 1) % uplink->n_controllers;
    if (++uplink->n_refused < uplink->n_controllers) {
        (void)evtimer_add(uplink->retry, &(struct timeval){ 0 });
        return;
    }
    uplink->n_refused = 0;
    plan_dial(uplink);
}

/* Logged once, and again only if the message changes: the controller may be unavailable for days. */
static void log_trouble(struct uplink *uplink, const struct error *err)
{
    if (uplink->last_trouble != NULL && strcmp(uplink->last_trouble, err->message) == 0)
        return;
    free(uplink->last_trouble);
    uplink->last_trouble = xstrdup(err->message);
    log_warning("%s%s%s", err->message, err->hint[0] != '\0' ? " - " : "", err->hint);
    log_info("jobs continue; retrying at least every %d s", RETRY_MAX_MS / 1000);
}

/* --- the link --- */

static void on_session_end(void *arg, const char *label, const struct error *err)
{
    struct uplink *uplink = arg;
    if (strcmp(label, LINK) != 0)
        return;
    if (clock_boot_ms() - uplink->linked_ms >= STEADY_MS)
        uplink->retry_ms = 0;
    uplink->linked_ms = 0;
    if (err->code != 0)
        log_trouble(uplink, err);
    else
        log_info("the link to the controller has ended");
    plan_dial(uplink);
}

static void on_linked(void *arg, SSL *ssl, int fd, const struct error *err)
{
    struct uplink *uplink = arg;
    int plain = -1;
    uplink->dial = NULL;
    if (ssl == NULL) {
        log_trouble(uplink, err);
        plan_next(uplink);
        return;
    }
    uplink->n_refused = 0;
    int r = tls_sessions_open(uplink->sessions, ssl, fd, LINK, &plain);
    if (r < 0) {
        plan_dial(uplink);
        return;
    }
    free(take_ptr(uplink->last_trouble));
    uplink->linked_ms = clock_boot_ms();
    _cleanup_free_ char *where = address_text(&uplink->controllers[uplink->controller]);
    log_info("connected to the controller at %s", where);
    r = uplink_worker_link(uplink->worker, plain);
    (void)close(plain);
    if (r < 0)
        log_warning("the worker does not accept the link: %s",
            strerror(-r)); // this is the last copy: the session has ended
}

/* The addresses sent by a leader first, then the configured ones, each once. */
static int list_controllers(struct uplink *uplink, const char *learnt, struct error *err)
{
    _cleanup_free_ char *joined = address_text(&uplink->home.controller);
    const char *given = uplink->options->controller != NULL ? uplink->options->controller : joined;
    struct address addresses[ADDRESSES_MAX] = { 0 };
    size_t count = 0;
    int r = node_addresses_join(learnt, given, addresses, &count, err);
    if (r < 0)
        return r;
    address_clear_list(uplink->controllers, uplink->n_controllers);
    memcpy(uplink->controllers, addresses, sizeof(addresses));
    uplink->n_controllers = count;
    uplink->controller = 0;
    return 0;
}

/* Read when there is no link, because streams are dialled to the controller in use. */
static void learn_controllers(struct uplink *uplink)
{
    struct error err = { 0 };
    _cleanup_free_ char *learnt = node_addresses_load(uplink->options->state_dir);
    if (learnt == NULL || text_equal(learnt, uplink->learnt))
        return;
    free(uplink->learnt);
    uplink->learnt = xstrdup(learnt);
    if (list_controllers(uplink, learnt, &err) < 0)
        log_warning("the addresses of the controllers: %s", err.message);
    else
        log_info("controllers: %s", learnt);
}

static void start_dial(struct uplink *uplink)
{
    if (uplink->dial != NULL || uplink->linked_ms != 0)
        return;
    learn_controllers(uplink);
    if (dial_start(uplink->base, uplink->context, &uplink->controllers[uplink->controller], TLS_FOR_LINK,
            on_linked, uplink, &uplink->dial) < 0)
        plan_dial(uplink);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    start_dial(arg);
}

/* --- streams --- */

static void on_stream_dialled(void *arg, SSL *ssl, int fd, const struct error *err)
{
    struct stream *stream = arg;
    struct uplink *uplink = stream->uplink;
    uplink->n_dialling--;
    if (ssl != NULL) {
        tls_sessions_add(uplink->sessions, ssl, fd, stream->plain_fd, STREAM);
    } else {
        log_trouble(uplink, err); // the controller's wait is short
        (void)close(stream->plain_fd);
    }
    free(stream);
}

static void on_stream(void *arg, int fd)
{
    struct uplink *uplink = arg;
    struct dial *dial = NULL;
    if (uplink->n_dialling + tls_sessions_count(uplink->sessions, STREAM) >= STREAMS_MAX) {
        log_warning("stream refused: %u streams are open", STREAMS_MAX);
        (void)close(fd);
        return;
    }
    struct stream *stream = xcalloc(1, sizeof(*stream));
    *stream = (struct stream){ .uplink = uplink, .plain_fd = fd };
    if (dial_start(uplink->base, uplink->context, &uplink->controllers[uplink->controller], TLS_FOR_STREAM,
            on_stream_dialled, stream, &dial) == 0) {
        uplink->n_dialling++;
        return;
    }
    (void)close(fd);
    free(stream);
}

/* --- life --- */

static void on_worker(void *arg)
{
    struct uplink *uplink = arg;
    tls_sessions_cut(uplink->sessions, LINK); // the previous link is no longer needed
    uplink->linked_ms = 0;
    start_dial(uplink);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct uplink *uplink = arg;
    log_info("signal %d: the agent exits; jobs continue", (int)fd);
    (void)event_base_loopbreak(uplink->base);
}

/* Joins if requested, and determines the node and the cluster. */
static int find_home(struct uplink *uplink, struct error *err)
{
    const struct agent_options *options = uplink->options;
    struct join_ticket ticket = { 0 };
    int r = node_home_open(options->state_dir, &uplink->home, err);
    if (r < 0)
        return r;
    if (options->join != NULL || options->join_file != NULL) {
        r = options->join != NULL ? join_ticket_read(options->join, &ticket, err)
                                  : enroll_read_ticket(options->join_file, &ticket, err);
        if (r == 0)
            r = enroll(&uplink->home, options->state_dir, &ticket, options->node, err);
        join_ticket_clear(&ticket);
        if (r < 0)
            return r;
    }
    if (uplink->home.certificate == NULL) {
        (void)error_set(
            err, -ENOENT, "this machine has joined no cluster (nothing in %s/node/tls)", options->state_dir);
        return error_hint(
            err, "use mgpu-agent --join with the output of `mgpu node token` on mgpud's machine");
    }
    if (options->is_node_given && strcmp(options->node, uplink->home.name) != 0) {
        (void)error_set(
            err, -EINVAL, "this machine joined as node %s, not %s", uplink->home.name, options->node);
        return error_hint(err, "omit --node, or join again with the new name");
    }
    return list_controllers(uplink, NULL, err);
}

static void open_loop(struct uplink *uplink)
{
    static const int signals[] = { SIGTERM, SIGINT };
    uplink->base = event_base_new();
    if (uplink->base == NULL)
        abort(); // memory
    uplink->sessions = tls_sessions_new(uplink->base, on_session_end, uplink);
    uplink->retry = evtimer_new(uplink->base, on_retry, uplink);
    uplink->listening = listening_new(uplink->base, take_fd(&uplink->dirs.stream_fd), on_stream, uplink);
    if (uplink->retry == NULL || uplink->listening == NULL)
        abort(); // memory
    for (size_t i = 0; i < 2; i++) {
        uplink->signals[i] = evsignal_new(uplink->base, signals[i], on_signal, uplink);
        if (uplink->signals[i] == NULL)
            abort(); // memory
        (void)evsignal_add(uplink->signals[i], NULL);
    }
}

static int open_parts(struct uplink *uplink, struct error *err)
{
    int r = uplink_dirs_open(uplink->options, &uplink->dirs, err);
    if (r == 0)
        r = find_home(uplink, err);
    if (r == 0)
        r = tls_context_client(
            uplink->home.pin, uplink->home.key, uplink->home.certificate, &uplink->context, err);
    if (r < 0 || uplink->options->is_join_only)
        return r;
    open_loop(uplink);
    return 0;
}

/* The worker and its helpers inherit the standard descriptors, so a detached agent leaves its terminal before
 * starting them. */
static int start_worker(struct uplink *uplink, struct error *err)
{
    daemon_notify_ready("ready");
    detach_ready(&uplink->dirs.detached);
    return uplink_worker_start(
        uplink->base, uplink->options, uplink->home.name, on_worker, uplink, &uplink->worker, err);
}

static void close_parts(struct uplink *uplink)
{
    uplink_worker_free(uplink->worker);
    dial_forget(uplink->dial);
    tls_sessions_free(uplink->sessions);
    listening_free(uplink->listening);
    if (uplink->retry != NULL)
        event_free(uplink->retry);
    for (size_t i = 0; i < 2; i++)
        if (uplink->signals[i] != NULL)
            event_free(uplink->signals[i]);
    SSL_CTX_free(uplink->context);
    node_home_close(&uplink->home);
    uplink_dirs_close(&uplink->dirs);
    address_clear_list(uplink->controllers, uplink->n_controllers);
    free(uplink->last_trouble);
    free(uplink->learnt);
    if (uplink->base != NULL)
        event_base_free(uplink->base);
}

int uplink_run(const struct agent_options *options)
{
    struct uplink uplink = { .options = options, .dirs = UPLINK_DIRS_EMPTY, .home = { .dirfd = -1 } };
    struct error err = { 0 };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(0022);
    daemon_clean_environment();
    daemon_spare_from_oom();
    memory_keep_freed();
    tls_keep_at_exit();
    int r = open_parts(&uplink, &err);
    if (r == 0 && !options->is_join_only)
        r = start_worker(&uplink, &err);
    if (r < 0) {
        log_error("%s%s%s", err.message, err.hint[0] == '\0' ? "" : " - ", err.hint);
    } else if (!options->is_join_only) {
        (void)event_base_dispatch(uplink.base);
    }
    close_parts(&uplink);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
