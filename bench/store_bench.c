/* SPDX-License-Identifier: MIT */
/*
 * store_bench [DIR]: what the store costs on the disk of DIR (default: a fresh directory in /tmp), against
 * the same disk's bare fdatasync measured in the same run. Lines are "name value unit".
 *
 * A change is one event with the job row it leads to; the jobs go through their whole life. One batch is
 * under way at a time, as in the controller.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store.h"

#define FLOOR_BYTES  16384
#define FLOOR_SYNCS  1000
#define SECONDS      3.0
#define QUEUED       100000
#define SAMPLES_MAX  200000
#define ENV_ENTRIES  30
#define JOBS_AT_ONCE 64
#define QUEUE_BATCH  1000

struct bench {
    struct store *store;
    struct store_summary summary;
    uint64_t next_seq, next_job, next_batch, durable;
    struct job_spec spec;
    struct job *jobs[JOBS_AT_ONCE];
    size_t turn;
    double samples[SAMPLES_MAX];
    size_t n_samples;
};

static void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "store_bench: %s: %s\n", what, err->message);
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median_ms(struct bench *bench, double part)
{
    qsort(bench->samples, bench->n_samples, sizeof(double), compare);
    return bench->n_samples > 0 ? bench->samples[(size_t)((double)(bench->n_samples - 1) * part)] * 1e3 : 0;
}

static void sample(struct bench *bench, double value)
{
    if (bench->n_samples < SAMPLES_MAX)
        bench->samples[bench->n_samples++] = value;
}

/* The second pass writes over the first one's blocks, as the log does when it starts anew. */
static void measure_floor(struct bench *bench, const char *dir)
{
    static const char bytes[FLOOR_BYTES];
    static const char *const names[] = { "floor_fdatasync_append", "floor_fdatasync_overwrite" };
    _cleanup_free_ char *path = xasprintf("%s/floor", dir);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t pass = 0; fd >= 0 && pass < 2; pass++) {
        bench->n_samples = 0;
        for (off_t i = 0; i < FLOOR_SYNCS; i++) {
            double start = seconds();
            if (pwrite(fd, bytes, sizeof(bytes), i * FLOOR_BYTES) < 0 || fdatasync(fd) < 0)
                exit(1);
            sample(bench, seconds() - start);
        }
        (void)printf("%s %.3f ms\n", names[pass], median_ms(bench, 0.5));
    }
    (void)unlink(path);
}

static void on_durable(void *arg, uint64_t batch)
{
    ((struct bench *)arg)->durable = batch;
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    die("commit", err);
}

static void open_store(struct bench *bench, const char *dir)
{
    const struct store_observer observer = { .arg = bench, .on_durable = on_durable, .on_failed = on_failed };
    struct error err;
    if (store_open(dir, &observer, &bench->store, &bench->summary, &err) < 0)
        die("open", &err);
    bench->next_seq = bench->summary.last_event + 1;
    bench->next_job = bench->summary.last_job + 1;
}

static void commit(struct bench *bench, struct store_batch *batch)
{
    uint64_t id = bench->next_batch;
    struct pollfd ready = { .fd = store_fd(bench->store), .events = POLLIN };
    store_commit(bench->store, batch);
    while (bench->durable < id) {
        (void)poll(&ready, 1, -1);
        store_dispatch(bench->store);
    }
}

static void apply(struct bench *bench, struct store_batch *batch, struct job *job, struct job_event *event)
{
    struct error err;
    event->seq = bench->next_seq++;
    event->job = job->id;
    event->wall_ms = clock_wall_ms();
    if (job_apply(job, event, &err) < 0)
        die("apply", &err);
    _cleanup_(spec_bytes_dropp) struct spec_bytes *spec =
        event->type == EVENT_SUBMITTED ? spec_bytes_new(&bench->spec) : NULL;
    store_batch_add(batch, event, job, spec);
}

static struct job *submit(struct bench *bench, struct store_batch *batch)
{
    struct job *job = job_new(bench->next_job++, &bench->spec);
    struct job_event event = { .type = EVENT_SUBMITTED, .uid = 1000, .gid = 1000 };
    apply(bench, batch, job, &event);
    return job;
}

