/* SPDX-License-Identifier: MIT */
#include "agent/launch/adopted_kill.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "agent/launch/adopted.h"
#include "base/memory.h"
#include "base/process.h"

struct adopted_kill {
    struct adopted_process process;
    struct event *timer;
    struct adopted_kill *next, **where;
};

struct adopted_kills {
    struct event_base *base;
    struct adopted_kill *first;
};

static void kill_free(struct adopted_kill *kill)
{
    *kill->where = kill->next;
    if (kill->next != NULL)
        kill->next->where = kill->where;
    event_free(kill->timer);
    closep(&kill->process.pidfd);
    free(kill);
}

static void on_grace_over(evutil_socket_t fd, short what, void *arg)
{
    struct adopted_kill *kill = arg;
    if (adopted_is_own(&kill->process)) // the process may have changed its user since
        (void)process_signal(kill->process.pidfd, SIGKILL);
    kill_free(kill);
}

struct adopted_kills *adopted_kills_new(struct event_base *base)
{
    struct adopted_kills *kills = xcalloc(1, sizeof(*kills));
    kills->base = base;
    return kills;
}

void adopted_kills_free(struct adopted_kills *kills)
{
    if (kills == NULL)
        return;
    while (kills->first != NULL)
        kill_free(kills->first);
    free(kills);
}

int adopted_kills_start(struct adopted_kills *kills, int dirfd, uint32_t signal, int64_t grace_ms)
{
    struct adopted_process process;
    int r = adopted_open(dirfd, &process);
    if (r < 0)
        return r == -ESRCH ? 0 : r;
    r = process_signal(process.pidfd, (int)signal);
    if (r < 0) {
        closep(&process.pidfd);
        return r == -ESRCH ? 0 : r;
    }
    struct adopted_kill *kill = xcalloc(1, sizeof(*kill));
    struct timeval grace = { grace_ms / 1000, grace_ms % 1000 * 1000 };
    kill->process = process;
    kill->timer = evtimer_new(kills->base, on_grace_over, kill);
    kill->where = &kills->first;
    kill->next = kills->first;
    if (kill->next != NULL)
        kill->next->where = &kill->next;
    kills->first = kill;
    (void)evtimer_add(kill->timer, &grace);
    return 0;
}
