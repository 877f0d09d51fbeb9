/* SPDX-License-Identifier: MIT */
/*
 * A start of mgpud: mgpud creates its scheduler from the store, so the replay does the same from the state at
 * that time: usage, run times, reservations, jobs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lab/sim/replay/private.h"
#include "lab/sim/settings_text.h"
#include "sched/from_record.h"

/* --- accounts --- */

static enum account_kind kind_of(char letter)
{
    return letter == 'g' ? ACCOUNT_GROUP : letter == 'd' ? ACCOUNT_DEPARTMENT : ACCOUNT_USER;
}

/* "account=g:1000 SHARES JOBS GPU_MILLI GPU_SECONDS DEPARTMENT"; older journals have no departments. */
static int set_account(struct sched *sched, int64_t now_ms, const char *value, struct error *err)
{
    struct fairshare *fairshare = sched_fairshare(sched);
    char kind = '\0';
    uint32_t id = 0, department = 0;
    double shares = 0;
    struct account_limits limits = { 0 };
    if (sscanf(value, "%c:%" SCNu32 " %lf %" SCNu32 " %" SCNu32 " %lf %" SCNu32, &kind, &id, &shares,
            &limits.jobs, &limits.gpu_milli, &limits.gpu_seconds, &department) < 6)
        return error_set(err, -EPROTO, "the account '%.60s' is invalid", value);
    struct account *account = fairshare_account(fairshare, id, kind_of(kind));
    account->shares = shares > 0 ? shares : 1;
    fairshare->has_group_shares |= account->kind == ACCOUNT_GROUP && shares > 0;
    account->limits = limits;
    if (department != 0)
        fairshare_set_parent(
            fairshare, account, fairshare_account(fairshare, department, ACCOUNT_DEPARTMENT), now_ms);
    return 0;
}

/* "partition=NAME PRIORITY n1,n2", or without nodes: all. */
static int add_partition(struct cluster_partition *partition, const char *value, struct error *err)
{
    char name[80];
    int32_t priority = 0;
    int length = 0;
    if (sscanf(value, "%79s %" SCNd32 "%n", name, &priority, &length) != 2)
        return error_set(err, -EPROTO, "the partition '%.60s' is invalid", value);
    *partition = (struct cluster_partition){ .name = xstrdup(name), .priority = priority };
    _cleanup_free_ char *copy = xstrdup(value + length);
    char *rest = NULL;
    for (char *node = strtok_r(copy, " ,", &rest); node != NULL; node = strtok_r(NULL, " ,", &rest))
        strings_add(&partition->nodes, node);
    return 0;
}

/* `now_ms` 0: at a start, where a reservation may be loaded whose time has ended. */
static int read_partitions(const char *text, struct replay *replay, int64_t now_ms, struct error *err)
{
    static const char key[] = "partition=";
    struct cluster_partition partitions[PARTITIONS_MAX] = { { 0 } };
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    size_t count = 0;
    int r = 0;
    for (char *line = strtok_r(copy, "\n", &rest); r == 0 && line != NULL && count < PARTITIONS_MAX;
         line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, key, strlen(key)) == 0)
            r = add_partition(&partitions[count++], line + strlen(key), err);
    if (r == 0)
        sched_set_partitions(replay->sched, now_ms, partitions, count);
    for (size_t i = 0; i < count; i++) {
        free(partitions[i].name);
        strings_clear(&partitions[i].nodes);
    }
    return r;
}

/* Groups that are not named have no department any more. */
static int read_accounts(const char *text, struct replay *replay, struct error *err)
{
    struct fairshare *fairshare = sched_fairshare(replay->sched);
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    int r = 0;
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        if (account->kind == ACCOUNT_GROUP)
            fairshare_set_parent(fairshare, account, NULL, replay->at_ms);
    for (char *line = strtok_r(copy, "\n", &rest); r == 0 && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        if (strcmp(line, "account") == 0)
            r = set_account(replay->sched, replay->at_ms, equals + 1, err);
    }
    return r;
}

/* --- what mgpud keeps for its next start --- */

static int compare_row(const struct replay_row *row, const char *kind, const char *key)
{
    int order = strcmp(row->kind, kind);
    return order != 0 ? order : strcmp(row->key, key);
}

