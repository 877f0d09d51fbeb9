/* SPDX-License-Identifier: MIT */
/*
 * A hidden Markov model. A burst has an unknown centre, one of the duration bins; each member's duration is
 * drawn around it: with probability 1 - STRAY in a bin k bins away, e times less likely with each bin, else
 * in any bin. A burst has the centre of the previous burst of its kind with probability
 *
 *     r = STICK * (1 + gap / STICK_MS) ^ -STICK_FADE        (gap: between their submits)
 *
 * and else one drawn from the distribution of all jobs of the kind. An ended member contributes the
 * probability of its bin, a running one the probability of lasting as long as it has. Both are only counts of
 * members per bin, so evidence is exact, can be removed, and costs nothing for a burst without any. The
 * centre's distribution is the product of the contributions of earlier bursts, of later bursts, and of its
 * own members (forward-backward algorithm: Baum et al., Annals of Mathematical Statistics 41, 1970), over the
 * nearest few bursts with evidence.
 *
 * That jobs of a user submitted within seconds of each other take similar times (correlation of the
 * logarithms about .9, falling to .5 after hours) was measured in traces of Philly (Jeon et al., ATC 2019)
 * and HPC2N (Parallel Workloads Archive); all parameters were chosen on these.
 *
 * Bursts of one class form a chain in order of creation. Unreferenced ones are kept for their evidence; the
 * oldest of them are dropped first.
 */
#include "sched/history/history_burst.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/containers/map.h"
#include "base/memory.h"

#define GAP_MS     INT64_C(30000) // between submissions of one burst: a person's next command takes longer
#define STRAY      0.1            // fraction of members unrelated to the others, such as those that crash
#define FALL       0.36787944117144233 // e^-1, with each bin away from the centre
#define STICK      0.9                 // bursts that follow at once and are like the one before
#define STICK_MS   60000.0             // time over which that begins to fade
#define STICK_FADE 0.15                // how fast it then fades: after a day a third is left
#define HOPS       3U                  // bursts with evidence that are used, on each side
#define STEPS_MAX  32U                 // and bursts altogether
#define FLOOR      1e-9                // minimum probability: evidence may contradict the prior

#define LIVE_MAX 65536U // bursts with jobs: some 25 MB
#define KEPT_MAX 16384U // bursts without

/* Members that ended in a bin, or that are known to run until after its start. */
struct evidence {
    uint32_t count;
    uint8_t bin;
    bool is_ended;
};

/* The likelihood of the evidence for each centre, scaled to a maximum of 1. Computed on demand. */
struct weights {
    bool is_known;
    float parts[RUN_BINS];
};

struct burst {
    uint64_t number, class_hash;
    int64_t first_ms, last_ms; // submissions
    uint32_t jobs;             // that refer to it
    uint32_t n_evidence;
    struct evidence *evidence;
    struct weights *weights; // the combined evidence; NULL while there is at most one piece
    double stick;            // weight of the previous centre that is carried over
    void *owner;
    struct burst *previous, *next;       // of its class
    struct map_link by_number, by_class; // by class; only the last of a chain
    struct burst *older, *newer;         // of those without jobs
};

struct burst_table {
    struct map numbers, classes;
    size_t n_kept;
    struct burst *oldest, *newest; // without jobs
    uint64_t last_number;
    double share[RUN_BINS];               // probability of the centre's own bin, by the centre
    float log_chance[RUN_BINS][RUN_BINS]; // of a member's bin: by that bin, then by the centre
    float log_reach[RUN_BINS][RUN_BINS];  // of reaching a bin
    float one_ended[RUN_BINS][RUN_BINS];  // the evidence of one member that ended there
    float one_runs[RUN_BINS][RUN_BINS];   // or got there
};

/* The most likely centre weighs 1. */
static void weights_of_logs(const float logs[RUN_BINS], float ret[RUN_BINS])
{
    float most = -INFINITY;
    for (size_t k = 0; k < RUN_BINS; k++)
        most = logs[k] > most ? logs[k] : most;
    for (size_t k = 0; k < RUN_BINS; k++)
        ret[k] = expf(logs[k] - most);
}

