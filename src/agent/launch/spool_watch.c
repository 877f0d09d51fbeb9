/* SPDX-License-Identifier: MIT */
#include "agent/launch/spool_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

#define HINT_SIZE     128 // significant bytes of a datagram
#define HINTS_AT_ONCE 64  // per turn of the loop, so that hints do not starve the link

struct spool_watch {
    int fd;
    struct event *event;
    spool_hint_fn *on_hint;
    void *arg;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct spool_watch *watch = arg;
    for (int i = 0; i < HINTS_AT_ONCE; i++) {
        char text[HINT_SIZE];
        struct spool_id id;
        ssize_t n = recv(watch->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
        if (n < 0)
            return;
        text[n] = '\0';
        char *word = text + strcspn(text, " \n");
        bool is_start = strcmp(word, " " SPOOL_HINT_STARTED) == 0;
        *word = '\0';
        if (spool_parse_name(text, &id))
            watch->on_hint(watch->arg, &id, is_start);
        else
            log_warning("a notification names no attempt: %s", text);
    }
}

int spool_watch_open(
    struct event_base *base, spool_hint_fn *on_hint, void *arg, struct spool_watch **ret, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SPOOL_HINTS };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    (void)unlink(SPOOL_HINTS);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return error_set_errno(err, -errno, "cannot create the socket %s in the spool", SPOOL_HINTS);
    struct spool_watch *watch = xcalloc(1, sizeof(*watch));
    watch->fd = take_fd(&fd);
    watch->on_hint = on_hint;
    watch->arg = arg;
    watch->event = event_new(base, watch->fd, EV_READ | EV_PERSIST, on_readable, watch);
    (void)event_add(watch->event, NULL);
    *ret = watch;
    return 0;
}

void spool_watch_close(struct spool_watch *watch)
{
    if (watch == NULL)
        return;
    event_free(watch->event);
    closep(&watch->fd);
    free(watch);
}
