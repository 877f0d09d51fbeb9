/* SPDX-License-Identifier: MIT */
/* The time of the core while the wall clock is set back and forth. */
#include "bench.h"

#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

#define WALL   1700000000000LL
#define MINUTE 60000LL
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

TEST(time_is_that_of_the_wall_clock_at_first)
{
    struct core core = { 0 };
    assert_int_equal(core_clock_read(&core, 5000, WALL), WALL);
    assert_int_equal(core_clock_read(&core, 6000, WALL + 1000), WALL + 1000);
    assert_int_equal(core_clock_read(&core, 7000, WALL + 2500), WALL + 2500); // NTP at work
}

TEST(a_clock_that_was_set_back_slows_time_and_never_stops_it)
{
    struct core core = { 0 };
    int64_t boot_ms = 5000, step_ms = -HOUR, before_ms = core_clock_read(&core, boot_ms, WALL);
    for (int64_t passed_ms = 0; passed_ms < 2 * HOUR; passed_ms += 333) {
        int64_t now_ms = core_clock_read(&core, boot_ms + passed_ms, WALL + step_ms + passed_ms);
        if (now_ms < before_ms || now_ms - before_ms > 333)
            fail_msg("after %ld ms: from %ld to %ld", (long)passed_ms, (long)before_ms, (long)now_ms);
        before_ms = now_ms;
    }
    assert_true(before_ms > WALL + HOUR - MINUTE); // half speed
    boot_ms += 2 * HOUR + MINUTE;
    assert_int_equal(
        core_clock_read(&core, boot_ms, WALL + step_ms + boot_ms - 5000), WALL + step_ms + boot_ms - 5000);
}

TEST(an_excursion_of_the_clock_changes_nothing)
{
    struct core core = { 0 };
    (void)core_clock_read(&core, 5000, WALL);
    for (int64_t ms = 0; ms < 4 * MINUTE; ms += 1000)
        assert_int_equal(core_clock_read(&core, 5000 + ms, WALL + ms + DAY), WALL + ms);
    assert_int_equal(core_clock_read(&core, 5000 + 5 * MINUTE, WALL + 5 * MINUTE), WALL + 5 * MINUTE);
}

TEST(a_step_forward_that_lasts_is_followed)
{
    struct core core = { 0 };
    (void)core_clock_read(&core, 5000, WALL);
    assert_int_equal(core_clock_read(&core, 6000, WALL + DAY), WALL + 1000);
    assert_int_equal(core_clock_read(&core, 6000 + 5 * MINUTE, WALL + DAY),
        WALL + 1000 + 5 * MINUTE + (DAY - 1000 - 5 * MINUTE));
    assert_true(core.clock.has_stepped);
}

static void load(struct core *core, const char *text)
{
    core_clock_load(core, (const uint8_t *)text, strlen(text));
}

TEST(a_restart_goes_on_with_the_time_of_the_same_boot_alone)
{
    struct core same = { .options.boot_id = "b00t" }, other = { .options.boot_id = "new" };
    load(&same, "b00t 1700000000000");
    load(&other, "b00t 1700000000000");
    assert_int_equal(core_clock_read(&same, 7000, WALL + 7000 + 2 * HOUR), WALL + 7000);
    assert_int_equal(core_clock_read(&other, 7000, WALL + 7000 + 2 * HOUR), WALL + 7000 + 2 * HOUR);
}

/* It was in step with the boot clock of this machine, which has been up for a day. */
TEST(a_restart_behind_a_clock_that_was_set_back_slows_time_and_never_stops_it)
{
    struct core core = { .options.boot_id = "b00t" };
    load(&core, "b00t 1700000000000");
    core.last_ms = WALL + DAY;
    int64_t before_ms = core_clock_read(&core, DAY + 10, WALL + DAY + 10 - HOUR);
    assert_int_equal(before_ms, WALL + DAY + 10);
    for (int64_t ms = 1000; ms <= MINUTE; ms += 1000)
        before_ms = core_clock_read(&core, DAY + 10 + ms, WALL + DAY + 10 - HOUR + ms);
    assert_int_equal(before_ms, WALL + DAY + 10 + MINUTE / 2);
}

/* What was kept may be older by CLOCK_SMALL_MS than the latest event. */
TEST(a_restart_goes_on_behind_the_latest_event)
{
    struct core core = { .options.boot_id = "b00t", .last_ms = WALL + 1500 };
    load(&core, "b00t 1700000000000");
    assert_int_equal(core_clock_read(&core, 7, WALL + 7), WALL + 1501);
    assert_int_equal(core_clock_read(&core, 107, WALL + 107), WALL + 1551);
}

TEST(a_damaged_offset_is_left_alone)
{
    struct core core = { .options.boot_id = "b00t" };
    load(&core, "b00t");
    load(&core, "");
    load(&core, "b00t x");
    assert_int_equal(core_clock_read(&core, 7000, WALL), WALL);
}

/* Time never goes back, so a start finds times of jobs that are ahead of the wall clock. */
TEST(a_start_behind_the_times_of_its_jobs_goes_on_from_them)
{
    struct core core = { .last_ms = WALL + DAY };
    assert_int_equal(core_clock_read(&core, 5000, WALL), WALL + DAY + 1);
    assert_true(core_clock_read(&core, 5000 + MINUTE, WALL + MINUTE) >= WALL + DAY + MINUTE / 2);
}

static struct job *running_job(int64_t limit_ms)
{
    _cleanup_(job_spec_clear) struct job_spec spec;
    struct error err;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    spec.cwd = xstrdup("/tmp");
    spec.ask.time_limit_ms = limit_ms;
    struct job *job = job_new(1, &spec);
    struct job_event events[] = { { .type = EVENT_SUBMITTED },
        { .type = EVENT_ALLOCATED, .attempt = 1, .token = 7 }, { .type = EVENT_STARTED, .attempt = 1 } };
    events[1].node = xstrdup("box");
    events[1].boot_id = xstrdup("b00t");
    gpu_grants_add(&events[1].gpus, 0, "GPU-0", 0, 0);
    for (size_t i = 0; i < 3; i++) {
        events[i].seq = i + 1;
        events[i].job = 1;
        events[i].wall_ms = (int64_t)i + 1;
        if (job_apply(job, &events[i], &err) < 0)
            fail_msg("%s", err.message);
        job_event_clear(&events[i]);
    }
    return job;
}

/* The limit is on the boot clock, whatever a restart finds on the wall. */
TEST_ON(a_restart_after_a_step_ends_no_job_early, struct bench *bench, bench_open, bench_close)
{
    struct job *job = running_job(HOUR);
    bench->options.boot_id = "b00t";
    struct core *core = core_new(&bench->options, &bench->effects);
    load(core, "b00t 0"); // it was in step with the boot clock, and the job started at once
    core_load_job(core, job);
    core_load_end(core, MINUTE, MINUTE + 2 * HOUR);
    assert_true(core_next_due(core) > HOUR);
    core_free(core);
}
