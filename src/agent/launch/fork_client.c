/* SPDX-License-Identifier: MIT */
#include "agent/launch/fork_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "base/descriptors.h"
#include "base/fork_request.h"
#include "base/memory.h"
#include "base/process.h"

#define ANSWER_SECONDS 2 // a clone takes well under a millisecond; a stopped server must not block the agent

struct fork_client {
    int fd;
    int pidfd;
};

/* Room in the server's arguments for the spool directory that each shepherd shows there. */
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

void fork_client_close(struct fork_client *client)
{
    siginfo_t ended;
    if (client == NULL)
        return;
    closep(&client->fd);
    (void)process_signal(client->pidfd, SIGKILL); // it may be stopped; shepherds are no part of it
    (void)waitid(P_PIDFD, (id_t)client->pidfd, &ended, WEXITED);
    closep(&client->pidfd);
    free(client);
}

int fork_client_start(struct fork_client *client, const char *spool_dir, bool is_adopter, int cgroup_fd,
    pid_t *ret_pid, int *ret_pidfd)
{
    struct fork_request request = { .magic = FORK_MAGIC, .is_adopter = is_adopter };
    size_t length = strlen(spool_dir);
    if (length >= sizeof(request.spool_dir))
        return -EPIPE;
    memcpy(request.spool_dir, spool_dir, length);
    if (descriptor_send(client->fd, &request, sizeof(request), cgroup_fd) < 0)
        return -EPIPE;
    struct fork_reply reply;
    _cleanup_close_ int pidfd = -1;
    if (descriptor_receive(client->fd, &reply, sizeof(reply), &pidfd) <= 0 || reply.magic != FORK_MAGIC)
        return -EPIPE;
    if (reply.error != 0 || pidfd < 0)
        return reply.error > 0 ? -reply.error : -EPIPE;
    *ret_pid = reply.pid;
    *ret_pidfd = take_fd(&pidfd);
    return 0;
}
