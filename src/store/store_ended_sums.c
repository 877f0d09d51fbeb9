/* SPDX-License-Identifier: MIT */
/*
 * Totals over ended jobs: first over existing ones, then over the days of removed ones. Intermediate results
 * are passed from request to request, each of which reads SUM_ROWS rows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_ended_scan.h"
#include "store/store_sqlite.h"
#include "store/wait_sketch.h"

#define SUM_ROWS 4000
#define DAY_MS   INT64_C(86400000)

struct group {
    struct ended_sum sum;
    struct wait_sketch waits;
};

struct sums {
    struct ended_scan scan;
    enum ended_by by;
    struct group **groups; // in order of their key
    size_t count, capacity;
    bool is_cut, is_over;
    /* The last row of kept_days that was read. */
    int64_t day, uid, gid;
    char *node;
};

struct summing {
    struct store_request request;
    struct sums *sums; // passed on to the next request
    void (*on_sums)(void *arg, const struct ended_sum *sums, size_t count, bool is_cut);
    void *arg;
};

struct key {
    int64_t number;
    const char *node;
};

/* The contribution of a row for `jobs` jobs. */
struct portion {
    uint32_t uid, gid;
    int64_t day;
    const char *node;
    uint64_t jobs;
    int64_t held_ms, measured_ms, used_ms;
};

static void free_sums(struct sums *sums)
{
    if (sums == NULL)
        return;
    for (size_t i = 0; i < sums->count; i++) {
        free(sums->groups[i]->sum.node);
        free(sums->groups[i]);
    }
    free(sums->groups);
    free(sums->node);
    ended_scan_clear(&sums->scan);
    free(sums);
}

static int compare(const struct key *key, const struct group *group)
{
    if (key->node != NULL)
        return strcmp(key->node, group->sum.node);
    return (key->number > group->sum.number) - (key->number < group->sum.number);
}

static struct group *insert(struct sums *sums, size_t at, const struct key *key)
{
    if (sums->count == ENDED_SUMS_MAX) {
        sums->is_cut = true;
        return NULL;
    }
    if (sums->count == sums->capacity) {
        sums->capacity = sums->capacity > 0 ? sums->capacity * 2 : 16;
        sums->groups = xreallocarray(sums->groups, sums->capacity, sizeof(struct group *));
    }
    struct group *group = xcalloc(1, sizeof(*group));
    group->sum = (struct ended_sum){ .number = key->number, .node = xstrdup(key->node) };
    memmove(&sums->groups[at + 1], &sums->groups[at], (sums->count - at) * sizeof(struct group *));
    sums->groups[at] = group;
    sums->count++;
    return group;
}

