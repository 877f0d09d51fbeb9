/* SPDX-License-Identifier: MIT */
/* A libcurl that is none: each request is answered by a function of the test. One at a time. */
#pragma once

#include "base/buffer.h"
#include "controller/cluster/curl_library.h"

struct fake_request {
    const char *url, *text; // borrowed; NULL: not set
};

/* CURLE_OK with the answer in `ret`, or how the request failed. What is in `ret` reaches the client either
 * way. */
typedef CURLcode fake_curl_answer(const struct fake_request *request, struct buffer *ret);

/* The library whose requests this answers. The result is static. */
const struct curl_library *fake_curl(fake_curl_answer *answer);