struct burst_table *burst_table_new(void)
{
    struct burst_table *table = xcalloc(1, sizeof(*table));
    for (int centre = 0; centre < (int)RUN_BINS; centre++) {
        double sum = 0, reach = 0;
        for (int bin = 0; bin < (int)RUN_BINS; bin++)
            sum += pow(FALL, abs(bin - centre));
        table->share[centre] = (1 - STRAY) / sum;
        for (int bin = (int)RUN_BINS - 1; bin >= 0; bin--) {
            double chance = table->share[centre] * pow(FALL, abs(bin - centre)) + STRAY / RUN_BINS;
            reach += chance;
            table->log_chance[bin][centre] = (float)log(chance);
            table->log_reach[bin][centre] = bin > 0 ? (float)log(reach) : 0;
        }
    }
    for (size_t bin = 0; bin < RUN_BINS; bin++) {
        weights_of_logs(table->log_chance[bin], table->one_ended[bin]);
        weights_of_logs(table->log_reach[bin], table->one_runs[bin]);
    }
    return table;
}

static void burst_free(struct burst *burst)
{
    free(burst->evidence);
    free(burst->weights);
    free(burst);
}

static struct burst *by_number(const struct map_link *link)
{
    return MAP_ITEM(link, struct burst, by_number);
}

static struct burst *by_class(const struct map_link *link)
{
    return MAP_ITEM(link, struct burst, by_class);
}

static void release(struct map_link *link)
{
    burst_free(by_number(link));
}

void burst_table_free(struct burst_table *table)
{
    if (table == NULL)
        return;
    map_clear(&table->classes, NULL);
    map_clear(&table->numbers, release);
    free(table);
}

/* --- tables --- */

static uint64_t hash_of_number(const struct map_link *link)
{
    return map_hash(by_number(link)->number);
}

static uint64_t hash_of_class(const struct map_link *link)
{
    return map_hash(by_class(link)->class_hash);
}

struct burst *burst_find(const struct burst_table *table, uint64_t number)
{
    struct map_link *link = number != 0 ? map_chain(&table->numbers, map_hash(number)) : NULL;
    while (link != NULL && by_number(link)->number != number)
        link = link->next;
    return link != NULL ? by_number(link) : NULL;
}

static struct burst *last_of_class(const struct burst_table *table, uint64_t class_hash)
{
    struct map_link *link = map_chain(&table->classes, map_hash(class_hash));
    while (link != NULL && by_class(link)->class_hash != class_hash)
        link = link->next;
    return link != NULL ? by_class(link) : NULL;
}

static void enter_classes(struct burst_table *table, struct burst *burst)
{
    map_add(&table->classes, &burst->by_class, hash_of_class);
}

static void keep(struct burst_table *table, struct burst *burst)
{
    burst->older = table->newest;
    burst->newer = NULL;
    *(burst->older != NULL ? &burst->older->newer : &table->oldest) = burst;
    table->newest = burst;
    table->n_kept++;
}

static void keep_no_more(struct burst_table *table, struct burst *burst)
{
    *(burst->older != NULL ? &burst->older->newer : &table->oldest) = burst->newer;
    *(burst->newer != NULL ? &burst->newer->older : &table->newest) = burst->older;
    table->n_kept--;
}

/* --- members --- */

/* To be called when it or the previous one has a new first or last member. */
static void reckon_stick(struct burst *burst)
{
    if (burst == NULL || burst->previous == NULL)
        return;
    int64_t gap_ms = burst->first_ms - burst->previous->last_ms;
    burst->stick = STICK * pow(1 + (gap_ms > 0 ? (double)gap_ms : 0) / STICK_MS, -STICK_FADE);
}

/* Its neighbours follow each other from now on. */
static void forget(struct burst_table *table, struct burst *burst)
{
    map_remove(&table->numbers, &burst->by_number, hash_of_number);
    if (burst->previous != NULL)
        burst->previous->next = burst->next;
    if (burst->next != NULL) {
        burst->next->previous = burst->previous;
        reckon_stick(burst->next);
    } else {
        map_remove(&table->classes, &burst->by_class, hash_of_class);
        if (burst->previous != NULL)
            enter_classes(table, burst->previous);
    }
    burst_free(burst);
}

/* A job that returns to the queue, by an edit or a restart, is older than the latest burst: its own is one of
 * the last. */
static struct burst *burst_at(struct burst *last, int64_t submit_ms)
{
    unsigned steps = 0;
    for (struct burst *burst = last; burst != NULL && steps < HOPS; burst = burst->previous, steps++)
        if (submit_ms >= burst->first_ms - GAP_MS && submit_ms <= burst->last_ms + GAP_MS)
            return burst;
    return NULL;
}

