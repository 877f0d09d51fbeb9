/* SPDX-License-Identifier: MIT */
#include "controller/http/refusal.h"

#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "wire/problem.h"

void refusal_send(struct bufferevent *stream, const struct error *err)
{
    const struct problem *problem = problem_find(err->code);
    _cleanup_free_ char *body = xasprintf("{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,"
                                          "\"code\":\"%s\",\"detail\":\"%s\"}\n",
        problem->title, problem->status, problem->code, err->message);
    _cleanup_free_ char *answer = xasprintf("HTTP/1.1 %u %s\r\n"
                                            "Content-Type: application/problem+json\r\n"
                                            "Content-Length: %zu\r\n"
                                            "Connection: close\r\n"
                                            "\r\n"
                                            "%s",
        problem->status, problem_status_text(problem->status), strlen(body), body);
    (void)send(bufferevent_getfd(stream), answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    bufferevent_free(stream);
}
