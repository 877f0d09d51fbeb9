/* SPDX-License-Identifier: MIT */
/*
 * mgpu-bench-agents COUNT [GPUS [FLAPS [SAMPLE_MS]]]: nodes sim0001 to simCOUNT in one process, for
 * bench/cluster. They join an mgpud with the tickets read from standard input, one a line, and connect again
 * with the waits of mgpu-agent whenever a link ends. FLAPS links are cut each second.
 *
 * Prints lines: "up MS" when all nodes are connected (MS on the boot clock), "down MS" when the first of all
 * is not any more, and at SIGTERM the counts of messages as "name value".
 *
 * Handshakes block, so threads make them; everything else is one loop.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "node.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/tls/context.h"
#include "wire/tls/dial.h"
#include "wire/tls/join_talk.h"
#include "wire/tls/sessions.h"

#define DIALLERS       16
#define DIAL_MS        30000
#define FILES_PER_NODE 6
#define NAME_SIZE      16
#define TICKET_MAX     1024
/* As in agent/uplink/uplink.c. */
#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS   30000

struct fleet;

struct member {
    struct fleet *fleet;
    char name[NAME_SIZE];
    struct node *node;
    struct join_ticket ticket;
    SSL_CTX *context; // NULL: it has not joined
    struct bufferevent *stream;
    struct event *retry;
    int64_t retry_ms;
    bool is_up;
    /* The result of a dialler. */
    SSL *ssl;
    int fd;
    struct error err;
    struct member *next; // in one of the two queues
};

struct queue {
    struct member *first, **last;
};

struct fleet {
    struct event_base *base;
    struct tls_sessions *sessions;
    struct node_options options;
    struct counts counts;
    struct member *members;
    size_t count, n_up;
    bool was_full;
    unsigned flaps;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct queue to_dial, dialled;
    int event_fd;
};

static void queue_add(struct queue *queue, struct member *member)
{
    if (queue->first == NULL)
        queue->last = &queue->first;
    member->next = NULL;
    *queue->last = member;
    queue->last = &member->next;
}

