/* SPDX-License-Identifier: MIT */
/*
 * One stream per job, so each survives a restart of mgpud separately. If several jobs had already ended, the
 * first one named is returned.
 */
#include "cli/follow/wait_any.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/stream.h"
#include "cli/follow/wait_any_line.h"
#include "cli/show/job_end.h"
#include "cli/show/job_news.h"

struct race {
    struct call *call;
    const struct strings *jobs;
    struct stream *streams;
    struct pollfd *fds; // of the streams, followed by that of the news
    struct job_news news;
    struct wait_any_line line;
    char *path; // of the news
};

static int line_wait_ms(const void *line)
{
    return wait_any_line_wait_ms(line);
}

static void show_jobs(void *line, const json_t *list)
{
    wait_any_line_paint(line, list);
}

static void race_clear(struct race *race)
{
    for (size_t i = 0; race->streams != NULL && i < race->jobs->count; i++)
        stream_clear(&race->streams[i]);
    free(race->streams);
    free(race->fds);
    free(race->path);
    job_news_clear(&race->news);
    wait_any_line_clear(&race->line);
}

static void ask(struct race *race, size_t i)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/wait?states=done", race->jobs->items[i]);
    stream_start(&race->streams[i], &race->call->client, path);
}

/* Waits until something can be read, a stream must be retried, the line is due, or the time is up. */
static int sleep_until_news(struct race *race, int64_t deadline_ms, struct error *err)
{
    struct pollfd *news = &race->fds[race->jobs->count];
    int wait_ms = -1, news_ms = job_news_turn(&race->news, race->call, race->path, news->revents != 0);
    *news = (struct pollfd){ .fd = job_news_fd(&race->news), .events = POLLIN };
    if (deadline_ms != JOB_END_FOR_EVER) {
        int64_t left_ms = deadline_ms - clock_boot_ms();
        if (left_ms <= 0)
            return error_set(err, -ETIME, "timeout: none of %zu jobs has ended", race->jobs->count);
        wait_ms = left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
    }
    for (size_t i = 0; i < race->jobs->count; i++) {
        int own_ms = stream_wait_ms(&race->streams[i]);
        race->fds[i] = (struct pollfd){ .fd = stream_fd(&race->streams[i]), .events = POLLIN };
        if (own_ms >= 0 && (wait_ms < 0 || own_ms < wait_ms))
            wait_ms = own_ms;
    }
    if (news_ms >= 0 && (wait_ms < 0 || news_ms < wait_ms))
        wait_ms = news_ms;
    if (poll(race->fds, (nfds_t)race->jobs->count + 1, wait_ms) < 0 && errno != EINTR)
        return error_set_errno(err, -errno, "cannot wait");
    return 0;
}

/* 1: this job has ended; 0: not yet. */
static int check_ended(struct race *race, size_t i, json_t **ret, struct error *err)
{
    int r = stream_advance(&race->streams[i], race->fds[i].revents != 0, err);
    race->fds[i].revents = 0;
    if (r <= 0)
        return r;
    const struct http_answer *answer = stream_answer(&race->streams[i]);
    /* The server's own timeout is shorter than ours may be. */
    if (answer->status == 408) {
        ask(race, i);
        return 0;
    }
    if (answer->status != 200)
        return client_problem(answer, err);
    *ret = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    return *ret == NULL ? error_set(err, -EBADMSG, "the answer of mgpud is not JSON") : 1;
}

int wait_any(struct call *call, const struct strings *jobs, int64_t deadline_ms, size_t *ret_which,
    json_t **ret, struct error *err)
{
    _cleanup_(race_clear) struct race race = { .call = call, .jobs = jobs };
    if (jobs->count > WAIT_ANY_MAX) {
        (void)error_set(err, -E2BIG, "--any: %zu jobs given; at most %u", jobs->count, WAIT_ANY_MAX);
        return error_hint(err, "submit them as an array and wait for the array");
    }
    race.streams = xcalloc(jobs->count, sizeof(*race.streams));
    race.fds = xcalloc(jobs->count + 1, sizeof(*race.fds));
    const struct job_end_news wanted = { line_wait_ms, show_jobs, &race.line };
    if (wait_any_line_init(&race.line, call)) {
        race.path = wait_any_line_path(jobs);
        race.news.wanted = &wanted;
    }
    for (size_t i = 0; i < jobs->count; i++)
        ask(&race, i);
    for (;;) {
        for (size_t i = 0; i < jobs->count; i++) {
            int r = check_ended(&race, i, ret, err);
            if (r > 0)
                *ret_which = i;
            if (r != 0)
                return r < 0 ? r : 0;
        }
        int r = sleep_until_news(&race, deadline_ms, err);
        if (r < 0)
            return r;
    }
}
