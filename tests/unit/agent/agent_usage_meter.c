/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "agent/usage/meter.h"
#include "base/memory.h"
#include "job/event.h"
#include "unit_test.h"

#define GIB (UINT64_C(1) << 30)
#define ALL (GPU_MEMORY_USED | GPU_UTILIZATION | GPU_POWER | GPU_POWER_LIMIT | GPU_ENERGY | GPU_PROCESSES)

static char uuids[4][8] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3" };

/* A box with four GPUs on which the test turns the values. */
struct box {
    struct usage_meter meter;
    struct record_list grants;
    struct gpu_state gpus[4];
    struct gpu_process process; // of the attempt, where a test puts it
    struct usage_host host;
    int64_t boot_ms;
    struct job_usage *usage; // as read last
};

static int setup(void **state)
{
    struct box *box = xcalloc(1, sizeof(*box));
    for (uint32_t i = 0; i < 4; i++)
        box->gpus[i] = (struct gpu_state){
            .index = i, .uuid = uuids[i], .memory_bytes = 80 * GIB, .valid = ALL, .power_limit_mw = 400000
        };
    box->process = (struct gpu_process){
        .pid = 7, .start = 70, .is_memory_known = 1, .memory_bytes = 10 * GIB, .job = 42, .attempt = 1
    };
    box->boot_ms = 100000;
    *state = box;
    return 0;
}

static int teardown(void **state)
{
    struct box *box = *state;
    usage_meter_clear(&box->meter);
    gpu_grants_clear(&box->grants);
    job_usage_free(box->usage);
    free(box);
    return 0;
}

#define CASE(name, box) TEST_ON(name, struct box *box, setup, teardown)

static void grant(struct box *box, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        (void)gpu_grants_add(&box->grants, i, uuids[i], 0, 0);
    usage_meter_init(&box->meter, 42, 1, n, box->boot_ms);
}

static struct job_usage *add(struct box *box, int64_t passed_ms)
{
    struct record_list gpus = { box->gpus, 4 };
    box->boot_ms += passed_ms;
    struct usage_sample sample = {
        .boot_ms = box->boot_ms, .wall_ms = 5000000 + box->boot_ms, .gpus = &gpus, .host = box->host
    };
    usage_meter_add(&box->meter, &box->grants, &sample);
    job_usage_free(box->usage);
    box->usage = usage_meter_read(&box->meter);
    return box->usage;
}

CASE(before_the_first_sample_there_is_no_usage, box)
{
    grant(box, 1);
    assert_null(usage_meter_read(&box->meter));
}

CASE(utilization_is_the_mean_over_time_and_gpus, box)
{
    grant(box, 2);
    box->gpus[0].utilization_percent = 100;
    (void)add(box, 1000);
    box->gpus[0].utilization_percent = 0;
    box->gpus[1].utilization_percent = 40;
    const struct job_usage *usage = add(box, 3000);
    assert_int_equal(usage->sampled_ms, 4000);
    assert_int_equal(usage->utilization_milli, (1000 * 1 + 400 * 3) / 8);
    assert_int_equal(usage->utilization_peak_milli, 1000);
}

CASE(what_was_not_measured_is_not_claimed, box)
{
    grant(box, 1);
    box->gpus[0].valid = 0;
    const struct job_usage *usage = add(box, 1000);
    assert_int_equal(usage->valid, 0);
    assert_int_equal(usage->idle_since_ms, 0);
    struct usage_bucket bucket;
    assert_true(usage_bucket_read(usage, 0, &bucket));
    assert_int_equal(bucket.busy, USAGE_NOT_KNOWN);
}

static void put_on(struct box *box, uint32_t gpu)
{
    box->gpus[gpu].processes = (struct record_list){ &box->process, 1 };
}

CASE(the_first_use_is_its_first_process_on_a_gpu_of_its_own, box)
{
    grant(box, 2);
    assert_false(usage_first_use_ms(add(box, 1000)).is_known);
    put_on(box, 2); // not its own
    assert_false(usage_first_use_ms(add(box, 1000)).is_known);
    put_on(box, 1);
    assert_int_equal(usage_first_use_ms(add(box, 1500)).value, 3500);
    assert_int_equal(usage_first_use_ms(add(box, 1000)).value, 3500);
}

