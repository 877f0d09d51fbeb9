/* SPDX-License-Identifier: MIT */
#include "job/gpu_health.h"
#include "unit_test.h"

static const struct health_settings settings = { .recover_ms = 60000, .unclean_ms = 30000 };

/* A GPU under watch; each observation comes a second after the one before. */
struct gpu {
    struct gpu_health health;
    struct gpu_trouble has;
    int64_t now_ms;
};

static enum gpu_verdict observe(struct gpu *gpu, struct gpu_observation observe)
{
    struct gpu_trouble fresh = { 0 };
    gpu->now_ms += 1000;
    observe.now_ms = gpu->now_ms;
    enum gpu_verdict verdict = gpu_health_evaluate(&gpu->health, &settings, &gpu->has, &observe, &fresh);
    if (verdict == HEALTH_DRAIN)
        gpu->has = fresh;
    if (verdict == HEALTH_RETURN)
        gpu->has = (struct gpu_trouble){ 0 };
    return verdict;
}

/* How many looks it takes until it returns; 1000: it does not. */
static int looks_to_return(struct gpu *gpu, struct gpu_observation with)
{
    int count = 1;
    while (count < 1000 && observe(gpu, with) != HEALTH_RETURN)
        count++;
    return count;
}

static enum gpu_fault after_xid(struct gpu *gpu, uint32_t number)
{
    struct gpu_xid xid = { number, gpu->now_ms + 1 };
    (void)observe(gpu, (struct gpu_observation){ .xids = &xid, .n_xids = 1, .energy_mj = 5000 });
    return gpu->has.fault;
}

TEST(an_error_of_the_device_drains_and_one_of_the_application_does_not)
{
    const uint32_t numbers[] = { 13, 31, 43, 45, 63, 999 };
    struct gpu gpu = { 0 };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_int_equal(after_xid(&gpu, numbers[i]), GPU_FAULT_NONE);
    assert_int_equal(after_xid(&gpu, 94), GPU_FAULT_CONTAINED);
    assert_int_equal(after_xid(&gpu, 48), GPU_FAULT_RESET);
    assert_int_equal(gpu.has.xid, 48);
    assert_int_equal(after_xid(&gpu, 79), GPU_FAULT_DEVICE);
    assert_int_equal(after_xid(&gpu, 94), GPU_FAULT_DEVICE);
    assert_int_equal(gpu.has.xid, 79);
}

TEST(of_several_errors_the_worst_counts)
{
    struct gpu gpu = { 0 };
    const struct gpu_xid xids[] = { { 13, 1 }, { 95, 2 }, { 48, 3 }, { 45, 4 } };
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .xids = xids, .n_xids = 4 }), HEALTH_DRAIN);
    assert_int_equal(gpu.has.xid, 95);
}

TEST(an_error_is_judged_once)
{
    struct gpu gpu = { 0 };
    const struct gpu_xid xid = { 79, 500 };
    const struct gpu_observation same = { .xids = &xid, .n_xids = 1 };
    assert_int_equal(observe(&gpu, same), HEALTH_DRAIN);
    gpu.has = (struct gpu_trouble){ 0 }; // somebody resumed it
    assert_int_equal(observe(&gpu, same), HEALTH_STAYS);
}

TEST(an_error_after_the_clock_was_set_back_is_judged)
{
    struct gpu gpu = { 0 };
    const struct gpu_xid xids[] = { { 31, 5000, 10 }, { 79, 40, 20 } };
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .xids = xids, .n_xids = 1 }), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .xids = xids, .n_xids = 2 }), HEALTH_DRAIN);
    assert_int_equal(gpu.has.xid, 79);
    gpu.has = (struct gpu_trouble){ 0 };
    const struct gpu_observation fewer = { .xids = &xids[1], .n_xids = 1 };
    assert_int_equal(observe(&gpu, fewer), HEALTH_STAYS);
}

TEST(a_contained_error_is_over_when_the_gpu_was_well_and_unused_for_long)
{
    struct gpu gpu = { 0 };
    (void)after_xid(&gpu, 94);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .is_held = true }), 1000);
    assert_int_equal(gpu_health_next_ms(&gpu.health, &settings, gpu.has.fault), INT64_MAX);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ 0 }), HEALTH_STAYS);
    assert_int_equal(gpu_health_next_ms(&gpu.health, &settings, gpu.has.fault), gpu.now_ms + 60000);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ 0 }), 60);
}

