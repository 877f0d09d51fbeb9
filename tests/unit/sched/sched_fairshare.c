/* SPDX-License-Identifier: MIT */
#include "sched/queue/fairshare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/cluster/cluster.h"

#define HOUR_MS   3600000
#define HALF_LIFE (24 * HOUR_MS)

static int open_shares(void **state)
{
    struct fairshare *fairshare = calloc(1, sizeof(*fairshare));
    fairshare_init(fairshare, HALF_LIFE);
    *state = fairshare;
    return 0;
}

static int close_shares(void **state)
{
    fairshare_clear(*state);
    free(*state);
    return 0;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * (1 + fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* One attempt of whole GPUs begins (jobs 1) or is over (-1). */
static void run(struct fairshare *f, struct account *account, int64_t now_ms, int jobs, int gpus)
{
    fairshare_count(f, account, now_ms, jobs, 0);
    fairshare_charge(f, account, now_ms, (int64_t)jobs * gpus * 1000);
}

static void held_time_never_falls(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 1000, false);
    run(f, account, 1000, 1, 2);
    assert_near(fairshare_held(account, 11000), 20);
    assert_near(fairshare_held(account, 500), 0); // a clock that is behind
    run(f, account, 11000, -1, 2);
    assert_near(fairshare_held(account, HALF_LIFE), 20); // it does not decay
    run(f, account, HALF_LIFE, 1, 1);
    assert_near(fairshare_held(account, HALF_LIFE + 1000), 21);
}

static void usage_is_halved_in_a_half_life(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 1000, false);
    account->usage = 800;
    assert_near(fairshare_usage(f, account, HALF_LIFE), 400);
    assert_near(fairshare_usage(f, account, 3 * (int64_t)HALF_LIFE), 100);
    assert_near(fairshare_usage(f, account, -5), 800);
}

static void running_gpus_count_while_they_run(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 1000, false);
    run(f, account, 0, 1, 4);
    assert_near(
        fairshare_usage(f, account, 1000), 4.0 * HALF_LIFE / 1000 / M_LN2 * (1 - exp2(-1000.0 / HALF_LIFE)));
    run(f, account, 1000, -1, 4);
    double used = fairshare_usage(f, account, 1000);
    assert_true(used > 3.99 && used < 4);
    /* For ever: as much is gained as is lost. */
    run(f, account, 1000, 1, 2);
    assert_near(fairshare_usage(f, account, 100 * (int64_t)HALF_LIFE), 2.0 * HALF_LIFE / 1000 / M_LN2);
}

static void the_closed_form_equals_small_steps_however_it_is_cut(void **state)
{
    struct fairshare *f = *state;
    struct account *whole = fairshare_account(f, 1, false), *cut = fairshare_account(f, 2, false);
    run(f, whole, 0, 1, 3);
    run(f, cut, 0, 1, 3);
    double stepped = 0;
    for (int64_t t = 0; t < HALF_LIFE; t += 60000) {
        stepped = (stepped + 3 * 30.0) * exp2(-60000.0 / HALF_LIFE) + 3 * 30.0;
        fairshare_charge(f, cut, t + 60000, 0);
    }
    assert_near(fairshare_usage(f, whole, HALF_LIFE), fairshare_usage(f, cut, HALF_LIFE));
    assert_true(fabs(stepped / fairshare_usage(f, whole, HALF_LIFE) - 1) < 1e-5);
}

static void accounts_are_found_again_and_groups_are_not_users(void **state)
{
    struct fairshare *f = *state;
    f->user_limits.jobs = 7;
    struct account *first = fairshare_account(f, 0, false);
    for (uint32_t id = 1; id < 1000; id++)
        fairshare_account(f, id, id % 2 != 0);
    assert_ptr_equal(fairshare_account(f, 0, false), first);
    assert_ptr_not_equal(fairshare_account(f, 0, true), first);
    assert_int_equal(first->limits.jobs, 7);
    assert_int_equal(fairshare_account(f, 0, true)->limits.jobs, 0);
    assert_int_equal(f->n_accounts, 1001);
}