/* One change: the job whose turn it is goes one step on, and is replaced by a new one after its end. */
static void add_change(struct bench *bench, struct store_batch *batch)
{
    size_t place = bench->turn++ % JOBS_AT_ONCE;
    struct job *job = bench->jobs[place];
    if (job == NULL) {
        bench->jobs[place] = submit(bench, batch);
        return;
    }
    char node[] = "node1", boot[] = "0b7d0f6e-3d5f-4d4b-9d1e-2f1c0a9b8c7d",
         log[] = "/home/user/.mgpu/job.log";
    struct job_event event = { .attempt = job->attempt };
    if (job->state == JOB_QUEUED) {
        char uuid[32];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%zu", place);
        event = (struct job_event){
            .type = EVENT_ALLOCATED, .attempt = 1, .token = job->id, .node = node, .boot_id = boot
        };
        gpu_grants_add(&event.gpus, (uint32_t)place, uuid, 0, 0);
    } else if (job->state == JOB_STARTING) {
        event.type = EVENT_STARTED;
        event.log_path = log;
    } else {
        event.type = EVENT_ENDED;
        event.end = END_EXIT;
        event.run_ms = 10;
    }
    apply(bench, batch, job, &event);
    gpu_grants_clear(&event.gpus);
    if (job->state == JOB_DONE)
        job_free(take_ptr(bench->jobs[place]));
}

static void measure_batches(struct bench *bench, size_t size)
{
    double start = seconds(), end = start + SECONDS, now = start;
    size_t batches = 0;
    bench->n_samples = 0;
    for (; now < end; batches++) {
        struct store_batch *batch = store_batch_new(++bench->next_batch);
        for (size_t i = 0; i < size; i++)
            add_change(bench, batch);
        double handed_over = seconds();
        commit(bench, batch);
        now = seconds();
        sample(bench, now - handed_over);
    }
    (void)printf("batch_of_%zu %.0f changes/s, %.0f commits/s, commit median %.3f ms, p99 %.3f ms\n", size,
        (double)(batches * size) / (now - start), (double)batches / (now - start), median_ms(bench, 0.5),
        median_ms(bench, 0.99));
}

static void count_job(void *arg, struct job *job)
{
    (*(size_t *)arg)++;
    job_free(job);
}

static void ignore(void *arg, const char *sentence)
{
    (void)printf("fsck: %s\n", sentence);
}

static void measure_queue(struct bench *bench, const char *dir)
{
    struct error err;
    double start = seconds();
    for (size_t i = 0; i < QUEUED; i += QUEUE_BATCH) {
        struct store_batch *batch = store_batch_new(++bench->next_batch);
        for (size_t k = 0; k < QUEUE_BATCH; k++)
            job_free(submit(bench, batch));
        commit(bench, batch);
    }
    (void)printf("queue_%d %.3f s\n", QUEUED, seconds() - start);
    measure_batches(bench, 1);
    store_close(take_ptr(bench->store));
    start = seconds();
    open_store(bench, dir);
    double opened = seconds();
    size_t count = 0;
    if (store_load_jobs(bench->store, 1000, count_job, &count, &err) < 0)
        die("load", &err);
    (void)printf(
        "restart_open %.3f s\nrestart_load %.3f s (%zu jobs)\n", opened - start, seconds() - opened, count);
    start = seconds();
    int findings = store_fsck(dir, ignore, NULL, NULL, &err);
    (void)printf("fsck %.3f s (%d findings)\n", seconds() - start, findings);
}

static int remove_entry(const char *path, const struct stat *file, int type, struct FTW *walk)
{
    return remove(path);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char fresh[] = "/tmp/store_bench-XXXXXX";
    const char *dir = argc > 1 ? argv[1] : mkdtemp(fresh);
    if (dir == NULL)
        return 1;
    job_spec_init(&bench.spec);
    strings_add(&bench.spec.command, "true");
    bench.spec.cwd = xstrdup("/home/user");
    for (int i = 0; i < ENV_ENTRIES; i++) {
        _cleanup_free_ char *entry = xasprintf("VARIABLE_%d=some value of middling length, as paths are", i);
        strings_add(&bench.spec.env, entry);
    }
    measure_floor(&bench, dir);
    open_store(&bench, dir);
    static const size_t sizes[] = { 1, 8, 64 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        measure_batches(&bench, sizes[i]);
    measure_queue(&bench, dir);
    store_close(bench.store);
    for (size_t i = 0; i < JOBS_AT_ONCE; i++)
        job_free(bench.jobs[i]);
    job_spec_clear(&bench.spec);
    if (argc == 1)
        (void)nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}
