/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_node.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define EXPIRES_MS  1000
#define HASH(first) ((const uint8_t[STORE_HASH_SIZE]){ (first) })

struct answer {
    bool is_here, is_done;
    uint64_t id;
    enum store_join_result result;
};

static void on_added(void *arg, uint64_t id)
{
    *(struct answer *)arg = (struct answer){ .is_here = true, .id = id };
}

static void on_joined(void *arg, enum store_join_result result)
{
    *(struct answer *)arg = (struct answer){ .is_here = true, .result = result };
}

static void on_forgotten(void *arg, bool is_done)
{
    *(struct answer *)arg = (struct answer){ .is_here = true, .is_done = is_done };
}

/* The secret's hash begins with `secret`. */
static uint64_t add(struct fixture *fixture, uint8_t secret, char *node, bool is_replacing)
{
    struct answer answer = { 0 };
    const struct store_join_token token = {
        .uid = 1000, .created_ms = 5, .expires_ms = EXPIRES_MS, .node = node, .is_replacing = is_replacing
    };
    store_add_join_token(fixture->store, &token, HASH(secret), on_added, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    return answer.id;
}

static enum store_join_result join(
    struct fixture *fixture, uint64_t token, uint8_t secret, uint8_t key, char *node, int64_t now_ms)
{
    struct answer answer = { 0 };
    struct store_join asked = { .token = token, .node = node, .now_ms = now_ms };
    asked.hash[0] = secret;
    asked.key_hash[0] = key;
    store_join_node(fixture->store, &asked, on_joined, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    return answer.result;
}

struct list {
    char names[256];
    int64_t until_ms;
};

static void add_name(void *arg, const struct store_node *node)
{
    struct list *list = arg;
    size_t used = strlen(list->names);
    (void)snprintf(list->names + used, sizeof(list->names) - used, "%s:%u ", node->name, node->key_hash[0]);
}

static struct list load(struct fixture *fixture)
{
    struct list list = { 0 };
    struct error err;
    assert_int_equal(store_load_nodes(fixture->store, add_name, &list, &list.until_ms, &err), 0);
    return list;
}

CASE(a_token_lets_one_machine_join_and_survives_a_restart, fixture)
{
    char one[] = "n1", two[] = "n2";
    uint64_t token = add(fixture, 7, NULL, false);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(load(fixture).until_ms, EXPIRES_MS);
    assert_int_equal(join(fixture, token, 7, 1, one, 10), STORE_JOIN_DONE);
    assert_int_equal(load(fixture).until_ms, 0);
    assert_int_equal(join(fixture, token, 7, 2, two, 11), STORE_JOIN_USED);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_string_equal(load(fixture).names, "n1:1 ");
}

CASE(the_same_machine_may_repeat_itself_even_late, fixture)
{
    char one[] = "n1";
    uint64_t token = add(fixture, 7, NULL, false);
    assert_int_equal(join(fixture, token, 7, 1, one, 10), STORE_JOIN_DONE);
    assert_int_equal(join(fixture, token, 7, 1, one, EXPIRES_MS + 1), STORE_JOIN_DONE);
    assert_string_equal(load(fixture).names, "n1:1 ");
}

CASE(who_has_not_the_secret_learns_nothing, fixture)
{
    char one[] = "n1";
    uint64_t token = add(fixture, 7, NULL, false);
    assert_int_equal(join(fixture, token, 8, 1, one, 10), STORE_JOIN_UNKNOWN);
    assert_int_equal(join(fixture, token + 1, 7, 1, one, 10), STORE_JOIN_UNKNOWN);
    assert_int_equal(join(fixture, token, 7, 1, one, EXPIRES_MS), STORE_JOIN_EXPIRED);
    assert_int_equal(join(fixture, token, 8, 1, one, EXPIRES_MS), STORE_JOIN_UNKNOWN);
    assert_string_equal(load(fixture).names, "");
}

CASE(names_and_keys_belong_to_one_machine, fixture)
{
    char one[] = "n1", two[] = "n2";
    assert_int_equal(join(fixture, add(fixture, 1, NULL, false), 1, 1, one, 10), STORE_JOIN_DONE);
    assert_int_equal(join(fixture, add(fixture, 2, NULL, false), 2, 2, one, 10), STORE_JOIN_NAME_TAKEN);
    assert_int_equal(join(fixture, add(fixture, 3, NULL, false), 3, 1, two, 10), STORE_JOIN_KEY_TAKEN);
    assert_int_equal(join(fixture, add(fixture, 4, two, false), 4, 2, one, 10), STORE_JOIN_NOT_FOR_IT);
    assert_string_equal(load(fixture).names, "n1:1 ");
    assert_int_equal(join(fixture, add(fixture, 5, one, true), 5, 2, one, 10), STORE_JOIN_DONE);
    assert_string_equal(load(fixture).names, "n1:2 ");
}

CASE(a_question_changes_nothing, fixture)
{
    char one[] = "n1";
    uint64_t token = add(fixture, 7, NULL, false);
    assert_int_equal(join(fixture, token, 7, 0, NULL, 10), STORE_JOIN_DONE);
    assert_int_equal(join(fixture, token, 7, 0, NULL, EXPIRES_MS), STORE_JOIN_EXPIRED);
    assert_int_equal(join(fixture, token, 7, 1, one, 10), STORE_JOIN_DONE);
    assert_int_equal(join(fixture, token, 7, 0, NULL, 10), STORE_JOIN_USED);
}

CASE(a_forgotten_node_is_gone_for_good, fixture)
{
    struct answer answer = { 0 };
    char one[] = "n1";
    assert_int_equal(join(fixture, add(fixture, 1, NULL, false), 1, 1, one, 10), STORE_JOIN_DONE);
    store_forget_node(fixture->store, "n1", on_forgotten, &answer);
    fixture_dispatch_until(fixture, &answer.is_here);
    assert_true(answer.is_done);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_string_equal(load(fixture).names, "");
}