/* NULL if there are too many. */
static struct group *find_group(struct sums *sums, const struct key *key)
{
    size_t low = 0, high = sums->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(key, sums->groups[middle]);
        if (order == 0)
            return sums->groups[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return insert(sums, low, key);
}

static struct group *add(struct sums *sums, const struct portion *portion)
{
    const struct key keys[ENDED_BYS] = {
        [ENDED_BY_USER] = { .number = portion->uid },
        [ENDED_BY_GROUP] = { .number = portion->gid },
        [ENDED_BY_DAY] = { .number = portion->day },
        [ENDED_BY_NODE] = { .node = portion->node != NULL ? portion->node : "" },
    };
    struct group *group = find_group(sums, &keys[sums->by]);
    if (group == NULL)
        return NULL;
    group->sum.jobs += portion->jobs;
    group->sum.held_ms += portion->held_ms;
    group->sum.measured_ms += portion->measured_ms;
    group->sum.used_ms += portion->used_ms;
    return group;
}

static int add_job(void *arg, struct store *store, const struct ended_found *found, struct error *err)
{
    struct sums *sums = arg;
    const struct portion portion = {
        .uid = found->uid,
        .gid = found->gid,
        .day = found->ended_ms / DAY_MS,
        .node = found->node,
        .jobs = 1,
        .held_ms = found->held_ms,
        .measured_ms = found->measured_ms,
        .used_ms = found->used_ms,
    };
    struct group *group = add(sums, &portion);
    if (group == NULL)
        return 1;
    if (found->has_wait)
        wait_sketch_add(&group->waits, found->wait_ms);
    return 0;
}

/* --- days of removed jobs --- */

static bool are_days_wanted(const struct ended_filter *filter)
{
    return filter->outcomes == 0 && filter->name == NULL;
}

static void add_day(struct sums *sums, sqlite3_stmt *row)
{
    sums->day = sqlite3_column_int64(row, 0);
    sums->uid = sqlite3_column_int64(row, 1);
    sums->gid = sqlite3_column_int64(row, 2);
    free(sums->node);
    sums->node = store_sql_text(row, 3);
    const struct portion portion = {
        .uid = (uint32_t)sums->uid,
        .gid = (uint32_t)sums->gid,
        .day = sums->day,
        .node = sums->node,
        .jobs = (uint64_t)sqlite3_column_int64(row, 4),
        .held_ms = sqlite3_column_int64(row, 5),
        .measured_ms = sqlite3_column_int64(row, 6),
        .used_ms = sqlite3_column_int64(row, 7),
    };
    if (!sums->scan.filter.has_user || portion.uid == sums->scan.filter.uid)
        (void)add(sums, &portion);
}

static int scan_days(struct sums *sums, struct store *store, struct error *err)
{
    sqlite3_stmt *select = store->statements[SQL_SCAN_KEPT_DAYS];
    size_t seen = 0;
    int rc;
    (void)sqlite3_bind_int64(select, 1, sums->day);
    (void)sqlite3_bind_int64(select, 2, sums->uid);
    (void)sqlite3_bind_int64(select, 3, sums->gid);
    (void)sqlite3_bind_text(select, 4, sums->node, -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_int64(select, 5, (sums->scan.filter.until_ms - 1) / DAY_MS);
    (void)sqlite3_bind_int64(select, 6, SUM_ROWS);
    while ((rc = sqlite3_step(select)) == SQLITE_ROW) {
        add_day(sums, select);
        seen++;
    }
    sums->is_over = seen < SUM_ROWS;
    int r = rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "kept_days");
    (void)sqlite3_reset(select);
    return r;
}

/* --- requests --- */

static int run_sums(struct store *store, struct store_request *request, struct error *err)
{
    struct sums *sums = ((struct summing *)request)->sums;
    if (sums->scan.is_over)
        return scan_days(sums, store, err);
    int r = ended_scan_run(&sums->scan, store, SUM_ROWS, add_job, sums, err);
    sums->is_over = sums->is_cut || (sums->scan.is_over && !are_days_wanted(&sums->scan.filter));
    return r;
}

static void push(struct store *store, struct sums *sums, const struct summing *same);

static void report_sums(const struct summing *summing)
{
    const struct sums *sums = summing->sums;
    _cleanup_free_ struct ended_sum *all = xcalloc(sums->count + 1, sizeof(*all));
    for (size_t i = 0; i < sums->count; i++) {
        const struct wait_sketch *waits = &sums->groups[i]->waits;
        all[i] = sums->groups[i]->sum;
        all[i].has_waits = waits->count > 0;
        all[i].wait_median_ms = wait_sketch_quantile(waits, 50);
        all[i].wait_p95_ms = wait_sketch_quantile(waits, 95);
    }
    summing->on_sums(summing->arg, all, sums->count, sums->is_cut);
}

static void answer_sums(struct store *store, struct store_request *request)
{
    struct summing *summing = (struct summing *)request;
    if (summing->sums->is_over)
        report_sums(summing);
    else
        push(store, take_ptr(summing->sums), summing);
}

static void drop_summing(struct store_request *request)
{
    const struct summing *summing = (const struct summing *)request;
    summing->on_sums(summing->arg, NULL, 0, true);
}

static void free_summing(struct store_request *request)
{
    free_sums(((struct summing *)request)->sums);
    free(request);
}

static const struct store_request_kind sums_kind = {
    .run = run_sums, .answer = answer_sums, .drop = drop_summing, .free = free_summing
};

static void push(struct store *store, struct sums *sums, const struct summing *same)
{
    struct summing *summing = xcalloc(1, sizeof(*summing));
    *summing = *same;
    summing->request = (struct store_request){ .kind = &sums_kind };
    summing->sums = sums;
    store_thread_push(store, &summing->request);
}

void store_sum_ended(struct store *store, const struct ended_filter *filter, enum ended_by by,
    void (*on_sums)(void *arg, const struct ended_sum *sums, size_t count, bool is_cut), void *arg)
{
    struct sums *sums = xcalloc(1, sizeof(*sums));
    sums->by = by;
    ended_scan_init(&sums->scan, filter, NULL);
    /* The earliest possible row of kept_days. */
    sums->day = filter->since_ms / DAY_MS;
    sums->uid = sums->gid = -1;
    sums->node = xstrdup("");
    push(store, sums, &(struct summing){ .on_sums = on_sums, .arg = arg });
}