CASE(time_in_which_it_was_paused_is_none_before_its_first_use, box)
{
    grant(box, 1);
    (void)add(box, 1000);
    box->host.is_paused = true;
    (void)add(box, 4000);
    box->host.is_paused = false;
    put_on(box, 0);
    assert_int_equal(usage_first_use_ms(add(box, 1000)).value, 2000);
}

CASE(a_first_use_during_a_gap_is_not_known, box)
{
    grant(box, 1);
    (void)add(box, 1000);
    put_on(box, 0);
    assert_false(usage_first_use_ms(add(box, 6000)).is_known);
    assert_false(usage_first_use_ms(add(box, 1000)).is_known);
}

CASE(a_long_gap_counts_as_a_short_one, box)
{
    grant(box, 1);
    assert_int_equal(add(box, 60000)->sampled_ms, 1000);
    assert_int_equal(add(box, 60000)->sampled_ms, 6000);
}

CASE(memory_is_its_own_where_processes_are_told_apart, box)
{
    grant(box, 1);
    box->gpus[0].memory_used_bytes = 60 * GIB;
    box->gpus[0].processes = (struct record_list){ &box->process, 1 };
    assert_int_equal(add(box, 1000)->gpu_memory_peak, 10 * GIB);
    box->process.memory_bytes = 5 * GIB;
    const struct job_usage *usage = add(box, 1000);
    assert_int_equal(usage->gpu_memory_peak, 10 * GIB);
    assert_int_equal(usage->gpu_memory_size, 80 * GIB);
}

CASE(memory_is_the_gpus_where_they_are_not, box)
{
    grant(box, 1);
    box->gpus[0].memory_used_bytes = 60 * GIB;
    box->gpus[0].processes = (struct record_list){ &box->process, 1 };
    box->process.is_memory_known = 0;
    assert_int_equal(add(box, 1000)->gpu_memory_peak, 60 * GIB);
}

CASE(of_a_shared_gpu_another_jobs_memory_does_not_count, box)
{
    gpu_grants_add(&box->grants, 0, uuids[0], 1, 20 * GIB)->share = 250;
    usage_meter_init(&box->meter, 42, 1, 1, box->boot_ms);
    box->gpus[0].memory_used_bytes = 60 * GIB;
    box->process.job = 43;
    box->gpus[0].processes = (struct record_list){ &box->process, 1 };
    assert_int_equal(add(box, 1000)->gpu_memory_peak, 0);
}

static struct job_usage *use(struct box *box, uint64_t bytes, int64_t passed_ms)
{
    box->process.memory_bytes = bytes;
    box->gpus[0].processes = (struct record_list){ &box->process, 1 };
    return add(box, passed_ms);
}

CASE(time_above_its_share_counts_from_the_first_sample_and_without_interruption, box)
{
    gpu_grants_add(&box->grants, 0, uuids[0], 1, 20 * GIB);
    usage_meter_init(&box->meter, 42, 1, 1, box->boot_ms);
    usage_meter_enforce(&box->meter, "time", "requested");
    const struct job_usage *usage = use(box, 20 * GIB, 1000);
    assert_int_equal(usage->gpu_memory_cap, 20 * GIB);
    assert_int_equal(usage->gpu_memory_over, 0);
    usage = use(box, 20 * GIB + 1, 1000);
    assert_int_equal(usage->gpu_memory_over, 20 * GIB + 1);
    assert_int_equal(usage->over_ms, 0);
    assert_int_equal(use(box, 21 * GIB, 1000)->over_ms, 1000);
    assert_int_equal(use(box, 22 * GIB, 2000)->over_ms, 3000);
    assert_int_equal(use(box, 20 * GIB, 1000)->over_ms, 0);
    assert_int_equal(use(box, 21 * GIB, 1000)->over_ms, 0);
}

CASE(only_memory_that_is_known_to_be_its_own_exceeds_a_share, box)
{
    gpu_grants_add(&box->grants, 0, uuids[0], 1, 20 * GIB);
    usage_meter_init(&box->meter, 42, 1, 1, box->boot_ms);
    usage_meter_enforce(&box->meter, "time", "requested");
    box->gpus[0].memory_used_bytes = 60 * GIB;
    box->process.is_memory_known = 0;
    assert_int_equal(use(box, 30 * GIB, 1000)->gpu_memory_over, 0);
    box->process.is_memory_known = 1;
    box->process.job = 43;
    assert_int_equal(use(box, 30 * GIB, 1000)->gpu_memory_over, 0);
    box->process.job = 42;
    usage_meter_enforce(&box->meter, NULL, NULL);
    assert_int_equal(use(box, 30 * GIB, 1000)->gpu_memory_over, 0);
    usage_meter_enforce(&box->meter, "time", "requested");
    assert_int_equal(use(box, 30 * GIB, 1000)->gpu_memory_over, 30 * GIB);
}