static struct burst *open_burst(
    struct burst_table *table, struct burst *last, uint64_t class_hash, int64_t submit_ms)
{
    struct burst *burst = xcalloc(1, sizeof(*burst));
    *burst = (struct burst){
        .number = ++table->last_number,
        .class_hash = class_hash,
        .first_ms = submit_ms,
        .last_ms = submit_ms,
        .jobs = 1,
        .previous = last,
    };
    if (last != NULL) {
        map_remove(&table->classes, &last->by_class, hash_of_class);
        last->next = burst;
    }
    reckon_stick(burst);
    enter_classes(table, burst);
    map_add(&table->numbers, &burst->by_number, hash_of_number);
    return burst;
}

void burst_hold(struct burst_table *table, struct burst *burst)
{
    if (burst->jobs++ == 0)
        keep_no_more(table, burst);
}

uint64_t burst_join(struct burst_table *table, uint64_t class_hash, int64_t submit_ms)
{
    struct burst *last = last_of_class(table, class_hash), *burst = burst_at(last, submit_ms);
    if (burst == NULL && table->numbers.count - table->n_kept >= LIVE_MAX)
        return 0;
    if (burst == NULL)
        return open_burst(table, last, class_hash, submit_ms)->number;
    burst_hold(table, burst);
    if (submit_ms < burst->first_ms) {
        burst->first_ms = submit_ms;
        reckon_stick(burst);
    }
    if (submit_ms > burst->last_ms) {
        burst->last_ms = submit_ms;
        reckon_stick(burst->next);
    }
    return burst->number;
}

void burst_leave(struct burst_table *table, struct burst *burst)
{
    if (--burst->jobs > 0)
        return;
    if (burst->n_evidence == 0) {
        forget(table, burst);
        return;
    }
    keep(table, burst);
    if (table->n_kept <= KEPT_MAX)
        return;
    struct burst *oldest = table->oldest;
    keep_no_more(table, oldest);
    forget(table, oldest);
}

/* --- evidence --- */

static void take_back(struct burst *burst, unsigned bin)
{
    for (uint32_t i = 0; i < burst->n_evidence; i++) {
        struct evidence *evidence = &burst->evidence[i];
        if (evidence->is_ended || evidence->bin != bin)
            continue;
        if (--evidence->count == 0)
            *evidence = burst->evidence[--burst->n_evidence];
        if (burst->weights != NULL)
            burst->weights->is_known = false;
        return;
    }
}

static void note(struct burst *burst, unsigned bin, bool is_ended)
{
    if (burst->n_evidence > 0 && burst->weights == NULL)
        burst->weights = xcalloc(1, sizeof(*burst->weights));
    if (burst->weights != NULL)
        burst->weights->is_known = false;
    for (uint32_t i = 0; i < burst->n_evidence; i++) {
        struct evidence *evidence = &burst->evidence[i];
        if (evidence->is_ended != is_ended || evidence->bin != bin)
            continue;
        evidence->count++;
        return;
    }
    burst->evidence = xreallocarray(burst->evidence, burst->n_evidence + 1, sizeof(*burst->evidence));
    burst->evidence[burst->n_evidence++] = (struct evidence){ 1, (uint8_t)bin, is_ended };
}

void burst_survived(struct burst *burst, unsigned known, unsigned bin)
{
    if (known > 0)
        take_back(burst, known);
    if (bin > 0)
        note(burst, bin, false);
}

void burst_ended(struct burst *burst, unsigned known, unsigned bin)
{
    if (known > 0)
        take_back(burst, known);
    note(burst, bin, true);
}

uint32_t burst_count(const struct burst *burst, uint32_t *ret_running)
{
    uint32_t ended = 0;
    *ret_running = 0;
    for (uint32_t i = 0; i < burst->n_evidence; i++)
        *(burst->evidence[i].is_ended ? &ended : ret_running) += burst->evidence[i].count;
    return ended;
}

/* --- beliefs --- */

static void reckon_weights(const struct burst_table *table, const struct burst *burst)
{
    float logs[RUN_BINS] = { 0 };
    for (uint32_t i = 0; i < burst->n_evidence; i++) {
        const struct evidence *evidence = &burst->evidence[i];
        const float *row = (evidence->is_ended ? table->log_chance : table->log_reach)[evidence->bin];
        for (size_t k = 0; k < RUN_BINS; k++)
            logs[k] += (float)evidence->count * row[k];
    }
    weights_of_logs(logs, burst->weights->parts);
    burst->weights->is_known = true;
}

