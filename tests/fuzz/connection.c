/* SPDX-License-Identifier: MIT */
/*
 * Two connections to the API that send anything, stop reading, close one side or both, while answers, streams
 * and waits are under way: the server survives it, and afterwards answers a request in the ordinary way. The
 * input is a sequence of steps; a step may send a whole request of a table, which no fuzzer would guess.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "input.h"
#include "serve_client.h"
#include "serve_harness.h"

#define STEPS_MAX 100
#define RUN_MAX   512

#define SUBMIT                                                                                               \
    "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n"  \
    "{\"command\":[\"true\"],\"cwd\":\"/\",\"env\":{\"A\":\"b\"}}"

static const char *const requests[] = {
    "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /api/v1/jobs/1/log?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /api/v1/events?follow=1 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n",
    "GET /api/v1/jobs/1/wait?timeout_ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    SUBMIT,
    "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "POST /api/v1/jobs/1/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "DELETE /api/v1/jobs/1 HTTP/1.1\r\nHost: x\r\n",
    "GET /api/v1/gpus HTTP/1.0\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
};

static void send_some(int fd, const void *bytes, size_t length)
{
    (void)send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_step(struct harness *harness, int fds[2], struct input *input)
{
    char answer[4096];
    uint8_t op = input_byte(input);
    int *fd = &fds[op >> 3 & 1];
    size_t length = 0;
    if (*fd < 0)
        *fd = client_connect(harness);
    switch (op & 7) {
    case 0:
    case 1:
        length = input_byte(input) % (sizeof(requests) / sizeof(requests[0]));
        send_some(*fd, requests[length], strlen(requests[length]));
        break;
    case 2: {
        const uint8_t *run = input_run(input, input_number(input) % RUN_MAX, &length);
        send_some(*fd, run, length);
        break;
    }
    case 3: (void)recv(*fd, answer, sizeof(answer), MSG_DONTWAIT); break;
    case 4: (void)shutdown(*fd, op & 16 ? SHUT_RD : SHUT_WR); break;
    case 5:
        (void)close(*fd);
        *fd = -1;
        break;
    case 6:
        harness_set_state(harness, harness->core.jobs[0], op & 16 ? JOB_RUNNING : JOB_DONE);
        harness_add_event(harness, 1, true);
        break;
    default: break;
    }
    if ((op & 32) == 0)
        harness_turn(harness, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char log[] = "one line\nand another\n";
    struct input input = { bytes, length, 0 };
    struct harness *harness = harness_new();
    int fds[2] = { -1, -1 };
    harness->log = log;
    harness->log_length = sizeof(log) - 1;
    (void)harness_add_job(harness, 1, getuid(), JOB_RUNNING);
    for (size_t i = 0; i < STEPS_MAX && input.at < length; i++)
        take_step(harness, fds, &input);
    for (size_t i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    struct answer answer = client_get(harness, "/healthz");
    if (answer.status != 200)
        abort();
    answer_clear(&answer);
    harness_free(harness);
    return 0;
}