TEST(a_gpu_that_is_not_clean_does_not_return)
{
    struct gpu gpu = { 0 };
    (void)after_xid(&gpu, 94);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .is_unclean = true }), 1000);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ 0 }), 61);
}

TEST(a_second_error_begins_the_wait_anew)
{
    struct gpu gpu = { 0 };
    (void)after_xid(&gpu, 94);
    for (int i = 0; i < 50; i++)
        (void)observe(&gpu, (struct gpu_observation){ 0 });
    (void)after_xid(&gpu, 94);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ 0 }), 61);
}

/* A driver that says what it wants needs no error to be believed, and shows that it was done. */
TEST(a_gpu_whose_driver_asks_for_a_reset_is_drained_until_it_asks_no_more)
{
    struct gpu gpu = { 0 };
    const struct gpu_observation wanted = {
        .is_recovery_known = true, .is_recovery_wanted = true, .energy_mj = 5000
    };
    const struct gpu_observation fine = { .is_recovery_known = true, .energy_mj = 9000 };
    assert_int_equal(observe(&gpu, fine), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, wanted), HEALTH_DRAIN);
    assert_int_equal(gpu.has.fault, GPU_FAULT_RESET);
    assert_int_equal(looks_to_return(&gpu, wanted), 1000);
    assert_int_equal(looks_to_return(&gpu, fine), 61);
    (void)after_xid(&gpu, 119);
    assert_int_equal(looks_to_return(&gpu, fine), 1000); // it never asked
    (void)observe(&gpu, wanted);
    assert_int_equal(looks_to_return(&gpu, fine), 61);
}

TEST(a_driver_that_goes_on_asking_drains_no_gpu_that_somebody_resumed)
{
    struct gpu gpu = { 0 };
    const struct gpu_observation wanted = { .is_recovery_known = true, .is_recovery_wanted = true };
    assert_int_equal(observe(&gpu, wanted), HEALTH_DRAIN);
    gpu.has = (struct gpu_trouble){ 0 };
    assert_int_equal(observe(&gpu, wanted), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .is_recovery_known = true }), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, wanted), HEALTH_DRAIN);
}

TEST(a_gpu_that_needs_a_reset_returns_only_after_one)
{
    struct gpu gpu = { 0 };
    (void)after_xid(&gpu, 95);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .energy_mj = 6000 }), 1000);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ 0 }), 1000);
    (void)observe(&gpu, (struct gpu_observation){ .energy_mj = 10 });
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .energy_mj = 9000 }), 60);
}

TEST(an_error_of_the_hardware_waits_for_somebody)
{
    struct gpu gpu = { 0 };
    (void)after_xid(&gpu, 64);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .energy_mj = 10 }), 1000);
}

TEST(a_gpu_that_vanished_returns_when_it_is_seen_for_some_seconds)
{
    struct gpu gpu = { 0 };
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .is_lost = true }), HEALTH_DRAIN);
    assert_int_equal(gpu.has.fault, GPU_FAULT_LOST);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .is_lost = true }), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ 0 }), HEALTH_STAYS);
    assert_int_equal(observe(&gpu, (struct gpu_observation){ .is_lost = true }), HEALTH_STAYS);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .is_held = true }), 4);
}

TEST(what_a_job_leaves_is_a_fault_when_it_lasts)
{
    struct gpu gpu = { 0 };
    int count = 1;
    while (observe(&gpu, (struct gpu_observation){ .is_unclean = true }) != HEALTH_DRAIN)
        count++;
    assert_int_equal(count, 31);
    assert_int_equal(gpu.has.fault, GPU_FAULT_UNCLEAN);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ .is_unclean = true }), 1000);
    assert_int_equal(looks_to_return(&gpu, (struct gpu_observation){ 0 }), 61);
}

TEST(what_goes_soon_is_no_fault)
{
    struct gpu gpu = { 0 };
    (void)observe(&gpu, (struct gpu_observation){ .is_unclean = true });
    assert_int_equal(gpu_health_next_ms(&gpu.health, &settings, gpu.has.fault), gpu.now_ms + 30000);
    for (int i = 0; i < 28; i++)
        (void)observe(&gpu, (struct gpu_observation){ .is_unclean = true });
    (void)observe(&gpu, (struct gpu_observation){ 0 });
    for (int i = 0; i < 29; i++)
        assert_int_equal(observe(&gpu, (struct gpu_observation){ .is_unclean = true }), HEALTH_STAYS);
}
