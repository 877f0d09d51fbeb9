/* SPDX-License-Identifier: MIT */
/*
 * The spool shows what is running: an entry with "started" and without "exit". Its directory is read with
 * every report, once a second, so launching and ending attempts is not slowed down.
 *
 * Measuring an attempt takes about twenty system calls. Attempts with GPUs are measured with every report,
 * because idleness and energy are calculated from samples. The values of other attempts are counters and
 * peaks, so at most TURNS_MAX of these are measured per report, in turns. A node with thousands of them has
 * no more work.
 */
#include "agent/gpu/usage_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/fault.h"
#include "agent/gpu/owner.h"
#include "agent/host/notices.h"
#include "agent/usage/host.h"
#include "agent/usage/meter.h"
#include "agent/usage/reported.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "job/launch.h"
#include "job/share.h"

#define KEEP_MS   5000 // maximum age of data that is lost if the agent is killed
#define TURNS_MAX 200U // attempts without GPUs that are measured per report

/* A running attempt. */
struct watched {
    struct spool_id id;
    struct launch_spec spec;
    struct launch_started started;
    struct usage_meter meter;
    int64_t kept_ms; // when the meter was last written, boot clock; 0: not by this agent
    bool is_there;   // its spool entry exists, in the present round
    bool is_over;
    bool is_adopted; // not started by mgpu: it may outlive the attempt
    bool is_on_gpu;  // one of its processes was on a GPU in the present report
    bool is_new;     // it has values that have not been reported
};

/* The process of an adoption that is still waiting. */
struct awaited {
    uint64_t job;
    pid_t pid;
    uint64_t start;
};

/* A process on a GPU in the last sample. */
struct sighting {
    pid_t pid;
    uint32_t gpu;
};

struct usage_watch {
    int spool_fd;
    char *proc;
    struct gpu_owners *owners;
    struct watched **watched; // in the order of their ids
    size_t count;
    size_t turn; // the first attempt without GPUs to be measured next
    struct awaited *awaited;
    size_t n_awaited;
    struct sighting *sightings;
    size_t n_sightings;
};

