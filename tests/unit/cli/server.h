/* SPDX-License-Identifier: MIT */
/* A listening socket within the test's own process: the kernel keeps what either side wrote until it is read.
 */
#pragma once

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct server {
    char directory[32], path[64];
    int fd;
};

static inline void server_open(struct server *server)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(server->directory, sizeof(server->directory), "/tmp/mgpu-test-XXXXXX");
    assert(mkdtemp(server->directory) != NULL);
    (void)snprintf(server->path, sizeof(server->path), "%s/s", server->directory);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->path);
    server->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(bind(server->fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    assert(listen(server->fd, 8) == 0);
}

/* Nobody listens any more, as while mgpud starts anew. */
static inline void server_leave(struct server *server)
{
    (void)close(server->fd);
    server->fd = -1;
    (void)unlink(server->path);
}

static inline void server_close(struct server *server)
{
    server_leave(server);
    (void)rmdir(server->directory);
}

/* Takes the next connection. */
static inline int server_accept(const struct server *server)
{
    int fd = accept(server->fd, NULL, NULL);
    assert(fd >= 0);
    return fd;
}

static inline void server_say(int fd, const char *text)
{
    assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Everything the client has sent so far. */
static inline void server_receive(int fd, char *text, size_t size)
{
    ssize_t n = recv(fd, text, size - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
}
