/* SPDX-License-Identifier: MIT */
/*
 * Usage U decays by half every half-life h and grows by the GPUs held, r: dU/dt = r - kU with k = ln 2 / h.
 * While r is constant the solution is
 *
 *     U(t) = U0 e^(-kt) + (r / k) (1 - e^(-kt))
 *
 * A usage is therefore a value, its time and a rate, rewritten only when the rate changes, however much time
 * passes. The equation is linear: the sum over all accounts also obeys it, with the sum of the rates, and is
 * kept in the same form.
 */
#include "sched/queue/fairshare.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/record.h"
#include "base/record_dense.h"
#include "sched/cluster/cluster.h"

/* GPU-seconds per share added to the usage of every account: the first GPU-hour makes little difference, so a
 * new user is ahead, but not by orders of magnitude. */
#define USAGE_FLOOR 3600.0

void fairshare_init(struct fairshare *fairshare, double half_life_ms)
{
    *fairshare = (struct fairshare){ .half_life_ms = half_life_ms };
}

void fairshare_clear(struct fairshare *fairshare)
{
    for (struct account *account = fairshare->first; account != NULL;) {
        struct account *next = account->next;
        free(account);
        account = next;
    }
    map_clear(&fairshare->accounts, NULL);
    *fairshare = (struct fairshare){ 0 };
}

static uint64_t hash_of(uint32_t id, enum account_kind kind)
{
    return map_hash((uint64_t)kind << 32 | id);
}

static struct account *account_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct account, link);
}

static uint64_t hash_of_link(const struct map_link *link)
{
    return hash_of(account_at(link)->id, account_at(link)->kind);
}

static struct account *find(const struct fairshare *fairshare, uint32_t id, enum account_kind kind)
{
    const struct map_link *link = map_chain(&fairshare->accounts, hash_of(id, kind));
    while (link != NULL && (account_at(link)->id != id || account_at(link)->kind != kind))
        link = link->next;
    return link != NULL ? account_at(link) : NULL;
}

struct account_limits fairshare_default_limits(const struct fairshare *fairshare, enum account_kind kind)
{
    return kind == ACCOUNT_USER    ? fairshare->user_limits
           : kind == ACCOUNT_GROUP ? fairshare->group_limits
                                   : (struct account_limits){ 0 };
}

struct account *fairshare_account(struct fairshare *fairshare, uint32_t id, enum account_kind kind)
{
    struct account *account = find(fairshare, id, kind);
    if (account != NULL)
        return account;
    account = xcalloc(1, sizeof(*account));
    account->id = id;
    account->kind = kind;
    account->shares = 1;
    account->limits = fairshare_default_limits(fairshare, kind);
    map_add(&fairshare->accounts, &account->link, hash_of_link);
    *(fairshare->last != NULL ? &fairshare->last->next : &fairshare->first) = account;
    fairshare->last = account;
    return account;
}

static double decay_per_second(const struct fairshare *fairshare)
{
    return M_LN2 * 1000 / fairshare->half_life_ms;
}

/* U(t) of the head comment. Time never steps back here: an earlier time changes nothing. */
static double usage_after(
    const struct fairshare *fairshare, double usage, double rate, int64_t from_ms, int64_t to_ms)
{
    if (to_ms <= from_ms)
        return usage;
    double k = decay_per_second(fairshare), gone = -expm1(-k * (double)(to_ms - from_ms) / 1000);
    return usage * (1 - gone) + rate / k * gone;
}

double fairshare_usage(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    return usage_after(fairshare, account->usage, account->rate, account->at_ms, now_ms);
}

double fairshare_charged(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    return usage_after(fairshare, account->charged, account->charge_rate, account->at_ms, now_ms);
}

static void bring_account_to(const struct fairshare *fairshare, struct account *account, int64_t now_ms)
{
    account->usage = fairshare_usage(fairshare, account, now_ms);
    account->charged = fairshare_charged(fairshare, account, now_ms);
    if (now_ms > account->at_ms)
        account->at_ms = now_ms;
}

static double total_charged(
    const struct fairshare *fairshare, const struct fairshare_total *total, int64_t now_ms)
{
    return usage_after(fairshare, total->charged, total->rate, total->at_ms, now_ms);
}

static const struct fairshare_total *total_of(
    const struct fairshare *fairshare, const struct account *account)
{
    return account->parent != NULL ? &account->parent->children : &fairshare->top;
}

