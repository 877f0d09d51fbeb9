/* SPDX-License-Identifier: MIT */
#include "agent/launch/fork_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/fork_request.h"
#include "base/memory.h"
#include "base/process.h"

#define ANSWER_SECONDS 2 // a clone takes well under a millisecond; a stopped server must not block the agent

#define KEPT_MAX   48U  // each needs a few descriptors here, and a hundred KiB
#define LEAVING_MS 1000 // time for idle ones to exit

struct kept {
    int fd;
    int pidfd;
    pid_t pid;
    bool is_watched; // its watcher has not noticed the end of its step yet
};

struct fork_client {
    int fd;
    int pidfd;
    struct kept kept[KEPT_MAX]; // the latest last
    size_t n_kept;
};

/* Reserves space in the server's arguments for the spool directory that each shepherd displays there. */
static char *make_room(void)
{
    char *room = xcalloc(FORK_DIR_SIZE, 1);
    memset(room, ' ', FORK_DIR_SIZE - 1);
    return room;
}

struct fork_client *fork_client_open(const char *shepherd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return NULL;
    _cleanup_close_ int ours = pair[0];
    _cleanup_close_ int theirs = pair[1];
    struct timeval timeout = { .tv_sec = ANSWER_SECONDS };
    if (setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
        return NULL;
    char program[] = "mgpu-shepherd", mode[] = "--fork-server=3"; // CHILD_FD
    _cleanup_free_ char *room = make_room();
    char *argv[] = { program, mode, room, NULL };
    char *environment[] = { NULL };
    int pidfd = -1;
    pid_t pid = child_fork(theirs, &pidfd);
    if (pid == 0) {
        (void)fcntl(CHILD_FD, F_SETFD, 0);
        (void)setsid();
        (void)execve(shepherd, argv, environment);
        _exit(127);
    }
    if (pid < 0)
        return NULL;
    struct fork_client *client = xcalloc(1, sizeof(*client));
    *client = (struct fork_client){ .fd = take_fd(&ours), .pidfd = pidfd };
    return client;
}

/* --- kept shepherds --- */

enum kept_state { KEPT_BUSY, KEPT_IDLE, KEPT_GONE };

/* Reads the message and leaves it in the socket, because the step's watcher waits for it. */
static enum kept_state look_at_kept(const struct kept *kept)
{
    char word;
    ssize_t n = recv(kept->fd, &word, sizeof(word), MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return KEPT_BUSY;
    return n == (ssize_t)sizeof(word) && word == SHEPHERD_IDLE ? KEPT_IDLE : KEPT_GONE;
}

/* An idle shepherd exits at once, a busy one when its step has ended. */
static void forget_kept(struct fork_client *client, size_t i)
{
    closep(&client->kept[i].fd);
    closep(&client->kept[i].pidfd);
    client->n_kept--;
    memmove(&client->kept[i], &client->kept[i + 1], (client->n_kept - i) * sizeof(struct kept));
}

/* Removes the message. The descriptor that the next watcher owns is a duplicate for the same socket. */
static bool give_step(struct kept *kept, const struct fork_request *request, int *ret_end_fd)
{
    char word;
    _cleanup_close_ int end_fd = fcntl(kept->fd, F_DUPFD_CLOEXEC, 0);
    if (end_fd < 0 || recv(kept->fd, &word, sizeof(word), MSG_DONTWAIT) != (ssize_t)sizeof(word) ||
        descriptor_send(kept->fd, request, sizeof(*request), -1) < 0)
        return false;
    kept->is_watched = true;
    *ret_end_fd = take_fd(&end_fd);
    return true;
}

static bool start_in_idle(
    struct fork_client *client, const struct fork_request *request, pid_t *ret_pid, int *ret_end_fd)
{
    for (size_t i = client->n_kept; i > 0; i--) {
        struct kept *kept = &client->kept[i - 1];
        enum kept_state state = look_at_kept(kept);
        if (state == KEPT_BUSY || (state == KEPT_IDLE && kept->is_watched))
            continue;
        if (state == KEPT_IDLE && give_step(kept, request, ret_end_fd)) {
            *ret_pid = kept->pid;
            return true;
        }
        forget_kept(client, i - 1);
    }
    return false;
}

/* The new shepherd's socket follows its reply. Without it, the shepherd serves only this step. */
static void keep(struct fork_client *client, pid_t pid, int *pidfd)
{
    struct fork_reply reply;
    _cleanup_close_ int fd = -1;
    if (descriptor_receive(client->fd, &reply, sizeof(reply), &fd) <= 0 || reply.magic != FORK_MAGIC ||
        fd < 0)
        return;
    int end_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (end_fd < 0)
        return;
    client->kept[client->n_kept++] = (struct kept){ take_fd(&fd), take_fd(pidfd), pid, true };
    *pidfd = end_fd;
}

void fork_client_note_end(struct fork_client *client, pid_t pid)
{
    for (size_t i = 0; i < client->n_kept; i++)
        if (client->kept[i].pid == pid)
            client->kept[i].is_watched = false;
}

/* --- the server --- */

/* Their cgroup can be removed when they have ended. */
static void dismiss_idle(struct fork_client *client)
{
    int64_t ends_ms = clock_boot_ms() + LEAVING_MS;
    for (size_t i = client->n_kept; i > 0; i--) {
        struct kept *kept = &client->kept[i - 1];
        bool is_busy = kept->is_watched || look_at_kept(kept) == KEPT_BUSY;
        struct pollfd source = { kept->pidfd, POLLIN, 0 };
        closep(&kept->fd);
        int64_t left_ms = ends_ms - clock_boot_ms();
        if (!is_busy && left_ms > 0)
            (void)poll(&source, 1, (int)left_ms);
        forget_kept(client, i - 1);
    }
}

void fork_client_close(struct fork_client *client)
{
    siginfo_t ended;
    if (client == NULL)
        return;
    dismiss_idle(client);
    closep(&client->fd);
    (void)process_signal(client->pidfd, SIGKILL); // it may be stopped; shepherds are not affected
    (void)waitid(P_PIDFD, (id_t)client->pidfd, &ended, WEXITED);
    closep(&client->pidfd);
    free(client);
}

int fork_client_start(struct fork_client *client, const char *spool_dir, bool is_adopter, int cgroup_fd,
    pid_t *ret_pid, int *ret_end_fd)
{
    struct fork_request request = { .magic = FORK_MAGIC, .is_adopter = is_adopter };
    size_t length = strlen(spool_dir);
    if (length >= sizeof(request.spool_dir))
        return -EPIPE;
    memcpy(request.spool_dir, spool_dir, length);
    if (!is_adopter && start_in_idle(client, &request, ret_pid, ret_end_fd))
        return 0;
    request.is_kept = !is_adopter && client->n_kept < KEPT_MAX;
    if (descriptor_send(client->fd, &request, sizeof(request), cgroup_fd) < 0)
        return -EPIPE;
    struct fork_reply reply;
    _cleanup_close_ int pidfd = -1;
    if (descriptor_receive(client->fd, &reply, sizeof(reply), &pidfd) <= 0 || reply.magic != FORK_MAGIC)
        return -EPIPE;
    if (reply.error != 0 || pidfd < 0)
        return reply.error > 0 ? -reply.error : -EPIPE;
    if (request.is_kept != 0)
        keep(client, reply.pid, &pidfd);
    *ret_pid = reply.pid;
    *ret_end_fd = take_fd(&pidfd);
    return 0;
}