static const float *weights_of(const struct burst_table *table, const struct burst *burst)
{
    const struct evidence *first = burst->evidence;
    if (burst->n_evidence == 1 && first->count == 1)
        return (first->is_ended ? table->one_ended : table->one_runs)[first->bin];
    if (!burst->weights->is_known)
        reckon_weights(table, burst);
    return burst->weights->parts;
}

/* Applies the evidence of its own members; the weight of the most likely centre is unchanged. */
static void weigh(const struct burst_table *table, const struct burst *burst, struct run_belief *belief)
{
    if (burst->n_evidence == 0)
        return;
    const float *weights = weights_of(table, burst);
    for (size_t k = 0; k < RUN_BINS; k++)
        belief->parts[k] *= (double)weights[k];
}

/* From earlier bursts: the distribution of the centre before its own members are considered. */
static void infer_before(const struct burst_table *table, const struct burst *burst,
    const struct run_belief *base, struct run_belief *ret)
{
    const struct burst *from = burst;
    for (unsigned steps = 0, hops = 0; from->previous != NULL && steps < STEPS_MAX && hops < HOPS; steps++) {
        from = from->previous;
        hops += from->n_evidence > 0;
    }
    *ret = *base;
    for (; from != burst; from = from->next) {
        double stick = from->next->stick;
        if (from->n_evidence > 0) {
            for (size_t k = 0; k < RUN_BINS; k++)
                ret->parts[k] += FLOOR;
            weigh(table, from, ret);
            run_belief_scale(ret);
        }
        for (size_t k = 0; k < RUN_BINS; k++)
            ret->parts[k] = stick * ret->parts[k] + (1 - stick) * base->parts[k];
    }
}

/* From the later bursts: the likelihood of each centre. */
static void infer_after(const struct burst_table *table, const struct burst *burst,
    const struct run_belief *base, struct run_belief *ret)
{
    const struct burst *from = burst;
    for (unsigned steps = 0, hops = 0; from->next != NULL && steps < STEPS_MAX && hops < HOPS; steps++) {
        from = from->next;
        hops += from->n_evidence > 0;
    }
    for (size_t k = 0; k < RUN_BINS; k++)
        ret->parts[k] = 1;
    for (; from != burst; from = from->previous) {
        double stick = from->stick, usual = 0;
        weigh(table, from, ret);
        for (size_t k = 0; k < RUN_BINS; k++)
            usual += ret->parts[k] * base->parts[k];
        for (size_t k = 0; k < RUN_BINS; k++)
            ret->parts[k] = 1 - stick + (usual > 0 ? stick * ret->parts[k] / usual : stick);
    }
}

/* Members around the centres: a bin k bins away gets a factor of e^-k, carried from bin to bin. */
static void spread(const struct burst_table *table, const struct run_belief *centre, struct run_belief *ret)
{
    double carried = 0;
    for (size_t k = 0; k < RUN_BINS; k++) {
        carried = carried * FALL + centre->parts[k] * table->share[k];
        ret->parts[k] = carried + STRAY / RUN_BINS;
    }
    carried = 0;
    for (size_t k = RUN_BINS; k-- > 0;) {
        ret->parts[k] += carried;
        carried = (carried + centre->parts[k] * table->share[k]) * FALL;
    }
}

void burst_belief(const struct burst_table *table, const struct burst *burst, struct run_belief *belief)
{
    struct run_belief centre, ahead;
    infer_before(table, burst, belief, &centre);
    infer_after(table, burst, belief, &ahead);
    for (size_t k = 0; k < RUN_BINS; k++)
        centre.parts[k] = (centre.parts[k] + FLOOR) * ahead.parts[k];
    weigh(table, burst, &centre);
    run_belief_scale(&centre);
    spread(table, &centre, belief);
}

unsigned burst_near(struct burst *burst, struct burst *ret[BURST_NEAR])
{
    unsigned count = 0;
    ret[count++] = burst;
    for (struct burst *other = burst->previous; other != NULL && count <= HOPS; other = other->previous)
        ret[count++] = other;
    unsigned most = count + HOPS;
    for (struct burst *other = burst->next; other != NULL && count < most; other = other->next)
        ret[count++] = other;
    return count;
}

void **burst_owner(struct burst *burst)
{
    return &burst->owner;
}