/* Its weight among the accounts below the same parent. */
static double shares_of(const struct fairshare *fairshare, const struct account *account)
{
    if (account->kind != ACCOUNT_GROUP || fairshare->has_group_shares)
        return account->shares;
    return account->children.accounts > 0 ? account->children.shares : 1;
}

/* The sum that an account counts for, brought to this time. */
static struct fairshare_total *total_at(
    struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    struct fairshare_total *total = account->parent != NULL ? &account->parent->children : &fairshare->top;
    total->charged = total_charged(fairshare, total, now_ms);
    if (now_ms > total->at_ms)
        total->at_ms = now_ms;
    return total;
}

/* The account is added to (+1) or removed from (-1) the total over accounts with jobs. It has been updated to
 * `now_ms`. */
static void join_total(struct fairshare *fairshare, const struct account *account, int64_t now_ms, int sign)
{
    struct fairshare_total *total = total_at(fairshare, account, now_ms);
    total->charged += sign * account->charged;
    total->rate += sign * account->charge_rate;
    total->shares += sign * shares_of(fairshare, account);
    total->accounts += (uint32_t)sign;
    if (total->accounts == 0) // what is left are rounding errors
        *total = (struct fairshare_total){ 0 };
}

/* The same for an account whose parent's shares may change with it. */
static void change_total(struct fairshare *fairshare, const struct account *account, int64_t now_ms, int sign)
{
    const struct account *parent = account->parent;
    double before = parent != NULL ? shares_of(fairshare, parent) : 0;
    join_total(fairshare, account, now_ms, sign);
    if (parent != NULL && parent->is_counted)
        total_at(fairshare, parent, now_ms)->shares += shares_of(fairshare, parent) - before;
}

void fairshare_settle(struct fairshare *fairshare, int64_t now_ms, double half_life_ms)
{
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        bring_account_to(fairshare, account, now_ms);
    fairshare->half_life_ms = half_life_ms;
    fairshare->top = (struct fairshare_total){ 0 };
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        account->children = (struct fairshare_total){ 0 };
    for (int kind = ACCOUNT_USER; kind <= ACCOUNT_DEPARTMENT; kind++) // children first
        for (struct account *account = fairshare->first; account != NULL; account = account->next)
            if (account->is_counted && (int)account->kind == kind)
                join_total(fairshare, account, now_ms, 1);
}

/* Joins or leaves the total if it has got its first or lost its last job. */
static void update_count(struct fairshare *fairshare, struct account *account, int64_t now_ms)
{
    bool has_jobs = account->running > 0 || account->waiting > 0;
    if (has_jobs == account->is_counted)
        return;
    account->is_counted = has_jobs;
    bring_account_to(fairshare, account, now_ms);
    change_total(fairshare, account, now_ms, has_jobs ? 1 : -1);
}

void fairshare_count(
    struct fairshare *fairshare, struct account *account, int64_t now_ms, int32_t running, int32_t waiting)
{
    account->running += (uint32_t)running;
    account->waiting += (uint32_t)waiting;
    update_count(fairshare, account, now_ms);
    if (account->kind == ACCOUNT_GROUP && account->parent != NULL)
        fairshare_count(fairshare, account->parent, now_ms, running, waiting);
}

double fairshare_held(const struct account *account, int64_t now_ms)
{
    int64_t since_ms = now_ms > account->held_at_ms ? now_ms - account->held_at_ms : 0;
    return account->held_seconds + account->rate * (double)since_ms / 1000;
}

void fairshare_charge(struct fairshare *fairshare, struct account *account, int64_t now_ms, int64_t gpu_milli,
    int64_t charged_milli)
{
    assert(gpu_milli >= 0 || account->gpu_milli >= (uint64_t)-gpu_milli);
    assert(charged_milli >= 0 || account->charged_milli >= (uint64_t)-charged_milli);
    bring_account_to(fairshare, account, now_ms);
    account->held_seconds = fairshare_held(account, now_ms);
    account->held_at_ms = now_ms;
    account->gpu_milli = (uint32_t)(account->gpu_milli + gpu_milli);
    account->charged_milli = (uint64_t)((int64_t)account->charged_milli + charged_milli);
    account->rate = account->gpu_milli / 1000.0;
    account->charge_rate = (double)account->charged_milli / 1000.0;
    if (account->is_counted)
        total_at(fairshare, account, now_ms)->rate += (double)charged_milli / 1000;
    if (account->kind == ACCOUNT_GROUP && account->parent != NULL)
        fairshare_charge(fairshare, account->parent, now_ms, gpu_milli, charged_milli);
}