/* `bytes` NULL: it is kept no more. */
static void put_row(struct replay *replay, const char *kind, const char *key, const struct buffer *bytes)
{
    size_t low = 0, high = replay->n_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_row(&replay->rows[middle], kind, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < replay->n_rows && compare_row(&replay->rows[low], kind, key) == 0;
    if (!is_there && bytes == NULL)
        return;
    if (!is_there) {
        replay->rows = xreallocarray(replay->rows, replay->n_rows + 1, sizeof(*replay->rows));
        memmove(&replay->rows[low + 1], &replay->rows[low], (replay->n_rows++ - low) * sizeof(*replay->rows));
        replay->rows[low] = (struct replay_row){ .kind = xstrdup(kind), .key = xstrdup(key) };
    }
    struct replay_row *row = &replay->rows[low];
    buffer_clear(&row->value);
    if (bytes != NULL) {
        buffer_append(&row->value, bytes->bytes, bytes->length);
        return;
    }
    free(row->kind);
    free(row->key);
    memmove(row, row + 1, (--replay->n_rows - low) * sizeof(*row));
}

static void keep_account(struct replay *replay, uint32_t id, bool is_group)
{
    struct fairshare *fairshare = sched_fairshare(replay->sched);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    (void)snprintf(key, sizeof(key), "%c:%" PRIu32, is_group ? 'g' : 'u', id);
    account_encode(fairshare, fairshare_account(fairshare, id, is_group ? ACCOUNT_GROUP : ACCOUNT_USER),
        replay->at_ms, &bytes);
    put_row(replay, "usage", key, &bytes);
}

static void keep_history(void *arg, const char *name, const struct buffer *bytes)
{
    put_row(arg, "history", name, bytes);
}

void replay_keep_accounts(struct replay *replay, const struct job *job, uint64_t command_hash)
{
    struct history_key history_key;
    struct class_key key = replay_key(job, command_hash);
    struct error err;
    keep_account(replay, job->uid, false);
    keep_account(replay, job_group(job), true);
    if (job->state != JOB_DONE || request_from_ask(job->ask, &key.request, &err) < 0)
        return;
    sched_history_key(replay->sched, &key, &history_key);
    history_each_of(sched_history(replay->sched), &history_key, keep_history, replay);
    request_clear(&key.request);
}

/* --- the start --- */

static int load_rows(struct replay *replay, const char *kind, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < replay->n_rows; i++) {
        const struct replay_row *row = &replay->rows[i];
        if (strcmp(row->kind, kind) != 0)
            continue;
        if (strcmp(kind, "usage") == 0)
            r = account_decode(sched_fairshare(replay->sched), row->value.bytes, row->value.length, err);
        else
            r = history_decode(
                sched_history(replay->sched), row->key, row->value.bytes, row->value.length, err);
    }
    return r;
}

/* As the store has them: in order of their numbers as texts. */
static int by_key(const void *a, const void *b)
{
    char left[24], right[24];
    (void)snprintf(left, sizeof(left), "%" PRIu64, ((const struct cluster_change *)a)->reservation);
    (void)snprintf(right, sizeof(right), "%" PRIu64, ((const struct cluster_change *)b)->reservation);
    return strcmp(left, right);
}

int replay_start(struct replay *replay, const char *text, struct error *err)
{
    struct sched_settings settings;
    struct sched_callbacks callbacks = replay_callbacks;
    callbacks.arg = replay;
    int r = settings_text_read(text, &settings, err);
    if (r < 0)
        return r;
    sched_free(replay->sched);
    replay->sched = sched_new(&settings, &callbacks);
    replay->counts.starts++;
    for (size_t i = 0; i < replay->n_sizes; i++)
        (void)cluster_take_node(sched_known(replay->sched), &replay->sizes[i]);
    r = read_accounts(text, replay, err);
    if (r == 0)
        r = read_partitions(text, replay, 0, err);
    if (r == 0)
        r = load_rows(replay, "history", err);
    if (replay->n_reservations > 0)
        qsort(replay->reservations, replay->n_reservations, sizeof(*replay->reservations), by_key);
    for (size_t i = 0; r == 0 && i < replay->n_reservations; i++)
        r = replay_load_reservation(replay, &replay->reservations[i], err);
    if (r == 0)
        r = load_rows(replay, "usage", err);
    for (size_t i = 0; r == 0 && i < replay->n_jobs; i++) {
        replay_admit_again(&replay->jobs[i]);
        replay->jobs[i].is_park_barred = false; // it is measured anew
        if (replay->jobs[i].job != NULL)
            r = replay_take_up(replay, replay->jobs[i].job, err);
    }
    return r;
}

int replay_configure(struct replay *replay, const char *text, struct error *err)
{
    struct sched_settings settings;
    struct fairshare *fairshare = sched_fairshare(replay->sched);
    int r = settings_text_read(text, &settings, err);
    fairshare->has_group_shares = false;
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        account->shares = 1;
    if (r == 0)
        r = read_accounts(text, replay, err);
    if (r < 0)
        return r;
    sched_configure(replay->sched, replay->at_ms, &settings);
    r = read_accounts(text, replay, err);
    return r == 0 ? read_partitions(text, replay, replay->at_ms, err) : r;
}