static void the_factor_is_0_at_ones_share_and_rises_by_1_when_use_doubles(void **state)
{
    struct fairshare *f = *state;
    struct account *a = fairshare_account(f, 1, false), *b = fairshare_account(f, 2, false);
    a->usage = b->usage = 1e9;
    fairshare_count(f, a, 0, 0, 1);
    fairshare_count(f, b, 0, 0, 1);
    assert_near(fairshare_factor(f, a, 0), 0);
    struct account *other = fairshare_account(f, 3, false); // without jobs: changes nothing
    other->usage = 2e9 + 3600;
    assert_near(fairshare_factor(f, other, 0), 1);
    other->shares = 2;
    fairshare_settle(f, 0, HALF_LIFE);
    assert_true(fabs(fairshare_factor(f, other, 0)) < 1e-5);
    other->usage = 0;
    double alone = fairshare_factor(f, other, 0);
    assert_true(alone < -10 && alone > -30); // ahead, not infinitely
}

static void somebody_new_on_an_idle_cluster_is_at_its_share(void **state)
{
    struct fairshare *f = *state;
    assert_near(fairshare_factor(f, fairshare_account(f, 1, false), 5), 0);
}

/* --- the totals against a walk over all accounts --- */

static double naive_factor(const struct fairshare *f, const struct account *account, int64_t now_ms)
{
    double usage = 0, shares = 0;
    for (const struct account *other = f->first; other != NULL; other = other->next) {
        if (other->is_group != account->is_group || (other->running == 0 && other->waiting == 0))
            continue;
        usage += fairshare_usage(f, other, now_ms);
        shares += other->shares;
    }
    double mean = shares > 0 ? usage / shares : 0;
    return log2((fairshare_usage(f, account, now_ms) / account->shares + 3600) / (mean + 3600));
}

static void random_histories_agree_with_a_walk_over_all_accounts(void **state)
{
    struct fairshare *f = *state;
    uint64_t seed = 1;
    int64_t now_ms = 1700000000000;
    for (unsigned step = 0; step < 20000; step++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t draw = (uint32_t)(seed >> 33);
        now_ms += draw % 100 == 0 ? 30 * (int64_t)HALF_LIFE : draw % 100000;
        struct account *account = fairshare_account(f, draw / 7 % 12, draw / 3 % 2 != 0);
        int kind = draw / 11 % 5;
        if (kind == 0) {
            fairshare_count(f, account, now_ms, 0, 1);
        } else if (kind == 1 && account->waiting > 0) {
            fairshare_count(f, account, now_ms, 0, -1);
        } else if (kind == 2) {
            run(f, account, now_ms, 1, 1 + draw % 3);
        } else if (kind >= 3 && account->running > 0) {
            int64_t gives =
                account->running == 1 ? account->gpu_milli : account->gpu_milli / account->running;
            fairshare_charge(f, account, now_ms, -gives);
            fairshare_count(f, account, now_ms, -1, 0);
        }
        if (draw % 1000 == 1) {
            account->shares = 1 + draw % 4;
            fairshare_settle(f, now_ms, HALF_LIFE * (1 + draw % 3));
        }
        assert_true(fabs(fairshare_factor(f, account, now_ms) - naive_factor(f, account, now_ms)) < 1e-6);
    }
}

static bool is_limited(
    struct fairshare *f, struct account *account, int64_t now_ms, uint32_t gpu_milli, const char *sentence)
{
    char text[160] = "";
    bool is = fairshare_is_limited(f, account, now_ms, gpu_milli, text, sizeof(text));
    assert_string_equal(text, sentence);
    return is;
}

