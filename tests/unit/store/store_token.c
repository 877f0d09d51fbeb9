/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

struct answer {
    bool is_here;
    uint64_t id;
    int result;
    uint32_t uid, gid;
    char name[32];
};

static void on_added(void *arg, uint64_t id, int result)
{
    struct answer *answer = arg;
    *answer = (struct answer){ .is_here = true, .id = id, .result = result };
}

static void on_token(void *arg, const struct store_token *token)
{
    struct answer *answer = arg;
    *answer = (struct answer){ .is_here = true };
    if (token == NULL)
        return;
    answer->id = token->id;
    answer->uid = token->uid;
    answer->gid = token->gid;
    (void)snprintf(answer->name, sizeof(answer->name), "%s", token->name);
}

static uint64_t add_at(struct fixture *fixture, uint8_t first_byte, int64_t created_ms, int64_t expires_ms)
{
    struct answer answer = { 0 };
    char name[] = "laptop";
    const struct store_token token = {
        .uid = 1000, .gid = 100, .name = name, .created_ms = created_ms, .expires_ms = expires_ms
    };
    const uint8_t hash[32] = { first_byte };
    store_add_token(fixture->store, &token, hash, on_added, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    return answer.id;
}

static uint64_t add(struct fixture *fixture, uint8_t first_byte, int64_t expires_ms)
{
    return add_at(fixture, first_byte, 5, expires_ms);
}

static struct answer find(struct fixture *fixture, uint8_t first_byte, int64_t now_ms)
{
    struct answer answer = { 0 };
    const uint8_t hash[32] = { first_byte };
    store_find_token(fixture->store, hash, now_ms, on_token, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    return answer;
}

static int add_another(struct fixture *fixture, uint32_t uid, int number, int64_t expires_ms)
{
    struct answer answer = { 0 };
    char name[] = "script";
    const struct store_token token = {
        .uid = uid, .name = name, .created_ms = 1000, .expires_ms = expires_ms
    };
    const uint8_t hash[32] = { (uint8_t)uid, 1, (uint8_t)(number >> 8), (uint8_t)number };
    store_add_token(fixture->store, &token, hash, on_added, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    assert_true((answer.result == 0) == (answer.id != 0));
    return answer.result;
}

CASE(a_user_has_so_many_valid_tokens_and_no_more, fixture)
{
    for (int i = 0; i < STORE_USER_TOKENS_MAX - 1; i++)
        assert_int_equal(add_another(fixture, 7, i, 5000), 0);
    assert_int_equal(add_another(fixture, 7, 1000, 900), 0);  // has expired
    assert_int_equal(add_another(fixture, 7, 1001, 5000), 0); // in place of that
    assert_int_equal(add_another(fixture, 7, 1002, 5000), -EUSERS);
    assert_int_equal(add_another(fixture, 8, 1003, 5000), 0);
}

CASE(a_token_is_found_by_its_hash, fixture)
{
    assert_int_equal(add(fixture, 1, 0), 1);
    assert_int_equal(add(fixture, 2, 0), 2);
    struct answer answer = find(fixture, 2, 1000);
    assert_int_equal(answer.id, 2);
    assert_int_equal(answer.uid, 1000);
    assert_int_equal(answer.gid, 100);
    assert_string_equal(answer.name, "laptop");
    assert_int_equal(find(fixture, 3, 1000).id, 0);
}

CASE(a_token_survives_a_restart, fixture)
{
    (void)add(fixture, 1, 0);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(find(fixture, 1, 1000).id, 1);
}

CASE(an_expired_token_is_not_found, fixture)
{
    (void)add(fixture, 1, 2000);
    assert_int_equal(find(fixture, 1, 1999).id, 1);
    assert_int_equal(find(fixture, 1, 2000).id, 0);
}

CASE(the_same_secret_twice_is_refused_and_harms_nothing, fixture)
{
    assert_int_equal(add(fixture, 1, 0), 1);
    assert_int_equal(add(fixture, 1, 0), 0);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_false(fixture->has_failed);
}

struct listing {
    bool is_here;
    size_t count;
    uint64_t ids[4];
};

static void on_tokens(void *arg, const struct store_token *tokens, size_t count)
{
    struct listing *listing = arg;
    listing->is_here = true;
    listing->count = count;
    for (size_t i = 0; i < count && i < 4; i++) {
        assert_string_equal(tokens[i].name, "laptop");
        listing->ids[i] = tokens[i].id;
    }
}

static struct listing list(struct fixture *fixture, int64_t uid, size_t limit)
{
    struct listing listing = { 0 };
    store_list_tokens(fixture->store, uid, 1000, limit, on_tokens, &listing);
    fixture_dispatch_until(fixture, &listing.is_here);
    return listing;
}

struct verdict {
    bool is_here;
    int result;
};

static void on_revoked(void *arg, uint64_t id, int result)
{
    *(struct verdict *)arg = (struct verdict){ true, result };
}

static int revoke(struct fixture *fixture, uint64_t id, int64_t uid)
{
    struct verdict verdict = { 0 };
    store_revoke_token(fixture->store, id, uid, on_revoked, &verdict);
    fixture_dispatch_until(fixture, &verdict.is_here);
    return verdict.result;
}

CASE(a_list_has_the_newest_good_tokens_of_its_user, fixture)
{
    (void)add(fixture, 1, 0);
    (void)add(fixture, 2, 1000); // has expired
    (void)add(fixture, 3, 1001);
    struct listing all = list(fixture, STORE_ANY_USER, 4), one = list(fixture, 1000, 1);
    assert_int_equal(all.count, 2);
    assert_int_equal(all.ids[0], 3);
    assert_int_equal(all.ids[1], 1);
    assert_int_equal(one.count, 1);
    assert_int_equal(one.ids[0], 3);
    assert_int_equal(list(fixture, 1001, 4).count, 0);
}

CASE(a_revoked_token_is_gone_after_a_restart_too, fixture)
{
    (void)add(fixture, 1, 0);
    (void)add(fixture, 2, 0);
    assert_int_equal(revoke(fixture, 1, 1001), -ENOENT); // somebody else's
    assert_int_equal(find(fixture, 1, 1000).id, 1);
    assert_int_equal(revoke(fixture, 1, 1000), 0);
    assert_int_equal(revoke(fixture, 1, 1000), -ENOENT);
    assert_int_equal(revoke(fixture, 2, STORE_ANY_USER), 0);
    assert_int_equal(revoke(fixture, UINT64_MAX, STORE_ANY_USER), -ENOENT);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(find(fixture, 1, 1000).id, 0);
    assert_int_equal(add(fixture, 3, 0), 3); // numbers are not given out twice
}

/* The page makes two short-lived ones for each login. */
CASE(tokens_that_expired_long_ago_leave_the_store, fixture)
{
    const int64_t week_ms = 7 * 24 * 3600 * 1000L;
    (void)add(fixture, 1, 1000);
    (void)add(fixture, 2, 0);
    (void)add_at(fixture, 3, 1000 + week_ms, 2000 + week_ms);
    assert_int_equal(find(fixture, 1, 500).id, 1);
    (void)add_at(fixture, 4, 1001 + week_ms, 2000 + week_ms);
    assert_int_equal(find(fixture, 1, 500).id, 0);
    assert_int_equal(find(fixture, 2, 500).id, 2);
    assert_int_equal(find(fixture, 3, 500).id, 3);
}
