/* SPDX-License-Identifier: MIT */
/* One request for all jobs that request the same, and its end when they leave or are edited. */

#include "job/ask_shared.h"
#include "job/job.h"
#include "unit_test.h"

static const struct job_ask *make(struct ask_cache *cache, const struct job_ask *from)
{
    const struct job_ask *ask = ask_shared_new(from);
    ask_cache_share(cache, &ask);
    return ask;
}

TEST(who_asks_for_the_same_has_the_same_request)
{
    _cleanup_(ask_cache_clear) struct ask_cache cache = { 0 };
    char model[] = "h200", same_model[] = "h200";
    const struct job_ask *one = make(&cache, &(struct job_ask){ .gpus = 2, .gpu_model = model });
    const struct job_ask *two = make(&cache, &(struct job_ask){ .gpus = 2, .gpu_model = same_model });
    const struct job_ask *other = make(&cache, &(struct job_ask){ .gpus = 3, .gpu_model = model });
    assert_ptr_equal(one, two);
    assert_ptr_not_equal(one, other);
    assert_int_equal(other->gpus, 3);
    ask_cache_share(&cache, &two); // once more changes nothing
    assert_ptr_equal(one, two);
    ask_shared_drop(one);
    ask_shared_drop(two);
    ask_shared_drop(other);
}

TEST(a_request_outlives_the_cache_and_its_other_users)
{
    struct ask_cache cache = { 0 };
    const struct job_ask *one = make(&cache, &(struct job_ask){ .gpus = 2 });
    const struct job_ask *two = make(&cache, &(struct job_ask){ .gpus = 2 });
    ask_cache_clear(&cache);
    ask_shared_drop(one);
    assert_int_equal(two->gpus, 2);
    ask_shared_drop(two);
}

TEST(requests_evicted_from_the_cache_stay_valid)
{
    _cleanup_(ask_cache_clear) struct ask_cache cache = { 0 };
    const struct job_ask *asks[8 * ASK_CACHE_SLOTS];
    const uint32_t count = sizeof(asks) / sizeof(asks[0]);
    for (uint32_t i = 0; i < count; i++)
        asks[i] = make(&cache, &(struct job_ask){ .gpus = i + 1 });
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(asks[i]->gpus, i + 1);
        ask_shared_drop(asks[i]);
    }
}

TEST(a_job_that_changes_its_request_changes_no_others)
{
    _cleanup_(ask_cache_clear) struct ask_cache cache = { 0 };
    struct job one = { .ask = make(&cache, &(struct job_ask){ .gpus = 2 }) };
    struct job two = { .ask = make(&cache, &(struct job_ask){ .gpus = 2 }) };
    struct job_ask wider = *one.ask;
    wider.gpus = 4;
    job_set_ask(&one, &wider);
    assert_int_equal(one.ask->gpus, 4);
    assert_int_equal(two.ask->gpus, 2);
    ask_shared_drop(one.ask);
    ask_shared_drop(two.ask);
}
