/* SPDX-License-Identifier: MIT */
/* Jobs in order of their ids, whatever is added and removed. */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "unit_test.h"

#define JOBS  3000U
#define AHEAD 1000U // the highest job that is removed is so far behind the newest

static uint64_t random_state = 1;

static uint32_t chance(uint32_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(random_state >> 33) % below;
}

static struct core_entry *add(struct core *core, uint64_t id)
{
    struct job *job = xcalloc(1, sizeof(*job));
    job->id = id;
    return job_table_add(&core->jobs, job);
}

struct visit {
    const struct core_entry *next;
    size_t count;
};

static void expect_next(void *arg, const struct job *job)
{
    struct visit *visit = arg;
    assert_non_null(visit->next);
    assert_ptr_equal(job, visit->next->job);
    visit->next = visit->next->after;
    visit->count++;
}

/* In pages of `max` jobs, from the first with a higher id than `after`. */
static size_t check_pages(const struct core *core, uint64_t after, size_t max)
{
    struct visit visit = { .next = core->jobs.first };
    while (visit.next != NULL && visit.next->job->id <= after)
        visit.next = visit.next->after;
    do {
        size_t before = visit.count;
        after = core_each_job_after(core, after, max, expect_next, &visit);
        assert_true(visit.count - before <= max);
    } while (after != 0);
    assert_null(visit.next);
    return visit.count;
}

TEST(a_scan_in_pages_visits_each_job_once_in_order)
{
    struct core core = { 0 };
    assert_int_equal(check_pages(&core, 0, 7), 0);
    for (uint64_t id = 2; id <= 2 * JOBS; id += 2) {
        (void)add(&core, id);
        if (chance(10) == 0) // one that the store had is loaded later than newer ones
            if (id > 100 && core_find(&core, id - 51) == NULL)
                (void)add(&core, id - 51);
        struct core_entry *old = core_find(&core, 1 + chance((uint32_t)id));
        if (old != NULL && id - old->job->id > AHEAD / 2)
            job_table_remove(&core.jobs, old);
        if (id % 500 == 0) {
            assert_int_equal(check_pages(&core, 0, 64), core.jobs.map.count);
            (void)check_pages(&core, chance((uint32_t)id), 1 + chance(100));
        }
    }
    assert_true(core.jobs.map.count < JOBS); // some were removed
    job_table_clear(&core.jobs);
}

/* As on a machine that runs for months: as many jobs end as are added. */
TEST(removed_jobs_leave_no_rows_behind_for_ever)
{
    struct core core = { 0 };
    for (uint64_t id = 1; id <= 100; id++)
        (void)add(&core, id);
    for (uint64_t id = 101; id <= 20000; id++) {
        (void)add(&core, id);
        job_table_remove(&core.jobs, core_find(&core, id - 100));
    }
    assert_int_equal(core.jobs.map.count, 100);
    assert_true(core.jobs.n_rows < 1000);
    assert_int_equal(check_pages(&core, 19950, 3), 50);
    for (uint64_t id = 19901; id <= 20000; id++)
        job_table_remove(&core.jobs, core_find(&core, id));
    assert_int_equal(check_pages(&core, 0, 10), 0);
    job_table_clear(&core.jobs);
}
