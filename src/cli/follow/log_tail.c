/* SPDX-License-Identifier: MIT */
/* Reads the log backwards, one window at a time, until the windows contain enough lines. The search is
 * limited for text without line ends: a log may be sparse, or not text at all. */
#include "cli/follow/log_tail.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"

#define FIRST_BYTES  (64U << 10)
#define WINDOW_BYTES (1U << 20)
#define LINE_BYTES   (16U << 20) // a longer line is shown from this distance before its end
#define TAIL_WAIT_MS 30000

/* Searches from the end: the position at which the line begins; 0 if it is not in this text. */
static uint64_t scan(const uint8_t *text, uint64_t length, uint64_t lines, uint64_t *seen)
{
    for (uint64_t at = length; at > 0; at--)
        if (text[at - 1] == '\n' && ++*seen == lines)
            return at;
    return 0;
}

/* A newline at the very end belongs to the last line. */
static uint64_t without_end(const uint8_t *text, uint64_t length)
{
    return length > 0 && text[length - 1] == '\n' ? length - 1 : length;
}

uint64_t log_tail_in(const void *bytes, uint64_t length, uint64_t lines)
{
    uint64_t seen = 0;
    return lines == 0 ? length : scan(bytes, without_end(bytes, length), lines, &seen);
}

/* Requests these bytes, if necessary from another controller. */
static int fetch(
    struct client *client, const char *path, const char *range, struct http_client **ret, struct error *err)
{
    const struct http_request request = { .method = "GET", .path = path, .header = range };
    for (bool was_referred = false;; was_referred = true) {
        _cleanup_(http_client_freep) struct http_client *http = NULL;
        int r = client_connect(client, &http, err);
        if (r == 0)
            r = http_client_request(http, &request, TAIL_WAIT_MS, err);
        if (r < 0)
            return r;
        if (was_referred || !client_refer(client, http_client_answer(http))) {
            *ret = take_ptr(http);
            return 0;
        }
    }
}

struct tail {
    uint64_t start; // start of the bytes read so far
    uint64_t lines, seen;
    uint64_t unbroken; // bytes since the last line end
    bool has_begun, is_found;
};

static void take_window(struct tail *tail, const struct http_answer *answer)
{
    const uint8_t *text = answer->body.bytes;
    uint64_t before = tail->seen, length = answer->body.length;
    tail->start = answer->range_start > 0 ? (uint64_t)answer->range_start : 0;
    if (!tail->has_begun)
        length = without_end(text, length);
    uint64_t found = scan(text, length, tail->lines, &tail->seen);
    tail->has_begun = true;
    tail->is_found = found > 0;
    tail->start += found;
    tail->unbroken = tail->seen > before ? 0 : tail->unbroken + length;
}

int log_tail_find(
    struct client *client, const char *path, uint64_t lines, uint64_t *ret_offset, struct error *err)
{
    struct tail tail = { .lines = lines };
    do {
        _cleanup_(http_client_freep) struct http_client *http = NULL;
        char range[80];
        uint64_t from = tail.start > WINDOW_BYTES ? tail.start - WINDOW_BYTES : 0;
        if (tail.has_begun)
            (void)snprintf(range, sizeof(range), "Range: bytes=%" PRIu64 "-%" PRIu64, from, tail.start - 1);
        else
            (void)snprintf(range, sizeof(range), "Range: bytes=-%u", FIRST_BYTES);
        int r = fetch(client, path, range, &http, err);
        if (r < 0)
            return r;
        const struct http_answer *answer = http_client_answer(http);
        /* Nothing has been written yet, or the log was truncated meanwhile. */
        if (answer->status == 404 || answer->status == 416) {
            *ret_offset = 0;
            return 0;
        }
        if (answer->status != 200 && answer->status != 206)
            return client_problem(answer, err);
        if (lines == 0) {
            *ret_offset = (answer->range_start > 0 ? (uint64_t)answer->range_start : 0) + answer->body.length;
            return 0;
        }
        take_window(&tail, answer);
    } while (!tail.is_found && tail.start > 0 && tail.unbroken < LINE_BYTES);
    *ret_offset = tail.start;
    return 0;
}
