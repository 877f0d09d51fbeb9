/* SPDX-License-Identifier: MIT */
/*
 * A connection belongs to the job that the kernel reports for the process at its other end when it is
 * accepted: by user (SO_PEERCRED), and by cgroup or ancestors. Each connection is served by a child
 * (job_client.h) in the job's cgroup. A user who exceeds BURST and RATE gets no answer, and the client tries
 * again. The number of open connections is limited per job, and for processes outside all jobs.
 */
#include "agent/attach/job_socket.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/attach/job_client.h"
#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "base/clock.h"
#include "base/listen_unix.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "wire/listening.h"

#define CLIENTS_MAX   512U // of this node
#define OF_JOB_MAX    32U
#define OF_USER_MAX   128U
#define OUTSIDERS_MAX 16U // of all users, including those rejected for other reasons
#define RATE          50  // connections of a user per second
#define BURST         200
#define MILLI         1000

struct client {
    struct job_socket *socket;
    struct child *child;
    uint64_t job; // 0: answered by this node
    uint32_t uid;
    struct client *next, **where;
};

/* A user who has connected within the last few seconds. */
struct bucket {
    uint32_t uid;
    int64_t left; // remaining connections, in thousandths
    int64_t filled_ms;
    struct bucket *next;
};

struct job_socket {
    struct event_base *base;
    struct listening *listening;
    struct usage_watch *watch;
    const char *link_path;
    const struct job_users *users;
    struct client *clients;
    struct bucket *buckets;
};

static void client_free(struct client *client)
{
    *client->where = client->next;
    if (client->next != NULL)
        client->next->where = client->where;
    child_free(client->child);
    free(client);
}

static void on_client_end(void *arg, int status)
{
    struct client *client = arg;
    client->child = NULL;
    client_free(client);
}

static void add_client(struct job_socket *socket, uint64_t job, uint32_t uid, int pidfd)
{
    struct client *client = xcalloc(1, sizeof(*client));
    *client = (struct client){
        .socket = socket, .job = job, .uid = uid, .next = socket->clients, .where = &socket->clients
    };
    if (client->next != NULL)
        client->next->where = &client->next;
    socket->clients = client;
    client->child = child_watch(socket->base, pidfd, on_client_end, client);
}

static size_t count_clients(const struct job_socket *socket, bool is_any, uint64_t job)
{
    size_t count = 0;
    for (const struct client *client = socket->clients; client != NULL; client = client->next)
        count += is_any || client->job == job;
    return count;
}

/* The user's bucket. Full buckets of other users are dropped meanwhile. */
static struct bucket *find_bucket(struct job_socket *socket, uint32_t uid, int64_t now_ms)
{
    struct bucket *found = NULL;
    for (struct bucket **at = &socket->buckets; *at != NULL;) {
        struct bucket *bucket = *at;
        if (bucket->uid == uid) {
            found = bucket;
        } else if (now_ms - bucket->filled_ms > BURST * MILLI / RATE) {
            *at = bucket->next;
            free(bucket);
            continue;
        }
        at = &bucket->next;
    }
    if (found != NULL)
        return found;
    found = xcalloc(1, sizeof(*found));
    *found =
        (struct bucket){ .uid = uid, .left = BURST * MILLI, .filled_ms = now_ms, .next = socket->buckets };
    socket->buckets = found;
    return found;
}

static bool is_too_fast(struct job_socket *socket, uint32_t uid)
{
    int64_t now_ms = clock_boot_ms();
    struct bucket *bucket = find_bucket(socket, uid, now_ms);
    int64_t passed_ms = now_ms - bucket->filled_ms;
    bucket->filled_ms = now_ms;
    bucket->left += (passed_ms < MILLI * BURST ? passed_ms : MILLI * BURST) * RATE;
    if (bucket->left > BURST * MILLI)
        bucket->left = BURST * MILLI;
    if (bucket->left < MILLI)
        return true;
    bucket->left -= MILLI;
    return false;
}

static bool is_crowded(const struct job_socket *socket, const struct job_client *client)
{
    size_t of_user = 0;
    for (const struct client *other = socket->clients; other != NULL; other = other->next)
        of_user += other->job != 0 && other->uid == client->uid;
    return count_clients(socket, true, 0) >= CLIENTS_MAX || of_user >= OF_USER_MAX ||
           count_clients(socket, false, client->id.job) >= OF_JOB_MAX;
}

/* False if even the rejected connections are too many. */
static bool admit(const struct job_socket *socket, struct job_client *client)
{
    if (client->kind == JOB_CLIENT_OF_JOB && is_crowded(socket, client))
        client->kind = JOB_CLIENT_CROWDED;
    return client->kind == JOB_CLIENT_OF_JOB || count_clients(socket, false, 0) < OUTSIDERS_MAX;
}

static void serve(struct job_socket *socket, const struct job_client *client, int fd)
{
    int pidfd = -1;
    pid_t pid = child_fork(fd, &pidfd);
    if (pid == 0) {
        helper_enter(HELPER_API);
        _exit(job_client_serve(client, CHILD_FD));
    }
    if (pid < 0)
        log_warning("cannot start a process for a command in a job: %s", strerror(-pid));
    else
        add_client(socket, client->kind == JOB_CLIENT_OF_JOB ? client->id.job : 0, client->uid, pidfd);
}

static void on_accept(void *arg, int fd)
{
    struct job_socket *socket = arg;
    _cleanup_close_ int accepted = fd;
    struct ucred peer = { 0 };
    socklen_t size = sizeof(peer);
    struct job_client client = {
        .kind = JOB_CLIENT_OUTSIDE, .link_path = socket->link_path, .users = socket->users
    };
    if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || is_too_fast(socket, peer.uid))
        return;
    client.uid = peer.uid;
    if (usage_watch_attempt_of(socket->watch, peer.pid, clock_boot_ms(), clock_wall_ms(), &client.id))
        client.kind = JOB_CLIENT_OF_JOB;
    if (admit(socket, &client))
        serve(socket, &client, accepted);
}

struct job_socket *job_socket_new(struct event_base *base, const char *run_dir, struct usage_watch *watch,
    const char *link_path, const struct job_users *users)
{
    struct job_socket *socket = xcalloc(1, sizeof(*socket));
    struct error err = { 0 };
    int fd = -1;
    *socket = (struct job_socket){ .base = base, .watch = watch, .link_path = link_path, .users = users };
    _cleanup_free_ char *path = xasprintf("%s/" JOB_SOCKET, run_dir);
    if (listen_unix(path, 0666, &fd, &err) == 0)
        socket->listening = listening_new(base, fd, on_accept, socket);
    else
        log_warning("commands in jobs cannot use mgpud through this node: %s", err.message);
    return socket;
}

void job_socket_free(struct job_socket *socket)
{
    if (socket == NULL)
        return;
    listening_free(socket->listening);
    while (socket->clients != NULL)
        client_free(socket->clients);
    while (socket->buckets != NULL) {
        struct bucket *bucket = socket->buckets;
        socket->buckets = bucket->next;
        free(bucket);
    }
    free(socket);
}
