/* SPDX-License-Identifier: MIT */
#include "sched/queue/fairshare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched/cluster/cluster.h"
#include "unit_test.h"

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

#define CASE(name, f) TEST_ON(name, struct fairshare *f, open_shares, close_shares)

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * (1 + fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* An attempt with whole GPUs begins (jobs 1) or has ended (-1). */
static void run(struct fairshare *f, struct account *account, int64_t now_ms, int jobs, int gpus)
{
    fairshare_count(f, account, now_ms, jobs, 0);
    fairshare_charge(f, account, now_ms, (int64_t)jobs * gpus * 1000, (int64_t)jobs * gpus * 1000);
}

CASE(held_time_never_falls, f)
{
    struct account *account = fairshare_account(f, 1000, ACCOUNT_USER);
    run(f, account, 1000, 1, 2);
    assert_near(fairshare_held(account, 11000), 20);
    assert_near(fairshare_held(account, 500), 0); // a clock that is behind
    run(f, account, 11000, -1, 2);
    assert_near(fairshare_held(account, HALF_LIFE), 20); // it does not decay
    run(f, account, HALF_LIFE, 1, 1);
    assert_near(fairshare_held(account, HALF_LIFE + 1000), 21);
}

CASE(usage_is_halved_in_a_half_life, f)
{
    struct account *account = fairshare_account(f, 1000, ACCOUNT_USER);
    account->usage = 800;
    assert_near(fairshare_usage(f, account, HALF_LIFE), 400);
    assert_near(fairshare_usage(f, account, 3 * (int64_t)HALF_LIFE), 100);
    assert_near(fairshare_usage(f, account, -5), 800);
}

CASE(running_gpus_count_while_they_run, f)
{
    struct account *account = fairshare_account(f, 1000, ACCOUNT_USER);
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

CASE(the_closed_form_equals_small_steps_however_it_is_cut, f)
{
    struct account *whole = fairshare_account(f, 1, ACCOUNT_USER),
                   *cut = fairshare_account(f, 2, ACCOUNT_USER);
    run(f, whole, 0, 1, 3);
    run(f, cut, 0, 1, 3);
    double stepped = 0;
    for (int64_t t = 0; t < HALF_LIFE; t += 60000) {
        stepped = (stepped + 3 * 30.0) * exp2(-60000.0 / HALF_LIFE) + 3 * 30.0;
        fairshare_charge(f, cut, t + 60000, 0, 0);
    }
    assert_near(fairshare_usage(f, whole, HALF_LIFE), fairshare_usage(f, cut, HALF_LIFE));
    assert_true(fabs(stepped / fairshare_usage(f, whole, HALF_LIFE) - 1) < 1e-5);
}

CASE(accounts_are_found_again_and_groups_are_not_users, f)
{
    f->user_limits.jobs = 7;
    struct account *first = fairshare_account(f, 0, ACCOUNT_USER);
    for (uint32_t id = 1; id < 1000; id++)
        fairshare_account(f, id, id % 2 != 0 ? ACCOUNT_GROUP : ACCOUNT_USER);
    assert_ptr_equal(fairshare_account(f, 0, ACCOUNT_USER), first);
    assert_ptr_not_equal(fairshare_account(f, 0, ACCOUNT_GROUP), first);
    assert_int_equal(first->limits.jobs, 7);
    assert_int_equal(fairshare_account(f, 0, ACCOUNT_GROUP)->limits.jobs, 0);
    assert_int_equal(f->accounts.count, 1001);
}

CASE(the_factor_is_0_at_ones_share_and_rises_by_1_when_use_doubles, f)
{
    struct account *a = fairshare_account(f, 1, ACCOUNT_USER), *b = fairshare_account(f, 2, ACCOUNT_USER);
    a->charged = b->charged = 1e9;
    fairshare_count(f, a, 0, 0, 1);
    fairshare_count(f, b, 0, 0, 1);
    assert_near(fairshare_factor(f, a, 0), 0);
    struct account *other = fairshare_account(f, 3, ACCOUNT_USER); // without jobs: changes nothing
    other->charged = 2e9 + 3600;
    assert_near(fairshare_factor(f, other, 0), 1);
    other->shares = 2;
    fairshare_settle(f, 0, HALF_LIFE);
    assert_true(fabs(fairshare_factor(f, other, 0)) < 1e-5);
    other->charged = 0;
    double alone = fairshare_factor(f, other, 0);
    assert_true(alone < -10 && alone > -30); // ahead, not infinitely
}

CASE(somebody_new_on_an_idle_cluster_is_at_its_share, f)
{
    assert_near(fairshare_factor(f, fairshare_account(f, 1, ACCOUNT_USER), 5), 0);
}

/* --- the totals against a walk over all accounts --- */

/* A group without configured shares has those of its users with jobs. */
static double naive_shares(const struct fairshare *f, const struct account *account)
{
    double shares = 0;
    for (const struct account *user = f->first; user != NULL; user = user->next)
        if (user->parent == account && (user->running > 0 || user->waiting > 0))
            shares += user->shares;
    bool has_own = account->kind != ACCOUNT_GROUP || f->has_group_shares;
    return has_own ? account->shares : shares > 0 ? shares : 1;
}

static double naive_factor(const struct fairshare *f, const struct account *account, int64_t now_ms)
{
    double charged = 0, shares = 0;
    for (const struct account *other = f->first; other != NULL; other = other->next) {
        if (other->parent != account->parent || (other->running == 0 && other->waiting == 0))
            continue;
        charged += fairshare_charged(f, other, now_ms);
        shares += naive_shares(f, other);
    }
    double mean = shares > 0 ? charged / shares : 0;
    return log2((fairshare_charged(f, account, now_ms) / naive_shares(f, account) + 3600) / (mean + 3600));
}

/* What a department has is what its groups have. */
static void assert_sums(const struct fairshare *f, int64_t now_ms)
{
    for (const struct account *department = f->first; department != NULL; department = department->next) {
        double usage = 0, charged = 0;
        uint32_t running = 0, waiting = 0, gpu_milli = 0;
        if (department->kind != ACCOUNT_DEPARTMENT)
            continue;
        for (const struct account *group = f->first; group != NULL; group = group->next) {
            if (group->kind != ACCOUNT_GROUP || group->parent != department)
                continue;
            usage += fairshare_usage(f, group, now_ms);
            charged += fairshare_charged(f, group, now_ms);
            running += group->running;
            waiting += group->waiting;
            gpu_milli += group->gpu_milli;
        }
        assert_true(fabs(fairshare_usage(f, department, now_ms) - usage) < 1e-3 * (1 + usage));
        assert_true(fabs(fairshare_charged(f, department, now_ms) - charged) < 1e-3 * (1 + charged));
        assert_true(department->running == running && department->waiting == waiting &&
                    department->gpu_milli == gpu_milli);
    }
}

/* A user into another group, or a group into another department or out of it. */
static void move_account(struct fairshare *f, struct account *account, uint32_t draw, int64_t now_ms)
{
    struct account *parent =
        account->kind == ACCOUNT_USER
            ? fairshare_account(f, draw % 5, ACCOUNT_GROUP)
            : (draw % 4 == 0 ? NULL : fairshare_account(f, 1 + draw % 3, ACCOUNT_DEPARTMENT));
    fairshare_set_parent(f, account, parent, now_ms);
}

CASE(random_histories_agree_with_a_walk_over_all_accounts, f)
{
    uint64_t seed = 1;
    int64_t now_ms = 1700000000000;
    for (unsigned step = 0; step < 20000; step++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t draw = (uint32_t)(seed >> 33);
        now_ms += draw % 100 == 0 ? 30 * (int64_t)HALF_LIFE : draw % 100000;
        struct account *account =
            fairshare_account(f, draw / 7 % 12, draw / 3 % 2 != 0 ? ACCOUNT_GROUP : ACCOUNT_USER);
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
            fairshare_charge(f, account, now_ms, -gives, -gives);
            fairshare_count(f, account, now_ms, -1, 0);
        }
        if (draw % 1000 == 1) {
            account->shares = 1 + draw % 4;
            f->has_group_shares = draw % 8000 > 4000;
            fairshare_settle(f, now_ms, HALF_LIFE * (1 + draw % 3));
        }
        if (draw % 50 == 2)
            move_account(f, account, draw / 50, now_ms);
        assert_true(fabs(fairshare_factor(f, account, now_ms) - naive_factor(f, account, now_ms)) < 1e-6);
        assert_sums(f, now_ms);
    }
}

/* --- the tree --- */

CASE(a_user_is_compared_within_its_group_and_a_group_within_its_department, f)
{
    struct account *physics = fairshare_account(f, 1, ACCOUNT_DEPARTMENT);
    struct account *lab = fairshare_account(f, 10, ACCOUNT_GROUP),
                   *other = fairshare_account(f, 11, ACCOUNT_GROUP);
    struct account *ada = fairshare_account(f, 100, ACCOUNT_USER),
                   *bo = fairshare_account(f, 101, ACCOUNT_USER);
    physics->shares = 3;
    fairshare_set_parent(f, lab, physics, 0);
    fairshare_set_parent(f, ada, lab, 0);
    fairshare_set_parent(f, bo, lab, 0);
    struct account *all[] = { lab, other, ada, bo };
    for (size_t i = 0; i < 4; i++)
        fairshare_count(f, all[i], 0, 0, 1);
    assert_near(fairshare_part(f, physics), 0.75); // of the machine; `other` has the rest
    assert_near(fairshare_part(f, lab), 0.75);
    assert_near(fairshare_part(f, ada), 0.375);
    /* bo leaves: its share is lent to ada, and what ada uses is not held against its group's other user. */
    fairshare_count(f, bo, 0, 0, -1);
    assert_near(fairshare_part(f, ada), 0.75);
    run(f, ada, 0, 1, 8);
    run(f, lab, 0, 1, 8);
    assert_near(fairshare_factor(f, ada, HALF_LIFE), 0); // alone in its group
    assert_true(fairshare_factor(f, physics, HALF_LIFE) > 0);
    /* It returns, and comes first. */
    fairshare_count(f, bo, HALF_LIFE, 0, 1);
    assert_true(fairshare_factor(f, bo, HALF_LIFE) < -1 && fairshare_factor(f, ada, HALF_LIFE) > 0.9);
    assert_near(fairshare_path_factor(f, bo, HALF_LIFE), fairshare_factor(f, bo, HALF_LIFE) +
                                                             fairshare_factor(f, lab, HALF_LIFE) +
                                                             fairshare_factor(f, physics, HALF_LIFE));
}

/* A group of one and a group of three. */
CASE(users_are_equal_whatever_their_groups_unless_groups_have_shares, f)
{
    struct account *groups[] = { fairshare_account(f, 10, ACCOUNT_GROUP),
        fairshare_account(f, 11, ACCOUNT_GROUP) };
    struct account *users[4];
    for (size_t i = 0; i < 4; i++) {
        struct account *group = groups[i > 0];
        users[i] = fairshare_account(f, (uint32_t)(100 + i), ACCOUNT_USER);
        fairshare_set_parent(f, users[i], group, 0);
        fairshare_count(f, users[i], 0, 0, 1);
        fairshare_count(f, group, 0, 0, 1);
    }
    for (size_t i = 0; i < 4; i++)
        assert_near(fairshare_part(f, users[i]), 0.25);
    run(f, users[0], 0, 1, 1);
    run(f, groups[0], 0, 1, 1);
    run(f, users[1], 0, 1, 1);
    run(f, groups[1], 0, 1, 1);
    double alone = fairshare_path_factor(f, users[0], HALF_LIFE),
           among = fairshare_path_factor(f, users[1], HALF_LIFE);
    assert_true(fabs(alone - among) < 0.1); // but for the floor of usage on each level
    assert_true(fairshare_path_factor(f, users[2], HALF_LIFE) < alone - 2);
    f->has_group_shares = true;
    fairshare_settle(f, HALF_LIFE, HALF_LIFE);
    assert_near(fairshare_part(f, users[0]), 0.5);
    assert_near(fairshare_part(f, users[3]), 1.0 / 6);
}

CASE(what_counts_is_the_dominant_resource_and_limits_count_gpus, f)
{
    struct account *gpus = fairshare_account(f, 1, ACCOUNT_USER),
                   *cpus = fairshare_account(f, 2, ACCOUNT_USER);
    fairshare_count(f, gpus, 0, 1, 0);
    fairshare_count(f, cpus, 0, 1, 0);
    fairshare_charge(f, gpus, 0, 4000, 4000);
    fairshare_charge(f, cpus, 0, 0, 4000); // half of the CPUs of a machine with 8 GPUs
    assert_near(fairshare_factor(f, gpus, HALF_LIFE), fairshare_factor(f, cpus, HALF_LIFE));
    assert_near(fairshare_usage(f, cpus, HALF_LIFE), 0);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    account_encode(f, cpus, HALF_LIFE, &bytes);
    _cleanup_(fairshare_clear) struct fairshare again;
    fairshare_init(&again, HALF_LIFE);
    assert_int_equal(account_decode(&again, bytes.bytes, bytes.length, NULL), 0);
    assert_true(fabs(fairshare_charged(&again, fairshare_account(&again, 2, ACCOUNT_USER), HALF_LIFE) -
                     fairshare_charged(f, cpus, HALF_LIFE)) < 0.001);
}

static bool is_limited(
    struct fairshare *f, struct account *account, int64_t now_ms, uint32_t gpu_milli, const char *sentence)
{
    char text[160] = "";
    bool is = fairshare_is_limited(f, account, now_ms, gpu_milli, text, sizeof(text));
    assert_string_equal(text, sentence);
    return is;
}

CASE(each_limit_is_told_as_a_sentence, f)
{
    struct account *account = fairshare_account(f, 1, ACCOUNT_USER);
    assert_false(is_limited(f, account, 0, 1000000, ""));
    account->limits = (struct account_limits){ .jobs = 4, .gpu_milli = 8000 };
    for (int i = 0; i < 3; i++)
        run(f, account, 0, 1, 2);
    assert_false(is_limited(f, account, 0, 2000, ""));
    assert_true(is_limited(f, account, 0, 4000, "6 of 8 GPUs in use, too many to add this job's"));
    fairshare_charge(f, account, 0, 2000, 2000);
    assert_true(is_limited(f, account, 0, 250, "8 of 8 GPUs in use"));
    assert_false(is_limited(f, account, 0, 0, ""));
    fairshare_count(f, account, 0, 1, 0);
    assert_true(is_limited(f, account, 0, 0, "running jobs: 4 of at most 4"));
}

CASE(gpu_hours_come_back_by_decay_alone_and_when_is_known, f)
{
    struct account *account = fairshare_account(f, 1, ACCOUNT_USER);
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
    fairshare_charge(f, account, 0, 3000, 3000);
    assert_int_equal(fairshare_limit_ends(f, account, 0), TIME_NEVER);
    assert_true(is_limited(f, account, 0, 1000, "GPU-hours: 131.6 of at most 120 used"));
}

CASE(usage_outlives_a_restart_and_decays_meanwhile, f)
{
    struct account *account = fairshare_account(f, 7, ACCOUNT_GROUP);
    run(f, account, 1000, 1, 2);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    account_encode(f, account, HOUR_MS, &bytes);
    _cleanup_(fairshare_clear) struct fairshare again;
    fairshare_init(&again, HALF_LIFE);
    assert_int_equal(account_decode(&again, bytes.bytes, bytes.length, NULL), 0);
    struct account *copy = fairshare_account(&again, 7, ACCOUNT_GROUP);
    assert_true(fabs(fairshare_usage(&again, copy, HOUR_MS) - fairshare_usage(f, account, HOUR_MS)) < 0.001);
    assert_true(
        fairshare_usage(&again, copy, HOUR_MS + HALF_LIFE) < 0.5001 * fairshare_usage(&again, copy, HOUR_MS));
    struct error err = { 0 };
    assert_true(account_decode(&again, bytes.bytes, bytes.length - 1, &err) < 0);
}
