/* SPDX-License-Identifier: MIT */
/*
 * The run time of an ended job is added to its burst and to up to five cells: of all users, of its user (and
 * group), of the user with this number of GPUs, of the user's command with this number of GPUs, and of those
 * with the same time limit. A burst of n jobs has the weight of 1 + 1/2 + ... + 1/n runs in the cells,
 * because its members are correlated.
 *
 * An estimate starts with the general distribution and is corrected by each cell in turn, from the widest to
 * the narrowest, each time as if the current distribution had the weight of STRENGTH runs: a cell with few
 * runs changes little, one with many decides. The job's burst and its neighbours (history_burst.c) correct it
 * once more; finally, durations below the elapsed time are excluded.
 *
 * Cells are kept in a hash table and in a list by last use; beyond max_cells the oldest is dropped. A run is
 * added to narrow cells first, so a wide cell is never dropped before its narrower ones.
 */
#include "sched/history/history.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/map.h"
#include "base/memory.h"
#include "base/record.h"
#include "base/record_dense.h"
#include "sched/history/history_burst.h"
#include "sched/history/history_cell.h"

#define STRENGTH    16.0
#define FIRST_STAGE 5U // bins before it, up to 45 s, are no stages

struct cell_key {
    uint32_t basis, uid, gid, gpu_milli;
    uint64_t command_hash;
};

struct history_cell {
    struct cell_key key;
    uint32_t samples;
    struct run_histogram runs;
    struct map_link link;
    struct history_cell *newer, *older;
};

/* The last result of learn_levels(): a job that starts has often just been ranked, and the elements of an
 * array have one key. */
struct learnt {
    bool is_valid; // until a cell changes
    struct history_key key;
    struct run_belief belief;
    enum history_basis basis;
    uint32_t samples;
};

struct history {
    size_t max_cells;
    struct learnt *learnt;
    int64_t default_ms;
    struct run_belief prior;
    struct burst_table *bursts;
    struct map cells;
    struct history_cell *newest, *oldest;
    struct cell_key forgotten[BASIS_COMMAND_LIMIT]; // by the last history_add()
    size_t n_forgotten;
};

/* For each level: its name in the store, and the parts of the key that it uses. */
static const struct {
    const char *name;
    bool has_user, has_gpus, has_command, has_limit;
} levels[] = {
    [BASIS_ALL] = { "all", false, false, false, false },
    [BASIS_USER] = { "user", true, false, false, false },
    [BASIS_USER_GPUS] = { "gpus", true, true, false, false },
    [BASIS_COMMAND] = { "command", true, true, true, false },
    [BASIS_COMMAND_LIMIT] = { "limit", true, true, true, true },
};

static_assert(HISTORY_STAGES == RUN_BINS, "a stage is a bin");

#define LEVEL_FIRST BASIS_ALL
#define LEVEL_LAST  BASIS_COMMAND_LIMIT

struct history *history_new(size_t max_cells, int64_t default_ms)
{
    struct history *history = xcalloc(1, sizeof(*history));
    history->max_cells = max_cells > LEVEL_LAST ? max_cells : LEVEL_LAST;
    history->default_ms = default_ms > 0 ? default_ms : 1;
    run_belief_init(&history->prior, history->default_ms);
    history->bursts = burst_table_new();
    history->learnt = xcalloc(1, sizeof(*history->learnt));
    return history;
}

void history_free(struct history *history)
{
    if (history == NULL)
        return;
    while (history->oldest != NULL) {
        struct history_cell *newer = history->oldest->newer;
        free(history->oldest);
        history->oldest = newer;
    }
    burst_table_free(history->bursts);
    map_clear(&history->cells, NULL);
    free(history->learnt);
    free(history);
}

/* A job of this key has the first levels. */
static unsigned last_level(const struct history_key *key)
{
    return key->limit_ms > 0 ? LEVEL_LAST : LEVEL_LAST - 1;
}

static struct cell_key cell_key_of(const struct history_key *key, unsigned level)
{
    uint64_t limit = levels[level].has_limit ? (uint64_t)key->limit_ms * 0x9e3779b97f4a7c15ULL : 0;
    return (struct cell_key){
        .basis = level,
        .uid = levels[level].has_user ? key->uid : 0,
        .gid = levels[level].has_user ? key->gid : 0,
        .gpu_milli = levels[level].has_gpus ? key->gpu_milli : 0,
        .command_hash = levels[level].has_command ? key->command_hash ^ limit : 0,
    };
}

static uint64_t hash_of(const struct cell_key *key)
{
    uint64_t hash = map_hash_add(map_hash(key->command_hash), (uint64_t)key->uid << 32 | key->gid);
    return map_hash_add(hash, (uint64_t)key->basis << 32 | key->gpu_milli);
}