/* Adds a group's jobs and usage to its department, or takes them from it. */
static void move_group(
    struct fairshare *fairshare, struct account *department, struct account *group, int64_t now_ms, int sign)
{
    bring_account_to(fairshare, department, now_ms);
    bool was_counted = department->is_counted;
    if (was_counted) // it joins again with the new values
        join_total(fairshare, department, now_ms, -1);
    department->is_counted = false;
    department->usage += sign * group->usage;
    department->charged += sign * group->charged;
    department->held_seconds = fairshare_held(department, now_ms) + sign * group->held_seconds;
    department->held_at_ms = now_ms;
    department->gpu_milli += (uint32_t)sign * group->gpu_milli;
    department->charged_milli += (uint64_t)(int64_t)sign * group->charged_milli;
    department->rate = department->gpu_milli / 1000.0;
    department->charge_rate = (double)department->charged_milli / 1000.0;
    department->running += (uint32_t)sign * group->running;
    department->waiting += (uint32_t)sign * group->waiting;
    update_count(fairshare, department, now_ms);
}

void fairshare_set_parent(
    struct fairshare *fairshare, struct account *account, struct account *parent, int64_t now_ms)
{
    if (account->parent == parent)
        return;
    bring_account_to(fairshare, account, now_ms);
    account->held_seconds = fairshare_held(account, now_ms);
    account->held_at_ms = now_ms;
    if (account->is_counted)
        change_total(fairshare, account, now_ms, -1);
    if (account->kind == ACCOUNT_GROUP && account->parent != NULL)
        move_group(fairshare, account->parent, account, now_ms, -1);
    account->parent = parent;
    if (account->kind == ACCOUNT_GROUP && parent != NULL)
        move_group(fairshare, parent, account, now_ms, 1);
    if (account->is_counted)
        change_total(fairshare, account, now_ms, 1);
}

double fairshare_factor(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    const struct fairshare_total *total = total_of(fairshare, account);
    double mean = total->shares > 0 ? total_charged(fairshare, total, now_ms) / total->shares : 0;
    double own = fairshare_charged(fairshare, account, now_ms) / shares_of(fairshare, account);
    return log2((own + USAGE_FLOOR) / ((mean > 0 ? mean : 0) + USAGE_FLOOR));
}

double fairshare_path_factor(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    double factor = 0;
    for (; account != NULL; account = account->parent)
        factor += fairshare_factor(fairshare, account, now_ms);
    return factor;
}

double fairshare_part(const struct fairshare *fairshare, const struct account *account)
{
    double part = 1;
    for (; account != NULL; account = account->parent) {
        const struct fairshare_total *total = total_of(fairshare, account);
        double own = shares_of(fairshare, account);
        part *= own / (total->shares + (account->is_counted ? 0 : own));
    }
    return part;
}

static bool is_over_usage(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    return account->limits.gpu_seconds > 0 &&
           fairshare_usage(fairshare, account, now_ms) >= account->limits.gpu_seconds;
}

/* U(t) of the head comment solved for the t at which it is the limit. If running jobs keep usage above it,
 * only the end of a job helps. */
int64_t fairshare_limit_ends(const struct fairshare *fairshare, const struct account *account, int64_t now_ms)
{
    if (!is_over_usage(fairshare, account, now_ms))
        return TIME_NEVER;
    double k = decay_per_second(fairshare), lasting = account->rate / k;
    if (lasting >= account->limits.gpu_seconds)
        return TIME_NEVER;
    double usage = fairshare_usage(fairshare, account, now_ms);
    double wait_ms = log((usage - lasting) / (account->limits.gpu_seconds - lasting)) / k * 1000;
    return wait_ms < 1e15 ? now_ms + (int64_t)ceil(wait_ms) + 1 : TIME_NEVER; // surely below by then
}

const struct account_limits *fairshare_limits(
    const struct fairshare *fairshare, uint32_t id, enum account_kind kind)
{
    const struct account *account = find(fairshare, id, kind);
    if (account != NULL)
        return &account->limits;
    return kind == ACCOUNT_GROUP ? &fairshare->group_limits : &fairshare->user_limits;
}

