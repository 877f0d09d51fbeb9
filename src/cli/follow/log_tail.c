/* SPDX-License-Identifier: MIT */
/* Reads the end of the log, doubling the size until it contains enough lines. */
#include "cli/follow/log_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"

#define FIRST_BYTES  (64U << 10)
#define TAIL_WAIT_MS 30000

uint64_t log_tail_in(const void *bytes, uint64_t length, uint64_t lines)
{
    const uint8_t *text = bytes;
    uint64_t seen = 0, at = length;
    /* A newline at the very end belongs to the last line. */
    if (at > 0 && lines > 0 && text[at - 1] == '\n')
        at--;
    while (at > 0) {
        if (lines == 0 || (text[at - 1] == '\n' && ++seen == lines))
            return at;
        at--;
    }
    return 0;
}

int log_tail_find(struct client *client, const char *job, size_t rank, uint64_t lines, uint64_t *ret_offset,
    struct error *err)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/log?rank=%zu", job, rank);
    bool was_referred = false;
    for (uint64_t wanted = FIRST_BYTES;; wanted *= 2) {
        _cleanup_(http_client_freep) struct http_client *http = NULL;
        char range[64];
        (void)snprintf(range, sizeof(range), "Range: bytes=-%" PRIu64, wanted);
        struct http_request request = { .method = "GET", .path = path, .header = range };
        int r = client_connect(client, &http, err);
        if (r < 0)
            return r;
        r = http_client_request(http, &request, TAIL_WAIT_MS, err);
        if (r < 0)
            return r;
        const struct http_answer *answer = http_client_answer(http);
        /* Nothing written yet. */
        if (answer->status == 404 || answer->status == 416) {
            *ret_offset = 0;
            return 0;
        }
        if (!was_referred && client_refer(client, answer)) {
            was_referred = true;
            continue;
        }
        if (answer->status != 200 && answer->status != 206)
            return client_problem(answer, err);
        uint64_t start = answer->range_start > 0 ? (uint64_t)answer->range_start : 0;
        uint64_t found = log_tail_in(answer->body.bytes, answer->body.length, lines);
        if (found > 0 || start == 0 || lines == 0 || wanted > HTTP_ANSWER_MAX / 2) {
            *ret_offset = start + found;
            return 0;
        }
    }
}
