/* SPDX-License-Identifier: MIT */
/* Which endpoint of etcd a client asks, with a libcurl that is none: some endpoints hang. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/etcd.h"
#include "controller/cluster/leadership.h"
#include "fake_curl.h"
#include "unit_test.h"

#define LEASE_MS 600000 // no renewal during a test

/* Enough of an answer for each request here. */
#define ANSWER                                                                                               \
    "{\"ID\": \"7\", \"succeeded\": true, \"header\": {\"revision\": \"5\"}, \"result\": "                   \
    "{\"TTL\": \"600\"}}"

static bool hangs[3]; // each endpoint
static size_t asked[3];
static size_t refusals; // of transactions, from now on
static size_t n_pauses;

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    n_pauses++;
    return 0;
}

static CURLcode answer(const struct fake_request *request, struct buffer *ret)
{
    size_t endpoint = (size_t)(request->url[strlen("http://")] - 'a');
    asked[endpoint]++;
    if (refusals > 0 && strstr(request->url, "kv/txn") != NULL) {
        refusals--;
        return CURLE_COULDNT_CONNECT;
    }
    if (hangs[endpoint])
        return CURLE_OPERATION_TIMEDOUT;
    buffer_append(ret, ANSWER, strlen(ANSWER));
    return CURLE_OK;
}

static struct etcd_settings settings_with(bool first, bool second, bool third)
{
    struct etcd_settings settings = { 0 };
    hangs[0] = first, hangs[1] = second, hangs[2] = third;
    memset(asked, 0, sizeof(asked));
    assert_int_equal(etcd_settings_parse("etcd://a,b,c", &settings, NULL), 0);
    return settings;
}

static int ask(struct etcd *etcd)
{
    json_t *answer = NULL;
    int r = etcd_call(etcd, "kv/txn", json_object(), 1000, &answer, NULL);
    json_decref(answer);
    return r;
}

TEST(a_later_client_does_not_begin_at_an_endpoint_that_hangs)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(true, false, false);
    struct etcd *first = etcd_new(fake_curl(answer), &settings);
    assert_int_equal(ask(first), -EAGAIN);
    assert_int_equal(ask(first), 0);
    struct etcd *later = etcd_new(fake_curl(answer), &settings);
    assert_int_equal(ask(later), 0);
    assert_int_equal(asked[0], 1);
    assert_int_equal(asked[1], 2);
    etcd_free(first);
    etcd_free(later);
}

TEST(clients_that_meet_the_same_failure_go_on_at_one_endpoint)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(true, false, true);
    struct etcd *one = etcd_new(fake_curl(answer), &settings),
                *other = etcd_new(fake_curl(answer), &settings);
    assert_int_equal(ask(one), -EAGAIN);
    assert_int_equal(ask(other), -EAGAIN);
    assert_int_equal(ask(one), 0);
    assert_int_equal(ask(other), 0);
    assert_int_equal(asked[1], 2);
    assert_int_equal(asked[2], 0);
    etcd_free(one);
    etcd_free(other);
}

TEST(a_controller_is_elected_though_two_endpoints_hang)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(true, true, false);
    struct leadership *leadership = NULL;
    assert_int_equal(
        leadership_take(fake_curl(answer), &settings, "c", LEASE_MS, &leadership, NULL), -EAGAIN);
    assert_int_equal(
        leadership_take(fake_curl(answer), &settings, "c", LEASE_MS, &leadership, NULL), -EAGAIN);
    assert_int_equal(leadership_take(fake_curl(answer), &settings, "c", LEASE_MS, &leadership, NULL), 1);
    leadership_free(leadership);
    assert_int_equal(asked[0], 1);
    assert_int_equal(asked[1], 1);
}

TEST(a_controller_pauses_while_etcd_refuses_connections)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(false, false, false);
    struct leadership *leadership = NULL;
    refusals = 7;
    n_pauses = 0;
    assert_int_equal(leadership_take(fake_curl(answer), &settings, "c", LEASE_MS, &leadership, NULL), 1);
    assert_int_equal(refusals, 0);
    assert_int_equal(n_pauses, 7);
    leadership_free(leadership);
}

static void note(void *arg)
{
    *(bool *)arg = true;
}

static bool go_on(void *arg)
{
    return true;
}

TEST(a_watch_that_is_never_created_goes_on_at_the_next_endpoint)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(true, false, false);
    struct etcd *etcd = etcd_new(fake_curl(answer), &settings);
    bool is_created = false;
    const struct etcd_watching watching = { note, go_on, &is_created };
    assert_int_equal(etcd_watch(etcd, "leader", "log0", 1000, &watching, NULL), -EAGAIN);
    assert_false(is_created);
    (void)etcd_watch(etcd, "leader", "log0", 1000, &watching, NULL);
    assert_true(is_created);
    assert_int_equal(asked[0], 1);
    etcd_free(etcd);
}

/* Keys "authority.key" and so on, in base64, of which only the first is there. */
static CURLcode answer_in_part(const struct fake_request *request, struct buffer *ret)
{
    buffer_append_text(ret, "{\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"bWdwdS9pZGVudGl0eQ==\","
                            "\"value\":\"eyJhdXRob3JpdHkua2V5IjoiYSJ9\"}]}}]}");
    return CURLE_OK;
}

TEST(an_identity_that_is_not_whole_replaces_no_key)
{
    _cleanup_(etcd_settings_clear) struct etcd_settings settings = settings_with(false, false, false);
    struct etcd *etcd = etcd_new(fake_curl(answer_in_part), &settings);
    struct error err = { 0 };
    char dir[] = "/tmp/mgpu-identity-XXXXXX";
    assert_non_null(mkdtemp(dir));
    assert_int_equal(cluster_identity_read(etcd, dir, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "authority.crt"));
    assert_int_equal(rmdir(dir), 0); // it is empty
    etcd_free(etcd);
}

TEST(the_status_of_a_member_may_have_errors_of_any_kind)
{
    json_t *status = json_pack("{s:[i,s]}", "errors", 1, "memberID:1 alarm:NOSPACE");
    assert_non_null(strstr(cluster_server_trouble(status), "full"));
    json_decref(status);
}

TEST(the_trouble_of_another_controller_is_text_however_long)
{
    struct cluster_member member = { 0 };
    _cleanup_buffer_ struct buffer report = { 0 };
    buffer_append_text(&report, "{\"name\":\"b\",\"trouble\":\"\\u001b");
    for (size_t i = 0; i < sizeof(member.trouble); i++)
        buffer_append_text(&report, "\xc3\xa9");
    buffer_append_text(&report, "\"}");
    assert_true(cluster_member_read(report.bytes, report.length, &member));
    json_t *text = json_string(member.trouble); // NULL: no UTF-8
    assert_non_null(text);
    assert_memory_equal(member.trouble, "\\x1b", 4);
    json_decref(text);
}