static int open_entry(const struct usage_watch *watch, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    return openat(watch->spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static const struct spool_id *id_at(const void *list, size_t index)
{
    struct watched *const *watched = list;
    return &watched[index]->id;
}

/* The position of the id, or the position at which to insert it. */
static size_t place_of(const struct usage_watch *watch, const struct spool_id *id)
{
    return spool_id_position(watch->watched, watch->count, id_at, id);
}

static struct watched *find(const struct usage_watch *watch, const struct spool_id *id)
{
    size_t at = place_of(watch, id);
    bool is_known = at < watch->count && spool_id_equal(&watch->watched[at]->id, id);
    return is_known ? watch->watched[at] : NULL;
}

static void insert(struct usage_watch *watch, struct watched *watched)
{
    size_t at = place_of(watch, &watched->id);
    watch->watched = xreallocarray(watch->watched, watch->count + 1, sizeof(struct watched *));
    memmove(&watch->watched[at + 1], &watch->watched[at], (watch->count - at) * sizeof(struct watched *));
    watch->watched[at] = watched;
    watch->count++;
}

/* --- the meters' files --- */

/* An attempt whose usage cannot be stored is still measured. */
static void keep(const struct usage_watch *watch, struct watched *watched, int64_t boot_ms)
{
    const struct job_usage *usage = watched->meter.usage.items;
    _cleanup_close_ int dirfd = open_entry(watch, &watched->id);
    if (dirfd < 0 || usage->sampled_ms == 0)
        return;
    watched->kept_ms = boot_ms;
    int r = file_write_record(dirfd, SPOOL_USAGE, &usage_meter_record, &watched->meter, false);
    if (r < 0)
        log_job(LOG_WARNING, watched->id.job, "cannot store its usage: %s", strerror(-r));
}

static bool load_meter(int dirfd, const struct spool_id *id, struct usage_meter *ret)
{
    if (file_read_record(dirfd, SPOOL_USAGE, &usage_meter_record, ret, NULL) < 0)
        return false;
    if (ret->job == id->job && ret->attempt == id->attempt && ret->usage.count == 1)
        return true;
    usage_meter_clear(ret);
    return false;
}

/* --- the running attempts --- */

static void watched_free(struct watched *watched)
{
    record_clear(&launch_spec_record, &watched->spec);
    record_clear(&launch_started_record, &watched->started);
    usage_meter_clear(&watched->meter);
    free(watched);
}

static void open_meter(struct watched *watched, int dirfd, int64_t boot_ms, int64_t wall_ms)
{
    int64_t began_ms = launch_started_boot_ms(&watched->started, boot_ms, wall_ms);
    size_t n_grants = watched->spec.gpus.count;
    bool is_loaded = load_meter(dirfd, &watched->id, &watched->meter);
    if (is_loaded && watched->meter.gpus.count != n_grants) {
        usage_meter_clear(&watched->meter);
        is_loaded = false;
    }
    if (!is_loaded)
        usage_meter_init(&watched->meter, watched->id.job, watched->id.attempt, n_grants, began_ms);
    if (watched->spec.is_early)
        watched->meter.unused_from_ms = 0; // it may have waited for its GPUs, as its record shows
    usage_meter_enforce(&watched->meter, watched->spec.share, watched->spec.share_why);
}

/* Only attempts that have started and not ended. */
static void watch_entry(
    struct usage_watch *watch, const struct spool_id *id, int64_t boot_ms, int64_t wall_ms)
{
    _cleanup_close_ int dirfd = open_entry(watch, id);
    struct launch_started started;
    struct launch_spec spec;
    if (dirfd < 0 || faccessat(dirfd, SPOOL_EXIT, F_OK, 0) == 0 ||
        file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return;
    if (file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0) {
        record_clear(&launch_started_record, &started);
        return;
    }
    struct watched *watched = xcalloc(1, sizeof(*watched));
    watched->id = *id;
    watched->spec = spec;
    watched->started = started;
    watched->is_there = true;
    watched->is_adopted = faccessat(dirfd, SPOOL_ADOPTED, F_OK, 0) == 0;
    open_meter(watched, dirfd, boot_ms, wall_ms);
    insert(watch, watched);
}

void usage_watch_reload(struct usage_watch *watch, const struct spool_id *id)
{
    struct watched *watched = find(watch, id);
    struct launch_spec spec;
    _cleanup_close_ int dirfd = open_entry(watch, id);
    if (watched == NULL || dirfd < 0 ||
        file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return;
    record_clear(&launch_spec_record, &watched->spec);
    watched->spec = spec;
}

/* An attempt is not measured after its end, which its shepherd may have written since the last check. */
static bool has_ended(const struct usage_watch *watch, struct watched *watched)
{
    char name[SPOOL_NAME_SIZE], path[SPOOL_NAME_SIZE + sizeof(SPOOL_EXIT)];
    spool_name(&watched->id, name);
    (void)snprintf(path, sizeof(path), "%s/" SPOOL_EXIT, name);
    if (!watched->is_over && faccessat(watch->spool_fd, path, F_OK, 0) == 0)
        watched->is_over = true;
    return watched->is_over;
}

static void read_spool(struct usage_watch *watch, int64_t boot_ms, int64_t wall_ms)
{
    int fd = openat(watch->spool_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct spool_id id;
        /* The usage of exec steps counts as the job's. */
        if (!spool_parse_name(entry->d_name, &id) || id.step != 0)
            continue;
        struct watched *known = find(watch, &id);
        if (known != NULL)
            known->is_there = true;
        else
            watch_entry(watch, &id, boot_ms, wall_ms);
    }
    (void)closedir(dir);
}

static void drop_gone(struct usage_watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct watched *watched = watch->watched[i];
        if (watched->is_there)
            watch->watched[kept++] = watched;
        else
            watched_free(watched);
    }
    for (size_t i = 0; i < kept; i++)
        watch->watched[i]->is_there = false;
    watch->count = kept;
}

static struct gpu_claim claim_of(const struct watched *watched)
{
    return (struct gpu_claim){
        .job = watched->id.job,
        .attempt = watched->id.attempt,
        .cgroup = watched->spec.job_cgroup,
        .init_pid = (pid_t)watched->started.init_pid,
        .init_start = watched->started.init_start,
        .is_adopted = watched->is_adopted,
    };
}

/* Adoptions come last: a job started from an adopted shell owns its processes. */
static struct gpu_claim *list_claims(struct usage_watch *watch, size_t *ret_count)
{
    struct gpu_claim *claims = xcalloc(watch->count + watch->n_awaited + 1, sizeof(*claims));
    size_t count = 0;
    for (size_t i = 0; i < watch->count; i++)
        if (!watch->watched[i]->is_adopted)
            claims[count++] = claim_of(watch->watched[i]);
    for (size_t i = 0; i < watch->count; i++)
        if (watch->watched[i]->is_adopted && !has_ended(watch, watch->watched[i]))
            claims[count++] = claim_of(watch->watched[i]);
    for (size_t i = 0; i < watch->n_awaited; i++)
        claims[count++] = (struct gpu_claim){
            .job = watch->awaited[i].job,
            .init_pid = watch->awaited[i].pid,
            .init_start = watch->awaited[i].start,
            .is_adopted = true,
        };
    *ret_count = count;
    return claims;
}

static void find_owners(struct usage_watch *watch, struct record_list *gpus)
{
    size_t count = 0;
    _cleanup_free_ struct gpu_claim *claims = list_claims(watch, &count);
    gpu_owners_fill(watch->owners, gpus, claims, count);
}

static void note_sightings(struct usage_watch *watch, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    watch->n_sightings = 0;
    for (size_t i = 0; i < gpus->count; i++) {
        const struct gpu_process *processes = states[i].processes.items;
        size_t more = watch->n_sightings + states[i].processes.count;
        watch->sightings = xreallocarray(watch->sightings, more + 1, sizeof(*watch->sightings));
        for (size_t k = 0; k < states[i].processes.count; k++)
            watch->sightings[watch->n_sightings++] =
                (struct sighting){ (pid_t)processes[k].pid, states[i].index };
    }
}

/* True if mgpu has suspended it: with cgroups, nothing else shows that all processes were stopped. */
static bool is_suspended(const struct usage_watch *watch, const struct spool_id *id)
{
    struct spool_terms terms = { 0 };
    _cleanup_close_ int dirfd = open_entry(watch, id);
    return dirfd >= 0 && spool_read_terms(dirfd, &terms) && terms.is_suspended != 0;
}

/* True if its GPUs may now be used by other jobs. */
static bool is_parked(const struct usage_watch *watch, const struct spool_id *id)
{
    struct launch_park park;
    _cleanup_close_ int dirfd = open_entry(watch, id);
    if (dirfd < 0 || file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &park, NULL) < 0)
        return false;
    bool is_parked = launch_is_parked(&park);
    record_clear(&launch_park_record, &park);
    return is_parked;
}

/* Reads the status report that its shepherd stores in the spool. */
static void read_reported(const struct usage_watch *watch, struct watched *watched)
{
    _cleanup_close_ int dirfd = open_entry(watch, &watched->id);
    if (dirfd >= 0)
        (void)usage_reported_read(dirfd, watched->meter.usage.items);
}

/* The attempt may still free memory: the controller ends it only if the excess lasts. */
static void note_excess(const struct watched *watched, int64_t wall_ms)
{
    const struct job_usage *usage = watched->meter.usage.items;
    char used[32], cap[32], end[32];
    format_size(usage->gpu_memory_over, used, sizeof(used));
    format_size(usage->gpu_memory_cap, cap, sizeof(cap));
    format_duration(SHARE_OVER_MS, end, sizeof(end));
    _cleanup_free_ char *text =
        xasprintf("it uses %s of GPU memory, and its share is %s; it is ended if this lasts longer than %s",
            used, cap, end);
    log_job(LOG_INFO, watched->id.job, "%s", text);
    if (watched->spec.notices != NULL)
        (void)notices_add(watched->spec.notices, wall_ms, "gpu_mem", text);
}

static void measure(struct usage_watch *watch, struct watched *watched, const struct usage_sample *sample)
{
    const struct job_usage *usage = watched->meter.usage.items;
    struct usage_sample own = *sample;
    usage_host_read(watch->proc, watched->spec.job_cgroup, (pid_t)watched->started.init_pid, &own.host);
    if (watched->spec.memory_cgroup != NULL)
        usage_host_read_v1(watched->spec.memory_cgroup, &own.host);
    own.host.is_paused |= is_suspended(watch, &watched->id);
    _cleanup_free_ char *before = xstrdup(usage->stray);
    bool was_over = usage->gpu_memory_over != 0;
    usage_meter_add(&watched->meter, &watched->spec.gpus, &own);
    watched->is_new = true;
    if (!text_equal(before, usage->stray))
        log_warning("job %" PRIu64 " of uid %u uses GPU %s, which is not allocated to it", watched->id.job,
            watched->spec.uid, usage->stray);
    if (!was_over && usage->gpu_memory_over != 0)
        note_excess(watched, sample->wall_ms);
    read_reported(watch, watched);
    gpu_fault_note(watched->meter.usage.items, &watched->spec.gpus, sample->gpus,
        launch_started_boot_ms(&watched->started, sample->boot_ms, sample->wall_ms));
    if (watched->kept_ms == 0 || sample->boot_ms - watched->kept_ms >= KEEP_MS)
        keep(watch, watched, sample->boot_ms);
}

/* Processes without an attempt are reported too: use of a GPU that was not allocated is noticed at once. */
static void note_users(struct usage_watch *watch, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        const struct gpu_process *processes = states[i].processes.items;
        for (size_t k = 0; k < states[i].processes.count; k++) {
            const struct spool_id id = { .job = processes[k].job, .attempt = processes[k].attempt };
            for (size_t at = place_of(watch, &id); at < watch->count && watch->watched[at]->id.job == id.job;
                 at++)
                watch->watched[at]->is_on_gpu = true;
        }
    }
}

static void measure_running(
    struct usage_watch *watch, struct watched *watched, const struct usage_sample *sample)
{
    if (!has_ended(watch, watched) && !is_parked(watch, &watched->id))
        measure(watch, watched, sample);
    watched->is_on_gpu = false;
}

void usage_watch_add(struct usage_watch *watch, struct record_list *gpus, int64_t boot_ms, int64_t wall_ms)
{
    struct usage_sample sample = { .boot_ms = boot_ms, .wall_ms = wall_ms, .gpus = gpus };
    read_spool(watch, boot_ms, wall_ms);
    drop_gone(watch);
    find_owners(watch, gpus);
    note_sightings(watch, gpus);
    note_users(watch, gpus);
    size_t first = watch->turn < watch->count ? watch->turn : 0, turns = 0;
    for (size_t i = 0; i < watch->count; i++) {
        size_t at = (first + i) % watch->count;
        struct watched *watched = watch->watched[at];
        bool is_always = watched->spec.gpus.count > 0 || watched->is_adopted || watched->is_on_gpu;
        if (!is_always && turns == TURNS_MAX)
            continue;
        measure_running(watch, watched, &sample);
        turns += !is_always;
        if (!is_always)
            watch->turn = at + 1;
    }
}

void usage_watch_own(struct usage_watch *watch, struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    size_t n_processes = 0;
    for (size_t i = 0; i < gpus->count; i++)
        n_processes += states[i].processes.count;
    if (n_processes > 0)
        find_owners(watch, gpus);
}

void usage_watch_usages(const struct usage_watch *watch, struct record_list *ret)
{
    size_t n_new = 0;
    for (size_t i = 0; i < watch->count; i++)
        n_new += watch->watched[i]->is_new;
    struct attempt_usage *usages = xcalloc(n_new, sizeof(*usages));
    *ret = (struct record_list){ usages, 0 };
    for (size_t i = 0; i < watch->count; i++) {
        const struct watched *watched = watch->watched[i];
        bool is_wanted = watched->is_new && !watched->is_over;
        struct job_usage *usage = is_wanted ? usage_meter_read(&watched->meter) : NULL;
        if (usage == NULL)
            continue;
        usages[ret->count++] = (struct attempt_usage){
            .id = watched->id,
            .token = watched->spec.token,
            .usage = { usage, 1 },
            .is_on_terminal = watched->spec.is_tty,
        };
    }
}

void usage_watch_set_new(struct usage_watch *watch, bool is_new)
{
    for (size_t i = 0; i < watch->count; i++)
        watch->watched[i]->is_new = is_new;
}

void usage_watch_clear(struct record_list *usages)
{
    struct attempt_usage *items = usages->items;
    for (size_t i = 0; i < usages->count; i++)
        record_clear(&attempt_usage_record, &items[i]);
    free(items);
    *usages = (struct record_list){ 0 };
}

/* A job can fill its memory and end between two samples. */
static void take_last_peak(struct watched *watched)
{
    struct job_usage *usage = watched->meter.usage.items;
    uint64_t peak = 0;
    if (!usage_host_peak(watched->spec.job_cgroup, watched->spec.memory_cgroup, &peak) ||
        peak <= usage->memory_peak)
        return;
    usage->memory_peak = peak;
    usage->valid |= USAGE_MEMORY;
}

struct job_usage *usage_watch_end(struct usage_watch *watch, const struct spool_id *id)
{
    struct watched *watched = find(watch, id);
    struct usage_meter meter;
    if (watched != NULL) {
        take_last_peak(watched);
        read_reported(watch, watched);
        if (!watched->is_over || watched->kept_ms < watched->meter.last_ms)
            keep(watch, watched, watched->meter.last_ms);
        watched->is_over = true;
        return usage_meter_read(&watched->meter);
    }
    _cleanup_close_ int dirfd = open_entry(watch, id);
    if (dirfd < 0)
        return NULL;
    if (!load_meter(dirfd, id, &meter))
        usage_meter_init(&meter, id->job, id->attempt, 0, 0); // it ended before the first sample
    (void)usage_reported_read(dirfd, meter.usage.items);
    struct job_usage *usage = usage_meter_read(&meter);
    usage_meter_clear(&meter);
    return usage;
}

/* --- adoptions --- */

void usage_watch_unawait(struct usage_watch *watch, uint64_t job)
{
    for (size_t i = 0; i < watch->n_awaited; i++)
        if (watch->awaited[i].job == job)
            watch->awaited[i--] = watch->awaited[--watch->n_awaited];
}

void usage_watch_await(struct usage_watch *watch, uint64_t job, pid_t pid, uint64_t start)
{
    usage_watch_unawait(watch, job);
    watch->awaited = xreallocarray(watch->awaited, watch->n_awaited + 1, sizeof(*watch->awaited));
    watch->awaited[watch->n_awaited++] = (struct awaited){ job, pid, start };
}

uint64_t usage_watch_job_of(struct usage_watch *watch, pid_t pid, int64_t boot_ms, int64_t wall_ms)
{
    size_t count = 0;
    read_spool(watch, boot_ms, wall_ms); // also attempts started since the last sample
    for (size_t i = 0; i < watch->count; i++)
        if ((pid_t)watch->watched[i]->started.shepherd_pid == pid && watch->watched[i]->is_there &&
            !has_ended(watch, watch->watched[i]))
            return watch->watched[i]->id.job;
    struct gpu_claim *claims = list_claims(watch, &count);
    uint64_t job = gpu_owners_job_of(watch->owners, pid, claims, count);
    free(claims);
    return job;
}

bool usage_watch_attempt_of(
    struct usage_watch *watch, pid_t pid, int64_t boot_ms, int64_t wall_ms, struct spool_id *ret)
{
    size_t count = 0;
    read_spool(watch, boot_ms, wall_ms);
    _cleanup_free_ struct gpu_claim *claims = xcalloc(watch->count + 1, sizeof(*claims));
    _cleanup_free_ struct watched **own = xcalloc(watch->count + 1, sizeof(struct watched *));
    for (size_t i = 0; i < watch->count; i++)
        if (!watch->watched[i]->is_adopted) {
            own[count] = watch->watched[i];
            claims[count++] = claim_of(watch->watched[i]);
        }
    const struct gpu_claim *claim = gpu_owners_claim_of(watch->owners, pid, claims, count);
    bool is_running = claim != NULL && !has_ended(watch, own[claim - claims]);
    if (is_running)
        *ret = own[claim - claims]->id;
    return is_running;
}

static bool is_seen_before(const struct sighting *sightings, size_t count, const struct usage_watch *watch,
    const struct gpu_claim *claim)
{
    for (size_t i = 0; i < count; i++)
        if (sightings[i].gpu == sightings[count].gpu &&
            gpu_owners_job_of(watch->owners, sightings[i].pid, claim, 1) != 0)
            return true;
    return false;
}

char *usage_watch_gpus_of(const struct usage_watch *watch, pid_t pid, uint64_t start)
{
    struct gpu_claim claim = { .job = 1, .init_pid = pid, .init_start = start };
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < watch->n_sightings; i++) {
        const struct sighting *sighting = &watch->sightings[i];
        if (gpu_owners_job_of(watch->owners, sighting->pid, &claim, 1) != 0 &&
            !is_seen_before(watch->sightings, i, watch, &claim))
            buffer_printf(&text, "%s%" PRIu32, text.length > 0 ? "," : "", sighting->gpu);
    }
    return text.length > 0 ? buffer_take(&text) : NULL;
}

struct usage_watch *usage_watch_new(int spool_fd, const char *proc)
{
    struct usage_watch *watch = xcalloc(1, sizeof(*watch));
    watch->spool_fd = spool_fd;
    watch->proc = xstrdup(proc);
    watch->owners = gpu_owners_new(proc);
    return watch;
}

void usage_watch_free(struct usage_watch *watch)
{
    if (watch == NULL)
        return;
    for (size_t i = 0; i < watch->count; i++) {
        if (!watch->watched[i]->is_over)
            keep(watch, watch->watched[i], watch->watched[i]->meter.last_ms);
        watched_free(watch->watched[i]);
    }
    free(watch->watched);
    free(watch->awaited);
    free(watch->sightings);
    gpu_owners_free(watch->owners);
    free(watch->proc);
    free(watch);
}