static struct member *queue_take(struct queue *queue)
{
    struct member *member = queue->first;
    if (member != NULL)
        queue->first = member->next;
    return member;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "mgpu-bench-agents: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* --- diallers --- */

static int join(struct member *member, struct error *err)
{
    char secret[2 * JOIN_SECRET_SIZE + 1], version[] = MGPU_VERSION;
    const struct join_ticket *ticket = &member->ticket;
    _cleanup_key_ EVP_PKEY *key = EVP_EC_gen("P-256");
    _cleanup_certificate_ X509 *certificate = NULL;
    struct message_joined joined = { 0 };
    struct join_talk talk;
    int r = join_talk_open(&ticket->address, ticket->token.pin, clock_boot_ms() + DIAL_MS, &talk, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *request = tls_request_text(key, member->name);
    join_talk_secret(&ticket->token, secret);
    struct message_join message = { .protocol = LINK_PROTOCOL, .version = version, .node = member->name };
    message.token = ticket->token.id;
    message.secret = secret;
    message.request = request;
    r = join_talk_ask(&talk, &message_join_record, &message, &message_joined_record, &joined, err);
    join_talk_close(&talk);
    if (r == 0)
        r = tls_certificate_parse(joined.certificate, &certificate, err);
    if (r == 0)
        r = tls_context_client(ticket->token.pin, key, certificate, &member->context, err);
    record_clear(&message_joined_record, &joined);
    return r;
}

static void dial(struct member *member)
{
    member->err = (struct error){ 0 };
    if (member->context == NULL && join(member, &member->err) < 0)
        return;
    (void)tls_dial(member->context, &member->ticket.address, TLS_FOR_LINK, clock_boot_ms() + DIAL_MS,
        &member->ssl, &member->fd, &member->err);
}

static void *run_dialler(void *arg)
{
    struct fleet *fleet = arg;
    (void)pthread_mutex_lock(&fleet->lock);
    while (true) {
        struct member *member = queue_take(&fleet->to_dial);
        if (member == NULL) {
            (void)pthread_cond_wait(&fleet->wanted, &fleet->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&fleet->lock);
        dial(member);
        (void)pthread_mutex_lock(&fleet->lock);
        queue_add(&fleet->dialled, member);
        (void)eventfd_write(fleet->event_fd, 1);
    }
    return NULL;
}

/* --- links --- */

static void start_dial(struct member *member)
{
    struct fleet *fleet = member->fleet;
    (void)pthread_mutex_lock(&fleet->lock);
    queue_add(&fleet->to_dial, member);
    (void)pthread_cond_signal(&fleet->wanted);
    (void)pthread_mutex_unlock(&fleet->lock);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    start_dial(arg);
}

static void plan_dial(struct member *member)
{
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    int64_t next_ms = member->retry_ms == 0 ? RETRY_FIRST_MS : member->retry_ms * 2;
    member->retry_ms = next_ms > RETRY_MAX_MS ? RETRY_MAX_MS : next_ms;
    int64_t wait_ms = member->retry_ms / 2 + random % (uint32_t)(member->retry_ms / 2 + 1);
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    (void)evtimer_add(member->retry, &wait);
}

static void say(const char *what)
{
    (void)printf("%s %" PRId64 "\n", what, clock_boot_ms());
    (void)fflush(stdout);
}

static void hang_up(struct member *member)
{
    struct fleet *fleet = member->fleet;
    node_set_link(member->node, NULL);
    bufferevent_free(take_ptr(member->stream));
    fleet->n_up -= member->is_up;
    member->is_up = false;
    if (fleet->was_full) {
        fleet->was_full = false;
        say("down");
    }
    plan_dial(member);
}

static void on_up(void *arg)
{
    struct member *member = arg;
    struct fleet *fleet = member->fleet;
    fleet->n_up += !member->is_up;
    member->is_up = true;
    member->retry_ms = 0;
    if (fleet->n_up < fleet->count || fleet->was_full)
        return;
    fleet->was_full = true;
    say("up");
}

static int take(
    void *arg, enum frame_taken taken, const struct record_type *type, void *message, struct error *err)
{
    const struct member *member = arg;
    return taken == FRAME_WHOLE ? node_take(member->node, type, message, err) : err->code;
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct member *member = arg;
    struct error err = { 0 };
    if (frame_take_all(stream, LINK_MESSAGE_MAX, take, member, &err) == 0)
        return;
    (void)fprintf(stderr, "%s: %s\n", member->name, err.message);
    hang_up(member);
}

static void on_event(struct bufferevent *stream, short events, void *arg)
{
    if ((events & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
        hang_up(arg);
}

static void take_dialled(struct member *member)
{
    struct fleet *fleet = member->fleet;
    int plain = -1;
    if (member->ssl == NULL || tls_sessions_open(fleet->sessions, take_ptr(member->ssl), take_fd(&member->fd),
                                   member->name, &plain) < 0) {
        plan_dial(member);
        return;
    }
    member->stream = bufferevent_socket_new(fleet->base, plain, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(member->stream, on_readable, NULL, on_event, member);
    (void)bufferevent_enable(member->stream, EV_READ | EV_WRITE);
    node_set_link(member->node, member->stream);
}

static void on_dialled(evutil_socket_t fd, short what, void *arg)
{
    struct fleet *fleet = arg;
    eventfd_t count = 0;
    (void)eventfd_read((int)fd, &count);
    while (true) {
        (void)pthread_mutex_lock(&fleet->lock);
        struct member *member = queue_take(&fleet->dialled);
        (void)pthread_mutex_unlock(&fleet->lock);
        if (member == NULL)
            return;
        take_dialled(member);
    }
}

static void on_flap(evutil_socket_t fd, short what, void *arg)
{
    struct fleet *fleet = arg;
    for (unsigned i = 0; i < fleet->flaps; i++) {
        uint32_t random = 0;
        (void)!getrandom(&random, sizeof(random), 0);
        struct member *member = &fleet->members[random % fleet->count];
        if (member->stream != NULL)
            hang_up(member);
    }
}

/* The plain side notices it too. */
static void on_session_end(void *arg, const char *label, const struct error *err)
{
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct fleet *fleet = arg;
    (void)event_base_loopbreak(fleet->base);
}

/* --- life --- */

static void read_tickets(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        struct member *member = &fleet->members[i];
        char line[TICKET_MAX];
        *member = (struct member){ .fleet = fleet, .fd = -1 };
        (void)snprintf(member->name, sizeof(member->name), "sim%04u", (unsigned)(i % 10000) + 1);
        if (fgets(line, sizeof(line), stdin) == NULL)
            fail("too few tickets");
        line[strcspn(line, "\r\n")] = '\0';
        if (join_ticket_read(line, &member->ticket, &member->err) < 0)
            fail(member->err.message);
        member->node = node_new(fleet->base, member->name, &fleet->options, on_up, member);
        member->retry = evtimer_new(fleet->base, on_retry, member);
    }
}

static void raise_limit(size_t count)
{
    struct rlimit limit = { 0 };
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = count * FILES_PER_NODE + 256;
    limit.rlim_max = limit.rlim_max > limit.rlim_cur ? limit.rlim_max : limit.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("RLIMIT_NOFILE");
}

static void start_all(struct fleet *fleet)
{
    say("begin");
    for (int i = 0; i < DIALLERS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_dialler, fleet) != 0)
            fail("pthread_create");
        (void)pthread_detach(thread);
    }
    for (size_t i = 0; i < fleet->count; i++)
        start_dial(&fleet->members[i]);
}

static unsigned number(int argc, char **argv, int at, unsigned usual)
{
    return at < argc ? (unsigned)strtoul(argv[at], NULL, 10) : usual;
}

int main(int argc, char **argv)
{
    struct fleet fleet = { .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER };
    const struct timeval second = { .tv_sec = 1 };
    if (argc < 2)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    fleet.count = number(argc, argv, 1, 1);
    fleet.flaps = number(argc, argv, 3, 0);
    fleet.options = (struct node_options){ .gpus = number(argc, argv, 2, 8), .gpu_gib = 80 };
    fleet.options.sample_ms = number(argc, argv, 4, 1000);
    fleet.options.counts = &fleet.counts;
    raise_limit(fleet.count);
    fleet.base = event_base_new();
    fleet.sessions = tls_sessions_new(fleet.base, on_session_end, &fleet);
    fleet.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fleet.members = xcalloc(fleet.count, sizeof(*fleet.members));
    (void)event_add(event_new(fleet.base, fleet.event_fd, EV_READ | EV_PERSIST, on_dialled, &fleet), NULL);
    (void)evsignal_add(evsignal_new(fleet.base, SIGTERM, on_signal, &fleet), NULL);
    if (fleet.flaps > 0)
        (void)event_add(event_new(fleet.base, -1, EV_PERSIST, on_flap, &fleet), &second);
    read_tickets(&fleet);
    start_all(&fleet);
    (void)event_base_dispatch(fleet.base);
    (void)printf("launches %" PRIu64 "\nrepeated %" PRIu64 "\nstarted %" PRIu64 "\nended %" PRIu64
                 "\nreleased %" PRIu64 "\n",
        fleet.counts.launches, fleet.counts.repeated, fleet.counts.started, fleet.counts.ended,
        fleet.counts.released);
    (void)fflush(stdout);
    _exit(EXIT_SUCCESS); // threads may be in a handshake
}
