/* SPDX-License-Identifier: MIT */
/* A separate stream, so that a slow answer for display does not delay the answer that is awaited. */
#include "cli/show/job_news.h"

#include "base/json/field.h"
#include "base/memory.h"

int job_news_turn(struct job_news *news, struct call *call, const char *path, bool is_readable)
{
    struct error none = { 0 };
    if (news->wanted == NULL)
        return -1;
    int wait_ms = news->wanted->wait_ms(news->wanted->arg);
    if (!news->is_asked && wait_ms != 0)
        return wait_ms;
    if (!news->is_asked) {
        stream_start(&news->stream, &call->client, path);
        news->is_asked = true;
    }
    int r = stream_advance(&news->stream, is_readable, &none);
    if (r == 0)
        return stream_wait_ms(&news->stream);
    const struct http_answer *answer = r > 0 ? stream_answer(&news->stream) : NULL;
    _cleanup_json_ json_t *object =
        answer != NULL && answer->status == 200
            ? json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL)
            : NULL;
    news->is_asked = false;
    if (object == NULL) {
        news->wanted = NULL;
        return -1;
    }
    news->wanted->on_job(news->wanted->arg, object);
    return news->wanted->wait_ms(news->wanted->arg);
}

int job_news_fd(const struct job_news *news)
{
    return news->is_asked ? stream_fd(&news->stream) : -1;
}

void job_news_clear(struct job_news *news)
{
    stream_clear(&news->stream);
}
