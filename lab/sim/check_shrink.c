/* SPDX-License-Identifier: MIT */
/* Delta debugging (Zeller and Hildebrandt, IEEE TSE 28, 2002): removes halves, then quarters, down to single
 * elements, while the case still fails; over jobs and events until nothing more can be removed. */
#include <string.h>

#include "lab/sim/check_run.h"

struct shrinker {
    const struct check_spoiler *spoiler;
    struct error first; // what was wrong with the whole case
};

/* Sentences alike but for the numbers: the same mistake, not another one met on the way. */
static bool is_alike(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
        a++, b++;
    }
}

static bool still_fails(const struct sim_case *of, const struct shrinker *shrinker)
{
    struct error err = { 0 };
    return check_run(of, shrinker->spoiler, &err) < 0 && is_alike(err.message, shrinker->first.message);
}

static void cut(void *items, size_t *count, size_t size, size_t from, size_t length)
{
    memmove(
        (char *)items + from * size, (char *)items + (from + length) * size, (*count - from - length) * size);
    *count -= length;
}

/* One list of the case; true when something could go. */
static bool shrink_list(struct sim_case *of, bool is_events, const struct shrinker *shrinker)
{
    bool is_smaller = false;
    size_t count = is_events ? of->n_events : of->n_jobs;
    for (size_t piece = count > 1 ? count / 2 : 1; piece > 0 && count > 0; piece /= 2) {
        for (size_t from = 0; from < count;) {
            size_t length = piece < count - from ? piece : count - from;
            struct sim_case without;
            case_copy(&without, of);
            if (is_events)
                cut(without.events, &without.n_events, sizeof(*without.events), from, length);
            else
                cut(without.jobs, &without.n_jobs, sizeof(*without.jobs), from, length);
            bool fails = still_fails(&without, shrinker);
            case_clear(fails ? of : &without);
            if (fails) {
                *of = without;
                count -= length;
                is_smaller = true;
            } else {
                from += length;
            }
        }
    }
    return is_smaller;
}

/* Numbers that need not be there become 0. */
static bool shrink_values(struct sim_case *of, const struct shrinker *shrinker)
{
    bool is_smaller = false;
    for (size_t i = 0; i < of->n_jobs; i++)
        for (size_t value = JOB_PRIORITY; value < CASE_JOB_VALUES; value++) {
            int64_t old = of->jobs[i][value];
            if (old == 0 || value == JOB_GPUS)
                continue;
            of->jobs[i][value] = 0;
            if (still_fails(of, shrinker))
                is_smaller = true;
            else
                of->jobs[i][value] = old;
        }
    return is_smaller;
}

void check_shrink(struct sim_case *of, const struct check_spoiler *spoiler)
{
    struct shrinker shrinker = { .spoiler = spoiler };
    if (check_run(of, spoiler, &shrinker.first) == 0)
        return;
    for (bool goes_on = true; goes_on;) {
        goes_on = shrink_list(of, false, &shrinker);
        goes_on |= shrink_list(of, true, &shrinker);
        goes_on |= shrink_values(of, &shrinker);
    }
}