static void each_limit_is_told_as_a_sentence(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 1, false);
    assert_false(is_limited(f, account, 0, 1000000, ""));
    account->limits = (struct account_limits){ .jobs = 4, .gpu_milli = 8000 };
    for (int i = 0; i < 3; i++)
        run(f, account, 0, 1, 2);
    assert_false(is_limited(f, account, 0, 2000, ""));
    assert_true(is_limited(f, account, 0, 4000, "GPUs: 6 of at most 8 in use, too many to add this job's"));
    fairshare_charge(f, account, 0, 2000);
    assert_true(is_limited(f, account, 0, 250, "GPUs: 8 of at most 8 in use"));
    assert_false(is_limited(f, account, 0, 0, ""));
    fairshare_count(f, account, 0, 1, 0);
    assert_true(is_limited(f, account, 0, 0, "running jobs: 4 of at most 4"));
}

static void gpu_hours_come_back_by_decay_alone_and_when_is_known(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 1, false);
    account->limits.gpu_seconds = 120 * 3600;
    account->usage = 120 * 3600 * exp2(192.0 / 60 / 24);
    assert_true(
        is_limited(f, account, 0, 1000, "GPU-hours: 131.6 of at most 120 used; in 3h12m the job fits again"));
    int64_t ends_ms = fairshare_limit_ends(f, account, 0);
    assert_int_equal(ends_ms / 1000, 192 * 60);
    assert_false(is_limited(f, account, ends_ms, 1000, ""));
    assert_int_equal(fairshare_limit_ends(f, account, ends_ms), TIME_NEVER);
    /* What runs slows it down, or makes it impossible. */
    run(f, account, 0, 1, 1);
    int64_t later_ms = fairshare_limit_ends(f, account, 0);
    assert_true(later_ms > ends_ms);
    assert_false(is_limited(f, account, later_ms, 1000, ""));
    assert_true(fairshare_usage(f, account, later_ms - 2000) > account->limits.gpu_seconds);
    fairshare_charge(f, account, 0, 3000);
    assert_int_equal(fairshare_limit_ends(f, account, 0), TIME_NEVER);
    assert_true(is_limited(f, account, 0, 1000, "GPU-hours: 131.6 of at most 120 used"));
}

static void usage_outlives_a_restart_and_decays_meanwhile(void **state)
{
    struct fairshare *f = *state;
    struct account *account = fairshare_account(f, 7, true);
    run(f, account, 1000, 1, 2);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    account_encode(f, account, HOUR_MS, &bytes);
    struct fairshare again;
    fairshare_init(&again, HALF_LIFE);
    assert_int_equal(account_decode(&again, bytes.bytes, bytes.length, NULL), 0);
    struct account *copy = fairshare_account(&again, 7, true);
    assert_true(fabs(fairshare_usage(&again, copy, HOUR_MS) - fairshare_usage(f, account, HOUR_MS)) < 0.001);
    assert_true(
        fairshare_usage(&again, copy, HOUR_MS + HALF_LIFE) < 0.5001 * fairshare_usage(&again, copy, HOUR_MS));
    struct error err = { 0 };
    assert_true(account_decode(&again, bytes.bytes, bytes.length - 1, &err) < 0);
    fairshare_clear(&again);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_shares, close_shares)
    const struct CMUnitTest tests[] = {
        CASE(held_time_never_falls),
        CASE(usage_is_halved_in_a_half_life),
        CASE(running_gpus_count_while_they_run),
        CASE(the_closed_form_equals_small_steps_however_it_is_cut),
        CASE(accounts_are_found_again_and_groups_are_not_users),
        CASE(the_factor_is_0_at_ones_share_and_rises_by_1_when_use_doubles),
        CASE(somebody_new_on_an_idle_cluster_is_at_its_share),
        CASE(random_histories_agree_with_a_walk_over_all_accounts),
        CASE(each_limit_is_told_as_a_sentence),
        CASE(gpu_hours_come_back_by_decay_alone_and_when_is_known),
        CASE(usage_outlives_a_restart_and_decays_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
