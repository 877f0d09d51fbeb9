/* SPDX-License-Identifier: MIT */
/* Tokens for nodes, and removing nodes: permissions, and refusals. */

#include <string.h>

#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

static void assert_refused(
    struct harness *harness, const char *path, const char *body, unsigned status, const char *words)
{
    _cleanup_(answer_clear) struct answer answer = client_post(harness, path, body);
    assert_int_equal(answer.status, status);
    if (strstr(answer.body, words) == NULL)
        print_message("%s\n", answer.body);
    assert_non_null(strstr(answer.body, words));
}

CASE(a_token_with_senseless_wishes_is_refused, harness)
{
    static const struct {
        const char *body;
        unsigned status;
        const char *words;
    } rows[] = {
        { "{\"expires_s\":0}", 400, "expires_s" },
        { "{\"node\":\"a b\"}", 400, "not a valid node name" },
        { "{\"node\":\"../x\"}", 400, "not a valid node name" },
        { "{\"replace\":true}", 400, "requires node" },
        { "{\"host\":\"a:b:c\"}", 400, "HOST:PORT" },
        { "{\"hots\":\"a\"}", 400, "host" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused(harness, "/api/v1/nodes/tokens", rows[i].body, rows[i].status, rows[i].words);
}

CASE(only_machines_that_joined_are_forgotten, harness)
{
    assert_refused(harness, "/api/v1/nodes/nobody/forget", "{}", 404, "there is no node");
    assert_refused(harness, "/api/v1/nodes/box/forget", "{}", 400, "mgpud runs on");
    assert_int_equal(harness->nodes_cut, 0);
    _cleanup_(answer_clear) struct answer answer = client_post(harness, "/api/v1/nodes/gpu1/forget", "{}");
    assert_int_equal(answer.status, 200);
    assert_int_equal(harness->nodes_cut, 1);
}
