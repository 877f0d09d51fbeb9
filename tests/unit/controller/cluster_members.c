/* SPDX-License-Identifier: MIT */
/* A controller's reports about itself and etcd, with a stand-in for libcurl. */

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/status.h"
#include "fake_curl.h"
#include "unit_test.h"

/* Enough of an answer for the lease and the keys. */
#define ANSWER                                                                                               \
    "{\"ID\": \"7\", \"succeeded\": true, \"header\": {\"revision\": \"5\"}, \"result\": "                   \
    "{\"TTL\": \"600\"}}"

static struct cluster cluster;
static const char *server_answer;
static unsigned n_puts;

/* The reporter looks at etcd's members once and is stopped then. */
static CURLcode answer(const struct fake_request *request, struct buffer *ret)
{
    bool is_server = strstr(request->url, "maintenance/status") != NULL;
    n_puts += strstr(request->text, "request_put") != NULL || strstr(request->text, "requestPut") != NULL;
    buffer_append_text(ret, is_server ? server_answer : ANSWER);
    if (is_server)
        atomic_store(&cluster.is_stopping, true);
    return CURLE_OK;
}

static void report_once(const char *trouble, const char *servers)
{
    static char name[] = "c", address[] = "c:9123", nodes_address[] = "c:9124";
    pthread_condattr_t monotonic;
    cluster = (struct cluster){
        .curl = fake_curl(answer), .name = name, .address = address, .nodes_address = nodes_address
    };
    server_answer = servers;
    n_puts = 0;
    (void)snprintf(cluster.status.trouble, sizeof(cluster.status.trouble), "%s", trouble);
    (void)pthread_mutex_init(&cluster.mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cluster.wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    assert_int_equal(etcd_settings_parse("etcd://a", &cluster.settings, NULL), 0);
    (void)cluster_reporter(&cluster);
    etcd_settings_clear(&cluster.settings);
    (void)pthread_mutex_destroy(&cluster.mutex);
    (void)pthread_cond_destroy(&cluster.wake);
}

TEST(alarms_of_etcd_are_told)
{
    static const char *const rows[][2] = {
        { "{\"leader\": \"1\"}", "" },
        { "{\"leader\": \"1\", \"errors\": [\"memberID:1 alarm:NOSPACE\"]}",
            "its database is full (alarm NOSPACE)" },
        { "{\"leader\": \"1\", \"errors\": [7, null, \"memberID:1 alarm:CORRUPT\"]}",
            "its data are damaged (alarm CORRUPT)" },
        { "{\"errors\": [{}]}", "it is in no majority" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        report_once("", rows[i][0]);
        assert_int_equal(cluster.status.n_servers, 1);
        assert_string_equal(cluster.status.servers[0].trouble, rows[i][1]);
    }
}

/* As one that was cut within a character. */
TEST(trouble_that_is_no_utf8_is_reported)
{
    report_once("no space in /tmp/\xc3", "{\"leader\": \"1\"}");
    assert_int_equal(n_puts, 1);
    json_t *body = cluster_status_write(&cluster.status);
    assert_string_equal(json_string_value(json_object_get(body, "trouble")), "no space in /tmp/\\xc3");
    json_decref(body);
}