CASE(energy_is_the_difference_of_the_counter, box)
{
    grant(box, 1);
    box->gpus[0].energy_mj = 1000000;
    box->gpus[0].power_mw = 200000;
    assert_int_equal(add(box, 1000)->energy_mj, 200000);
    box->gpus[0].energy_mj = 1500000;
    assert_int_equal(add(box, 60000)->energy_mj, 700000);
    box->gpus[0].energy_mj = 10; // the driver was loaded anew
    assert_int_equal(add(box, 1000)->energy_mj, 900000);
}

CASE(without_a_counter_energy_is_power_times_time_and_its_share, box)
{
    gpu_grants_add(&box->grants, 0, uuids[0], 1, 20 * GIB)->share = 250;
    usage_meter_init(&box->meter, 42, 1, 1, box->boot_ms);
    box->gpus[0].valid = GPU_POWER;
    box->gpus[0].power_mw = 200000;
    assert_int_equal(add(box, 1000)->energy_mj, 50000);
}

CASE(it_is_idle_only_while_all_its_gpus_are, box)
{
    grant(box, 2);
    const struct job_usage *usage = add(box, 1000);
    int64_t since_ms = usage->idle_since_ms;
    assert_int_equal(since_ms, 5000000 + box->boot_ms);
    usage = add(box, 1000);
    assert_int_equal(usage->idle_since_ms, since_ms);
    assert_int_equal(usage->idle_gpu_ms, 4000);
    box->gpus[1].utilization_percent = 50;
    usage = add(box, 1000);
    assert_int_equal(usage->idle_since_ms, 0);
    assert_int_equal(usage->idle_gpu_ms, 5000);
}

CASE(loading_data_is_not_idling, box)
{
    grant(box, 1);
    box->host.is_cpu_known = true;
    box->host.cpu_ms = 900;
    assert_int_equal(add(box, 1000)->idle_since_ms, 0);
    box->host.cpu_ms = 910;
    assert_int_not_equal(add(box, 1000)->idle_since_ms, 0);
    box->gpus[0].memory_used_bytes = GIB;
    assert_int_equal(add(box, 1000)->idle_since_ms, 0);
}

CASE(idle_time_is_what_was_seen_without_a_break, box)
{
    grant(box, 1);
    assert_int_equal(add(box, 1000)->idle_ms, 0); // what was before the first sample does not count
    assert_int_equal(add(box, 1000)->idle_ms, 1000);
    assert_int_equal(add(box, 7000)->idle_ms, 6000); // an agent that was away
    box->gpus[0].utilization_percent = 50;
    assert_int_equal(add(box, 1000)->idle_ms, 0);
    box->gpus[0].utilization_percent = 0;
    assert_int_equal(add(box, 1000)->idle_ms, 0);
    assert_int_equal(add(box, 1000)->idle_ms, 1000);
    assert_int_equal(add(box, 61000)->idle_ms, 0); // who knows what it did in that time
    assert_int_equal(add(box, 1000)->idle_ms, 1000);
}

static uint64_t gpu_idle_ms(const struct box *box, size_t i)
{
    assert_int_equal(box->usage->gpus.count, 2);
    return ((const struct usage_gpu *)box->usage->gpus.items)[i].idle_ms;
}

CASE(each_gpu_is_idle_by_itself, box)
{
    grant(box, 2);
    box->host.is_cpu_known = true;
    box->gpus[0].utilization_percent = 90;
    for (int i = 0; i < 4; i++) {
        box->host.cpu_ms += 900; // the job is at work
        (void)add(box, 1000);
    }
    assert_int_equal(gpu_idle_ms(box, 0), 0);
    assert_int_equal(gpu_idle_ms(box, 1), 3000);
    assert_int_equal(box->usage->idle_ms, 0);
    box->host.is_paused = true;
    (void)add(box, 1000);
    assert_int_equal(gpu_idle_ms(box, 1), 3000);
    box->host.is_paused = false;
    box->gpus[1].is_lost = 1;
    (void)add(box, 1000);
    assert_int_equal(gpu_idle_ms(box, 1), 0);
    box->gpus[1].is_lost = 0;
    (void)add(box, 1000);
    assert_int_equal(gpu_idle_ms(box, 1), 1000);
    (void)add(box, 61000);
    assert_int_equal(gpu_idle_ms(box, 1), 0);
}