static bool key_equal(const struct cell_key *a, const struct cell_key *b)
{
    return a->basis == b->basis && a->uid == b->uid && a->gid == b->gid && a->gpu_milli == b->gpu_milli &&
           a->command_hash == b->command_hash;
}

static struct history_cell *cell_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct history_cell, link);
}

static uint64_t hash_of_link(const struct map_link *link)
{
    return hash_of(&cell_at(link)->key);
}

static struct history_cell *find_cell(const struct history *history, const struct cell_key *key)
{
    struct map_link *link = map_chain(&history->cells, hash_of(key));
    while (link != NULL && !key_equal(&cell_at(link)->key, key))
        link = link->next;
    return link != NULL ? cell_at(link) : NULL;
}

static void enter_list(struct history *history, struct history_cell *cell)
{
    cell->older = history->newest;
    cell->newer = NULL;
    *(cell->older != NULL ? &cell->older->newer : &history->oldest) = cell;
    history->newest = cell;
}

static void leave_list(struct history *history, struct history_cell *cell)
{
    *(cell->older != NULL ? &cell->older->newer : &history->oldest) = cell->newer;
    *(cell->newer != NULL ? &cell->newer->older : &history->newest) = cell->older;
}

static void forget_oldest(struct history *history)
{
    struct history_cell *cell = history->oldest;
    if (cell->key.basis ==
        BASIS_ALL) { // becomes the oldest only after a restart, which does not know the order
        leave_list(history, cell);
        enter_list(history, cell);
        cell = history->oldest;
    }
    if (history->n_forgotten < LEVEL_LAST)
        history->forgotten[history->n_forgotten++] = cell->key;
    map_remove(&history->cells, &cell->link, hash_of_link);
    leave_list(history, cell);
    free(cell);
}

/* The cell, created if it is new, moved to the newest end of the list. */
static struct history_cell *touch_cell(struct history *history, const struct cell_key *key)
{
    history->learnt->is_valid = false;
    struct history_cell *cell = find_cell(history, key);
    if (cell != NULL) {
        leave_list(history, cell);
        enter_list(history, cell);
        return cell;
    }
    if (history->cells.count >= history->max_cells)
        forget_oldest(history);
    cell = xcalloc(1, sizeof(*cell));
    cell->key = *key;
    map_add(&history->cells, &cell->link, hash_of_link);
    enter_list(history, cell);
    return cell;
}

/* --- bursts --- */

uint64_t history_burst(struct history *history, uint64_t class_hash, int64_t submit_ms)
{
    return burst_join(history->bursts, class_hash, submit_ms);
}

void history_burst_hold(struct history *history, uint64_t number)
{
    struct burst *burst = burst_find(history->bursts, number);
    if (burst != NULL)
        burst_hold(history->bursts, burst);
}

void history_burst_leave(struct history *history, uint64_t number)
{
    struct burst *burst = burst_find(history->bursts, number);
    if (burst != NULL)
        burst_leave(history->bursts, burst);
}

void history_burst_set_owner(struct history *history, uint64_t number, void *owner)
{
    struct burst *burst = burst_find(history->bursts, number);
    if (burst != NULL)
        *burst_owner(burst) = owner;
}

void *history_burst_owner(const struct history *history, uint64_t number)
{
    struct burst *burst = burst_find(history->bursts, number);
    return burst != NULL ? *burst_owner(burst) : NULL;
}

size_t history_burst_near(const struct history *history, uint64_t number, void *owners[HISTORY_NEAR])
{
    struct burst *near[BURST_NEAR], *burst = burst_find(history->bursts, number);
    unsigned n_near = burst != NULL ? burst_near(burst, near) : 0;
    size_t count = 0;
    for (unsigned i = 0; i < n_near; i++)
        if (*burst_owner(near[i]) != NULL)
            owners[count++] = *burst_owner(near[i]);
    return count;
}

/* --- evidence --- */

unsigned history_stage(int64_t elapsed_ms)
{
    unsigned bin = run_bin_of(elapsed_ms);
    return bin >= FIRST_STAGE ? bin : 0;
}

int64_t history_stage_ms(unsigned stage)
{
    return stage > 0 ? run_bin_start_ms(stage) : 0;
}

int64_t history_next_stage_ms(int64_t elapsed_ms)
{
    unsigned bin = run_bin_of(elapsed_ms) + 1;
    return bin >= RUN_BINS ? INT64_MAX : run_bin_start_ms(bin > FIRST_STAGE ? bin : FIRST_STAGE);
}

void history_survived(struct history *history, uint64_t number, unsigned known, unsigned stage)
{
    struct burst *burst = burst_find(history->bursts, number);
    if (burst != NULL && stage != known)
        burst_survived(burst, known, stage);
}