/* The other limits concern its owner's other jobs, which end, and usage, which decays. */
bool account_limits_exclude(const struct account_limits *limits, int64_t gpu_milli)
{
    return limits->gpu_milli > 0 && gpu_milli > limits->gpu_milli;
}

bool fairshare_is_limited(const struct fairshare *fairshare, const struct account *account, int64_t now_ms,
    uint32_t gpu_milli, char *text, size_t size)
{
    const struct account_limits *limits = &account->limits;
    if (account_limits_exclude(limits, gpu_milli)) {
        (void)snprintf(text, size, "requested %g GPUs; the limit is %g at a time", gpu_milli / 1000.0,
            limits->gpu_milli / 1000.0);
        return true;
    }
    if (limits->jobs > 0 && account->running + account->aside >= limits->jobs) {
        (void)snprintf(
            text, size, "running jobs: %" PRIu32 " of at most %" PRIu32, account->running, limits->jobs);
        return true;
    }
    if (gpu_milli == 0) // it holds and uses no GPU, however much its owner does
        return false;
    if (limits->gpu_milli > 0 &&
        (uint64_t)account->gpu_milli + account->aside_milli + gpu_milli > limits->gpu_milli) {
        (void)snprintf(text, size, "%g of %g GPUs in use%s", account->gpu_milli / 1000.0,
            limits->gpu_milli / 1000.0,
            account->gpu_milli < limits->gpu_milli ? ", too many to add this job's" : "");
        return true;
    }
    if (!is_over_usage(fairshare, account, now_ms))
        return false;
    int64_t ends_ms = fairshare_limit_ends(fairshare, account, now_ms);
    char wait[32] = "";
    if (ends_ms != TIME_NEVER)
        format_duration(ends_ms - now_ms, wait, sizeof(wait));
    (void)snprintf(text, size, "GPU-hours: %.1f of at most %g used%s%s%s",
        fairshare_usage(fairshare, account, now_ms) / 3600, limits->gpu_seconds / 3600,
        wait[0] != '\0' ? "; in " : "", wait, wait[0] != '\0' ? " the job fits again" : "");
    return true;
}

/* Usage is stored in GPU-milliseconds: half of one is negligible. */
struct account_state {
    uint32_t id;
    bool is_group;
    int64_t at_ms;
    uint64_t gpu_ms, charged_ms;
};

static const struct record_field state_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct account_state, id, 0),
    RECORD_FIELD(2, RECORD_BOOL, struct account_state, is_group, 0),
    RECORD_FIELD(3, RECORD_TIME, struct account_state, at_ms, 0),
    RECORD_FIELD(4, RECORD_U64, struct account_state, gpu_ms, 0),
    RECORD_FIELD(542, RECORD_U64, struct account_state, charged_ms, 0),
};

static const struct record_type state_record = RECORD_TYPE(70, "account", struct account_state, state_fields);

void account_encode(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms, struct buffer *out)
{
    const struct account_state state = { .id = account->id,
        .is_group = account->kind == ACCOUNT_GROUP,
        .at_ms = now_ms,
        .gpu_ms = (uint64_t)llround(fairshare_usage(fairshare, account, now_ms) * 1000),
        .charged_ms = (uint64_t)llround(fairshare_charged(fairshare, account, now_ms) * 1000) };
    record_encode_dense(&state_record, &state, out);
}

/* Older versions charged for GPUs only. */
int account_decode(struct fairshare *fairshare, const uint8_t *bytes, size_t length, struct error *err)
{
    struct account_state state;
    int r = record_decode(&state_record, bytes, length, &state, err);
    if (r < 0)
        return r;
    struct account *account =
        fairshare_account(fairshare, state.id, state.is_group ? ACCOUNT_GROUP : ACCOUNT_USER);
    struct account *parent = account->parent;
    assert(!account->is_counted);
    fairshare_set_parent(fairshare, account, NULL, state.at_ms);
    account->usage = (double)state.gpu_ms / 1000;
    account->charged = (double)(state.charged_ms > 0 ? state.charged_ms : state.gpu_ms) / 1000;
    account->at_ms = state.at_ms;
    fairshare_set_parent(fairshare, account, parent, state.at_ms);
    return 0;
}
