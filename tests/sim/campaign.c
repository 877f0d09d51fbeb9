/* SPDX-License-Identifier: MIT */
/*
 *   sim_box [-j WORKERS] [SEED [COUNT]]
 *
 * Runs one history for each seed. With several workers the seeds are dealt out among processes, each of which
 * keeps its sums in memory that all share; a worker that dies takes only the seed with it that it was at,
 * which is then a bad one.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"

#define SEEDS       10U  // without arguments; `make soak` takes thousands
#define SEEDS_ALL   200U // so many must show every kind of happening
#define RULE_PARKS  4U   // by the rule that short jobs go first, on average of the histories for that
#define WORKERS_MAX 64U

struct worker { // shared with its process
    struct tally tally;
    uint64_t next; // the seed that it is at
    uint64_t bad;
};

struct campaign {
    uint64_t first, count;
    size_t n_workers;
    struct worker *workers;
};

static void work(const struct campaign *campaign, struct worker *worker)
{
    for (; worker->next < campaign->first + campaign->count; worker->next += campaign->n_workers) {
        worker->bad += !box_run_seed(worker->next, &worker->tally);
        (void)fflush(stdout);
    }
}

static pid_t fork_worker(const struct campaign *campaign, struct worker *worker)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    work(campaign, worker);
    exit(0); // not _exit: a sanitizer looks for leaks now
}

/* Starts a worker again behind the seed at which it died. */
static void run_workers(const struct campaign *campaign)
{
    pid_t pids[WORKERS_MAX];
    size_t n_running = 0;
    for (size_t i = 0; i < campaign->n_workers; i++) {
        pids[i] = fork_worker(campaign, &campaign->workers[i]);
        n_running += pids[i] > 0;
    }
    while (n_running > 0) {
        int status = 0;
        pid_t pid = wait(&status);
        size_t i = 0;
        while (i < campaign->n_workers && pids[i] != pid)
            i++;
        if (pid < 0 || i == campaign->n_workers)
            continue;
        struct worker *worker = &campaign->workers[i];
        bool is_through = worker->next >= campaign->first + campaign->count;
        n_running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_through)
            continue;
        worker->bad++;
        (void)printf("seed %" PRIu64 ": the worker ended with status %d\n", worker->next, status);
        worker->next += campaign->n_workers;
        pids[i] = is_through ? -1 : fork_worker(campaign, worker);
        n_running += pids[i] > 0;
    }
}

static int report(const struct campaign *campaign)
{
    struct tally sum = { 0 };
    uint64_t bad = 0;
    for (size_t i = 0; i < campaign->n_workers; i++) {
        tally_add(&sum, &campaign->workers[i].tally);
        bad += campaign->workers[i].bad;
    }
    (void)printf(
        "%" PRIu64 " seeds from %" PRIu64 " on, %" PRIu64 " bad: ", campaign->count, campaign->first, bad);
    tally_print(&sum);
    uint64_t n_parks = sum.counts[TALLY_PARKS_RULE], n_rule = sum.counts[TALLY_RULE_HISTORIES];
    (void)printf(
        "parks by the rule per history for them: %.1f\n", n_rule > 0 ? (double)n_parks / (double)n_rule : 0);
    bool is_thin = campaign->count >= SEEDS_ALL && n_parks < RULE_PARKS * n_rule;
    if (is_thin)
        (void)printf("there should be %u at least\n", RULE_PARKS);
    const char *missing = campaign->count >= SEEDS_ALL ? tally_missing(&sum) : NULL;
    if (missing != NULL)
        (void)printf("in so many seeds this should have happened: %s\n", missing);
    return bad > 0 || missing != NULL || is_thin;
}

/* In order of their places: first seed, count. */
static int read_numbers(struct campaign *campaign, int count, char **words)
{
    uint64_t *const numbers[] = { &campaign->first, &campaign->count };
    campaign->first = 1;
    campaign->count = count == 1 ? 1 : SEEDS;
    for (int i = 0; i < count; i++) {
        char *end = NULL;
        if (i == 2)
            return -1;
        *numbers[i] = strtoull(words[i], &end, 10);
        if (*words[i] == '\0' || *end != '\0')
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct campaign campaign = { .n_workers = 1 };
    bool has_workers = argc > 2 && strcmp(argv[1], "-j") == 0;
    int at = has_workers ? 3 : 1;
    if (has_workers)
        campaign.n_workers = strtoull(argv[2], NULL, 10);
    if (campaign.n_workers == 0 || campaign.n_workers > WORKERS_MAX ||
        read_numbers(&campaign, argc - at, argv + at) < 0) {
        (void)fprintf(stderr, "usage: sim_box [-j WORKERS] [SEED [COUNT]]\n");
        return 2;
    }
    size_t size = campaign.n_workers * sizeof(*campaign.workers);
    campaign.workers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (campaign.workers == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < campaign.n_workers; i++)
        campaign.workers[i].next = campaign.first + i;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (campaign.n_workers == 1)
        work(&campaign, &campaign.workers[0]);
    else
        run_workers(&campaign);
    int status = report(&campaign);
    (void)munmap(campaign.workers, size);
    return status;
}