/* Adds it to the burst. Returns the number of ended members, at least 1. */
static uint32_t add_to_burst(struct history *history, uint64_t number, unsigned known, int64_t run_ms)
{
    struct burst *burst = burst_find(history->bursts, number);
    uint32_t running;
    if (burst == NULL)
        return 1;
    burst_ended(burst, known, run_bin_of(run_ms));
    return burst_count(burst, &running);
}

void history_add(struct history *history, const struct history_key *key, unsigned known, int64_t run_ms)
{
    uint32_t ended = add_to_burst(history, key->burst, known, run_ms);
    history->n_forgotten = 0;
    for (unsigned level = last_level(key); level >= LEVEL_FIRST; level--) {
        const struct cell_key cell_key = cell_key_of(key, level);
        struct history_cell *cell = touch_cell(history, &cell_key);
        run_histogram_add(&cell->runs, run_ms, ended < RUN_UNIT ? RUN_UNIT / ended : 1);
        cell->samples += cell->samples < UINT32_MAX;
    }
}

/* --- estimates --- */

/* The distribution for all jobs with this key, of any burst, and where most of it comes from. */
static void learn_levels(const struct history *history, const struct history_key *key, struct learnt *ret)
{
    double parts[LEVEL_LAST + 1] = { 0 }; // part of the distribution that comes from each level
    *ret = (struct learnt){ .is_valid = true, .key = *key, .belief = history->prior, .basis = BASIS_NONE };
    for (unsigned level = LEVEL_FIRST; level <= last_level(key); level++) {
        const struct cell_key cell_key = cell_key_of(key, level);
        const struct history_cell *cell = find_cell(history, &cell_key);
        if (cell == NULL)
            continue;
        double part = run_belief_learn(&ret->belief, &cell->runs, STRENGTH);
        for (unsigned wider = LEVEL_FIRST; wider < level; wider++)
            parts[wider] *= 1 - part;
        parts[level] = part;
        if (ret->basis == BASIS_NONE || part >= parts[ret->basis]) {
            ret->basis = (enum history_basis)level;
            ret->samples = cell->samples;
        }
    }
}

static bool is_of(const struct learnt *learnt, const struct history_key *key)
{
    return learnt->is_valid && learnt->key.uid == key->uid && learnt->key.gid == key->gid &&
           learnt->key.gpu_milli == key->gpu_milli && learnt->key.command_hash == key->command_hash &&
           learnt->key.limit_ms == key->limit_ms;
}

static void learn_burst(const struct history *history, const struct history_key *key, int64_t elapsed_ms,
    struct run_belief *belief, struct estimate *ret)
{
    const struct burst *burst = burst_find(history->bursts, key->burst);
    uint32_t running;
    if (burst == NULL)
        return;
    burst_belief(history->bursts, burst, belief);
    uint32_t ended = burst_count(burst, &running);
    if (running > 0 && history_stage(elapsed_ms) > 0)
        running--; // itself
    if (ended + running == 0)
        return;
    ret->basis = BASIS_BURST;
    ret->samples = ended;
    ret->running = running;
}

static int64_t whole_ms(double ms, int64_t elapsed_ms)
{
    if (ms >= (double)INT64_MAX)
        return INT64_MAX;
    return ms < (double)elapsed_ms + 1 ? elapsed_ms + 1 : llround(ms);
}

void history_estimate(const struct history *history, const struct history_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret)
{
    if (elapsed_ms < 0)
        elapsed_ms = 0;
    if (!is_of(history->learnt, key))
        learn_levels(history, key, history->learnt);
    struct run_belief belief = history->learnt->belief;
    *ret = (struct estimate){ .basis = history->learnt->basis, .samples = history->learnt->samples };
    if (key->limit_ms > 0)
        run_belief_limit(&belief, key->limit_ms);
    learn_burst(history, key, elapsed_ms, &belief, ret);
    if (key->limit_ms > 0)
        run_belief_limit(&belief, key->limit_ms);
    bool is_assumed = ret->basis == BASIS_NONE && elapsed_ms < history->default_ms;
    if ((wanted & ESTIMATE_ORDER) != 0)
        ret->order_ms =
            is_assumed ? history->default_ms : whole_ms(run_belief_order_ms(&belief, elapsed_ms), elapsed_ms);
    if ((wanted & (ESTIMATE_LIKELY | ESTIMATE_SAFE)) != 0)
        ret->likely_ms = is_assumed ? history->default_ms
                                    : whole_ms(run_belief_quantile_ms(&belief, elapsed_ms, 0.5), elapsed_ms);
    if ((wanted & ESTIMATE_SAFE) != 0) {
        int64_t mean_ms = whole_ms(run_belief_mean_ms(&belief, elapsed_ms), elapsed_ms);
        ret->safe_ms = mean_ms < ret->likely_ms ? ret->likely_ms : mean_ms;
    }
    if ((wanted & ESTIMATE_INDEX) != 0)
        ret->index_ms =
            whole_ms(run_belief_index_ms(&belief, history_stage_ms(history_stage(elapsed_ms))), 0);
}