CASE(a_paused_job_does_not_get_more_idle, box)
{
    grant(box, 1);
    (void)add(box, 1000);
    (void)add(box, 1000);
    box->host.is_paused = true;
    assert_int_equal(add(box, 1000)->idle_ms, 1000);
    assert_int_equal(add(box, 5000)->idle_ms, 1000);
    box->host.is_paused = false;
    assert_int_equal(add(box, 1000)->idle_ms, 2000);
}

CASE(a_gpu_of_unknown_load_is_not_idle, box)
{
    grant(box, 2);
    (void)add(box, 1000);
    assert_int_equal(add(box, 1000)->idle_ms, 1000);
    box->gpus[1].valid = ALL & ~(uint32_t)GPU_UTILIZATION;
    assert_int_equal(add(box, 1000)->idle_ms, 0);
    assert_int_equal(add(box, 1000)->idle_since_ms, 0);
    box->gpus[1].valid = ALL;
    box->gpus[0].is_lost = 1;
    assert_int_equal(add(box, 1000)->idle_since_ms, 0);
}

CASE(a_job_without_gpus_is_never_idle, box)
{
    grant(box, 0);
    box->host = (struct usage_host){ .is_memory_known = true, .memory = GIB };
    const struct job_usage *usage = add(box, 1000);
    assert_int_equal(usage->idle_since_ms, 0);
    assert_int_equal(usage->valid, USAGE_MEMORY);
    assert_int_equal(usage->memory_peak, GIB);
    assert_null(usage->timeline);
}

CASE(a_gpu_it_was_not_given_is_named_once, box)
{
    grant(box, 1);
    box->gpus[0].processes = (struct record_list){ &box->process, 1 };
    box->gpus[3].processes = (struct record_list){ &box->process, 1 };
    assert_string_equal(add(box, 1000)->stray, "3");
    box->gpus[1].processes = (struct record_list){ &box->process, 1 };
    assert_string_equal(add(box, 1000)->stray, "3,1");
}

CASE(a_process_of_an_earlier_attempt_is_not_its_own, box)
{
    grant(box, 1);
    box->process.attempt = 2;
    box->gpus[3].processes = (struct record_list){ &box->process, 1 };
    assert_null(add(box, 1000)->stray);
}

CASE(the_timeline_shows_every_second_then_every_other, box)
{
    struct usage_bucket bucket;
    grant(box, 1);
    box->gpus[0].memory_used_bytes = 40 * GIB;
    for (uint32_t i = 0; i < 61; i++) {
        box->gpus[0].utilization_percent = i;
        box->gpus[0].power_mw = 100000;
        (void)add(box, 1000);
    }
    assert_int_equal(box->usage->bucket_s, 2);
    assert_true(usage_bucket_read(box->usage, 0, &bucket));
    assert_int_equal(bucket.busy, 1);
    assert_int_equal(bucket.memory, 50);
    assert_int_equal(bucket.power, 25);
    assert_true(usage_bucket_read(box->usage, 30, &bucket));
    assert_int_equal(bucket.busy, 60);
    assert_false(usage_bucket_read(box->usage, 31, &bucket));
}

CASE(a_meter_comes_back_from_its_record, box)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct usage_meter again;
    grant(box, 2);
    box->gpus[0].energy_mj = 1000;
    box->gpus[1].utilization_percent = 100;
    (void)add(box, 700);
    record_encode(&usage_meter_record, &box->meter, &bytes);
    assert_int_equal(record_decode(&usage_meter_record, bytes.bytes, bytes.length, &again, NULL), 0);
    usage_meter_clear(&box->meter);
    box->meter = again;
    box->gpus[0].energy_mj = 3000;
    const struct job_usage *usage = add(box, 1000);
    assert_int_equal(usage->energy_mj, 2000);
    assert_int_equal(usage->sampled_ms, 1700);
    assert_int_equal(usage->utilization_milli, 500);
}
