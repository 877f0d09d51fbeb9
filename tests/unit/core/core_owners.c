/* SPDX-License-Identifier: MIT */
/* A uid that is given to another user: the owners of the jobs, and the user as whom they run. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "memory_store.h"

static int one;
static char *row; // the latest row of number 1000 in the store

static int close_all(void **state)
{
    free(row);
    row = NULL;
    return bench_close(state);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open, close_all)

/* Returns its job. */
static uint64_t submit(struct bench *b, const char *user, uint32_t gpus)
{
    b->user = user;
    b->n_answers = 0;
    bench_submit(b, 1000, gpus, NULL, &one);
    bench_turn(b);
    for (size_t i = 0; i < b->flying->n_states; i++) {
        const struct state_change *change = &b->flying->states[i];
        if (strcmp(change->kind, CORE_OWNER) != 0)
            continue;
        assert_string_equal(change->key, "1000");
        free(row);
        row = xstrndup((const char *)change->value.bytes, change->value.length);
    }
    bench_settle(b);
    return bench_answer(b, &one)->job;
}

CASE(a_job_is_launched_under_the_name_that_its_owner_had_at_the_submit, b)
{
    uint64_t old = submit(b, "ana", 1), new = submit(b, "eva", 1);
    bench_hello(b, 1, "boot", 2, NULL, 0);
    bench_settle(b);
    assert_string_equal(bench_sent(b, MESSAGE_LAUNCH, old)->user, "ana");
    assert_string_equal(bench_sent(b, MESSAGE_LAUNCH, new)->user, "eva");
}

CASE(the_next_user_of_a_number_owns_nothing_of_the_last_one, b)
{
    uint64_t old = submit(b, "ana", 1);
    struct identity who = { .is_known = true, .uid = 1000 };
    assert_int_equal(core_first_own(b->core, 1000), 0);
    b->user = "eva";
    who.first_job = core_first_own(b->core, 1000);
    assert_false(core_may(&who, ACTION_READ, core_job(b->core, old)));
    assert_false(core_may(&who, ACTION_CONTROL, core_job(b->core, old)));
    uint64_t new = submit(b, "eva", 1);
    who.first_job = core_first_own(b->core, 1000);
    assert_false(core_may(&who, ACTION_READ, core_job(b->core, old)));
    assert_true(core_may(&who, ACTION_READ, core_job(b->core, new)));
    who.role = ROLE_ADMIN;
    assert_true(core_may(&who, ACTION_READ, core_job(b->core, old)));
}

CASE(an_element_belongs_to_the_owner_of_its_array, b)
{
    uint64_t array = submit(b, "ana", 1);
    (void)submit(b, "eva", 1);
    struct job element = { .id = array + 7, .uid = 1000, .array_job = array };
    const struct identity who = { .is_known = true, .uid = 1000, .first_job = core_first_own(b->core, 1000) };
    assert_string_equal(core_owner_name(b->core, &element), "ana");
    assert_false(core_may(&who, ACTION_READ, &element));
}

CASE(a_number_without_a_name_is_who_it_was, b)
{
    uint64_t job = submit(b, "ana", 1);
    b->user = NULL; // or the user database does not answer
    assert_int_equal(core_first_own(b->core, 1000), 0);
    assert_string_equal(core_owner_name(b->core, core_job(b->core, job)), "ana");
}

CASE(jobs_from_before_the_first_name_are_their_numbers, b)
{
    uint64_t nameless = submit(b, NULL, 1);
    assert_null(core_owner_name(b->core, core_job(b->core, nameless)));
    (void)submit(b, "eva", 1);
    assert_int_equal(core_first_own(b->core, 1000), 0);
    assert_null(core_owner_name(b->core, core_job(b->core, nameless)));
}

CASE(names_outlive_a_restart, b)
{
    struct job old = { .id = submit(b, "ana", 1), .uid = 1000 };
    struct job new = { .id = submit(b, "eva lang", 1), .uid = 1000 }; // some directories have such names
    bench_restart(b, NULL);
    assert_null(core_owner_name(b->core, &old));
    assert_int_equal(
        core_load_state(b->core, CORE_OWNER, "1000", (const uint8_t *)row, strlen(row), NULL), 0);
    assert_string_equal(core_owner_name(b->core, &old), "ana");
    assert_string_equal(core_owner_name(b->core, &new), "eva lang");
    assert_int_equal(core_first_own(b->core, 1000), new.id);
}