/* --- what outlives a restart --- */

/* A cell in stored form: `weights` has six hexadecimal digits for each bin up to the last nonzero one. */
struct cell_state {
    struct cell_key key;
    uint32_t samples;
    char *weights;
};

#define WEIGHT_DIGITS 6U

static const struct record_field state_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct cell_state, key.basis, 0),
    RECORD_FIELD(2, RECORD_U32, struct cell_state, key.uid, 0),
    RECORD_FIELD(3, RECORD_U32, struct cell_state, key.gid, 0),
    RECORD_FIELD(4, RECORD_U32, struct cell_state, key.gpu_milli, 0),
    RECORD_FIELD(5, RECORD_U64, struct cell_state, key.command_hash, 0),
    RECORD_FIELD(6, RECORD_U32, struct cell_state, samples, 0),
    RECORD_FIELD(7, RECORD_STRING, struct cell_state, weights, RUN_BINS *WEIGHT_DIGITS),
};

const struct record_type history_cell_record =
    RECORD_TYPE(71, "run history", struct cell_state, state_fields);

#define CELL_NAME_SIZE 80U

static void cell_name(const struct cell_key *key, char name[CELL_NAME_SIZE])
{
    (void)snprintf(name, CELL_NAME_SIZE, "%s:%" PRIu32 ":%" PRIu32 ":%" PRIu32 ":%016" PRIx64,
        levels[key->basis].name, key->uid, key->gid, key->gpu_milli, key->command_hash);
}

void history_each_of(const struct history *history, const struct history_key *key,
    void (*visit)(void *arg, const char *name, const struct buffer *bytes), void *arg)
{
    char name[CELL_NAME_SIZE];
    for (size_t i = 0; i < history->n_forgotten; i++) {
        cell_name(&history->forgotten[i], name);
        visit(arg, name, NULL);
    }
    for (unsigned level = LEVEL_FIRST; level <= last_level(key); level++) {
        const struct cell_key cell_key = cell_key_of(key, level);
        const struct history_cell *cell = find_cell(history, &cell_key);
        if (cell == NULL)
            continue;
        char weights[RUN_BINS * WEIGHT_DIGITS + 1] = "";
        size_t n_bins = RUN_BINS;
        while (n_bins > 0 && cell->runs.weights[n_bins - 1] == 0)
            n_bins--;
        for (size_t i = 0; i < n_bins; i++)
            (void)snprintf(weights + i * WEIGHT_DIGITS, WEIGHT_DIGITS + 1, "%06x",
                (unsigned)(cell->runs.weights[i] & 0xffffff));
        const struct cell_state state = { .key = cell_key, .samples = cell->samples, .weights = weights };
        _cleanup_buffer_ struct buffer bytes = { 0 };
        record_encode_dense(&history_cell_record, &state, &bytes);
        cell_name(&cell_key, name);
        visit(arg, name, &bytes);
    }
}

static bool read_weights(const char *text, struct run_histogram *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = text != NULL ? strlen(text) : 0;
    uint64_t sum = 0;
    *ret = (struct run_histogram){ 0 };
    for (size_t i = 0; i < length; i++) {
        const char *digit = strchr(digits, text[i]);
        if (digit == NULL)
            return false;
        uint32_t *weight = &ret->weights[i / WEIGHT_DIGITS];
        *weight = *weight << 4 | (uint32_t)(digit - digits);
    }
    for (size_t i = 0; i < RUN_BINS; i++)
        sum += ret->weights[i];
    return length % WEIGHT_DIGITS == 0 && sum <= (uint64_t)RUN_FADE * RUN_UNIT;
}

int history_decode(
    struct history *history, const char *name, const uint8_t *bytes, size_t length, struct error *err)
{
    struct cell_state state;
    int r = record_decode(&history_cell_record, bytes, length, &state, err);
    if (r < 0)
        return r;
    char expected[CELL_NAME_SIZE] = "";
    struct run_histogram runs;
    bool is_good = state.key.basis >= LEVEL_FIRST && state.key.basis <= LEVEL_LAST;
    if (is_good)
        cell_name(&state.key, expected);
    is_good = is_good && strcmp(name, expected) == 0 && read_weights(state.weights, &runs);
    record_clear(&history_cell_record, &(struct cell_state){ .weights = state.weights });
    if (!is_good)
        return error_set(err, -EBADMSG, "the run history \"%s\" is invalid", name);
    struct history_cell *cell = touch_cell(history, &state.key);
    cell->samples = state.samples;
    cell->runs = runs;
    return 0;
}
