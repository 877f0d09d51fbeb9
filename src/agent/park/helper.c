/* SPDX-License-Identifier: MIT */
/*
 * To park:    lock every process that uses CUDA, then save the memory of each, then stop all processes.
 * To restore: let all processes run, then restore each, then unlock each.
 *
 * The driver locks, saves and restores a process with the help of a thread within it, so that these calls
 * hang for a process that is stopped: it is stopped last and continued first. Locked, a process blocks in its
 * next call of CUDA, and touches no GPU meanwhile.
 *
 * Until all of them are saved and stopped, every step can be undone, and is undone if one fails: a job that
 * cannot be parked continues to run. The list of saved processes is the only state kept between two helpers.
 * The state of each process is queried from the driver, and changed from there to the desired one.
 */
#include "agent/park/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/park/cuda_api.h"
#include "agent/park/device_map.h"
#include "agent/park/host_memory.h"
#include "agent/park/tree.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/spool.h"
#include "job/launch.h"
#include "job/park.h"

#define ROUNDS_MAX  4     // of listing processes, which may start others between rounds
#define LOCK_MAX_MS 10000 // for one process to finish its work on the GPU
#define LOCK_MIN_MS 50
#define STOP_MAX_MS 5000

struct park_run {
    const struct park_task *task;
    int dirfd;
    struct cuda_api api;
    struct launch_spec spec;
    struct launch_started started;
    struct park_tree tree;
    struct launch_park entry;
    int64_t until_ms;          // boot clock
    bool is_fresh;             // an earlier helper may have touched any process
    struct cuda_gpu_pair *map; // destination of the contents; NULL: the original GPUs
    size_t n_map;
};

static volatile sig_atomic_t is_given_up; // the agent no longer waits

static void on_term(int signal)
{
    is_given_up = 1;
}

/* --- the states of processes --- */

/* The state according to the driver; an error other than "no CUDA here" is reported. */
static int ask_state(struct park_run *run, struct park_process *process, struct error *err)
{
    int state = CUDA_NO_STATE;
    process->has_uvm = park_process_has_uvm(process->pid);
    int error = run->api.state((int)process->pid, &state);
    if (error == CUDA_INVALID_VALUE || error == CUDA_NOT_INITIALIZED) {
        process->state = CUDA_NO_STATE;
        return 0;
    }
    if (error != CUDA_OK && !process_is_alive(process->pid, process->start))
        return 0;
    if (error != CUDA_OK)
        return error_set(err, -EIO, "the driver does not report the state of process %d: %s",
            (int)process->pid, cuda_api_error(&run->api, error));
    if (state < CUDA_RUNNING || state > CUDA_FAILED)
        return error_set(
            err, -EIO, "the driver reports an unknown state %d for process %d", state, (int)process->pid);
    process->state = state;
    return 0;
}

static int fail(const struct park_run *run, const struct park_process *process, const char *what, int error,
    struct error *err)
{
    return error_set(err, -EIO, "the driver cannot %s process %d: %s", what, (int)process->pid,
        cuda_api_error(&run->api, error));
}

static int check_time(const struct park_run *run, struct error *err)
{
    if (is_given_up == 0 && clock_boot_ms() < run->until_ms)
        return 0;
    return error_set(
        err, -ETIMEDOUT, "the driver took longer than %" PRId64 " s", run->task->timeout_ms / 1000);
}

static int lock(struct park_run *run, struct park_process *process, struct error *err)
{
    int64_t left_ms = run->until_ms - clock_boot_ms();
    left_ms = left_ms > LOCK_MAX_MS ? LOCK_MAX_MS : left_ms < LOCK_MIN_MS ? LOCK_MIN_MS : left_ms;
    struct cuda_lock_arguments arguments = { .timeout_ms = (unsigned int)left_ms };
    process->is_touched = true;
    int error = run->api.lock((int)process->pid, &arguments);
    if (error == CUDA_OK)
        process->state = CUDA_LOCKED;
    int r = ask_state(run, process, err);
    if (r < 0 || !process_is_alive(process->pid, process->start))
        return r;
    if (error == CUDA_NOT_READY)
        return error_set(err, -ETIMEDOUT,
            "process %d did not finish its work on the GPU within %" PRId64 " ms", (int)process->pid,
            left_ms);
    if (error != CUDA_OK)
        return fail(run, process, "lock", error, err);
    if (process->state != CUDA_LOCKED)
        return error_set(err, -EIO,
            "the driver reports that it has locked process %d, but that it is running", (int)process->pid);
    return 0;
}

static int save(struct park_run *run, struct park_process *process, struct error *err)
{
    struct cuda_arguments arguments = { 0 };
    int error = run->api.checkpoint((int)process->pid, &arguments);
    if (error == CUDA_OK)
        process->state = CUDA_CHECKPOINTED;
    int r = ask_state(run, process, err);
    if (r < 0 || !process_is_alive(process->pid, process->start))
        return r;
    if (error != CUDA_OK)
        return fail(run, process, "save", error, err);
    if (process->state != CUDA_CHECKPOINTED)
        return error_set(err, -EIO,
            "the driver reports that it has saved process %d, but then that it has not", (int)process->pid);
    return 0;
}

/* Every process that uses CUDA, until a listing finds no new one. */
static int lock_all(struct park_run *run, struct error *err)
{
    bool is_any_new = true;
    for (int round = 0; is_any_new && round < ROUNDS_MAX; round++) {
        (void)park_tree_list(&run->tree);
        is_any_new = false;
        for (size_t i = 0; i < run->tree.count; i++) {
            struct park_process *process = &run->tree.processes[i];
            bool was_running = process->state == CUDA_RUNNING || process->state == CUDA_NO_STATE;
            int r = check_time(run, err);
            if (r == 0 && was_running)
                r = ask_state(run, process, err);
            if (r == 0 && process->state == CUDA_FAILED)
                r = error_set(err, -EIO, "the driver has abandoned process %d", (int)process->pid);
            if (r == 0 && process->state == CUDA_RUNNING) {
                r = lock(run, process, err);
                is_any_new = true;
            }
            if (r < 0)
                return r;
        }
    }
    return is_any_new ? error_set(err, -EAGAIN, "it starts new processes that use CUDA too quickly") : 0;
}

static int save_all(struct park_run *run, struct error *err)
{
    for (size_t i = 0; i < run->tree.count; i++) {
        int r = check_time(run, err);
        if (r == 0 && run->tree.processes[i].state == CUDA_LOCKED)
            r = save(run, &run->tree.processes[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* True if a process has initialized CUDA since the last query: the driver cannot be queried about a stopped
 * one. */
static bool is_any_late(const struct park_run *run)
{
    for (size_t i = 0; i < run->tree.count; i++) {
        const struct park_process *process = &run->tree.processes[i];
        if (process->state == CUDA_NO_STATE && !process->has_uvm && park_process_has_uvm(process->pid))
            return true;
    }
    return false;
}

static int stop_all(struct park_run *run, struct error *err)
{
    pid_t moving = 0;
    if (park_tree_stop(&run->tree, STOP_MAX_MS, &moving) < 0)
        return error_set(err, -EBUSY, "process %d cannot be stopped", (int)moving);
    return 0;
}

/* --- the way back --- */

/* Brings a process from any state to "locked", or to "running" if it was never locked. */
static int restore(struct park_run *run, struct park_process *process, struct error *err)
{
    struct cuda_restore_arguments arguments = { .pairs = run->map, .count = (unsigned int)run->n_map };
    struct error why = { 0 };
    /* If the driver does not report the state of a process that was changed, the last known one is used. */
    if (ask_state(run, process, &why) < 0 && !process->is_touched)
        return 0;
    if (process->state == CUDA_CHECKPOINTED) {
        int error = run->api.restore((int)process->pid, &arguments);
        if (error == CUDA_OK)
            process->state = CUDA_LOCKED;
        (void)ask_state(run, process, &why);
        if (error != CUDA_OK)
            return fail(run, process, "restore", error, err);
    }
    if (process->state == CUDA_FAILED)
        return error_set(err, -EIO, "the driver has abandoned process %d", (int)process->pid);
    return 0;
}

static int unlock(struct park_run *run, struct park_process *process, struct error *err)
{
    struct cuda_arguments arguments = { 0 };
    int error = run->api.unlock((int)process->pid, &arguments);
    return error != CUDA_OK ? fail(run, process, "unlock", error, err) : 0;
}

/* Brings each process to "running". `err` has the first that failed. No process runs before all of them have
 * their memory back. */
static int undo_all(struct park_run *run, struct error *err)
{
    int r = 0;
    park_tree_continue(&run->tree);
    for (int is_unlocking = 0; r == 0 && is_unlocking <= 1; is_unlocking++)
        for (size_t i = 0; i < run->tree.count; i++) {
            struct park_process *process = &run->tree.processes[i];
            struct error why = { 0 };
            int failed = 0;
            if (is_unlocking == 0 && (process->is_touched || run->is_fresh))
                failed = restore(run, process, &why);
            else if (is_unlocking != 0 && process->state == CUDA_LOCKED)
                failed = unlock(run, process, &why);
            if (failed == 0 || r < 0 || !process_is_alive(process->pid, process->start))
                continue;
            *err = why;
            r = failed;
        }
    return r;
}

/* Reads what an earlier helper has done. A process that was saved and is unknown to the driver cannot be
 * restored. */
static void take_saved(struct park_run *run)
{
    const struct launch_saved *saved = run->entry.saved.items;
    run->is_fresh = true;
    (void)park_tree_list(&run->tree);
    for (size_t i = 0; i < run->entry.saved.count; i++)
        for (size_t k = 0; k < run->tree.count; k++) {
            struct park_process *process = &run->tree.processes[k];
            if ((uint32_t)process->pid != saved[i].pid || process->start != saved[i].start)
                continue;
            process->is_touched = true;
            process->state = CUDA_CHECKPOINTED;
        }
}

static int check_saved(const struct park_run *run, struct error *err)
{
    for (size_t i = 0; i < run->tree.count; i++)
        if (run->tree.processes[i].is_touched && run->tree.processes[i].state == CUDA_NO_STATE)
            return error_set(
                err, -EIO, "the driver no longer knows process %d", (int)run->tree.processes[i].pid);
    return 0;
}

/* --- orders --- */

static int write_entry(struct park_run *run)
{
    return file_write_record(run->dirfd, SPOOL_PARK, &launch_park_record, &run->entry, false);
}

static int finish(struct park_run *run, enum park_outcome outcome, const char *text)
{
    run->entry.outcome = outcome;
    free(run->entry.text);
    run->entry.text = xstrdup(text);
    return write_entry(run) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Written before the first process is saved: a later helper must know which were. */
static int list_saved(struct park_run *run, struct error *err)
{
    struct launch_saved *saved = xcalloc(run->tree.count + 1, sizeof(*saved));
    size_t count = 0;
    for (size_t i = 0; i < run->tree.count; i++)
        if (run->tree.processes[i].state == CUDA_LOCKED || run->tree.processes[i].state == CUDA_CHECKPOINTED)
            saved[count++] =
                (struct launch_saved){ (uint32_t)run->tree.processes[i].pid, run->tree.processes[i].start };
    free(run->entry.saved.items);
    run->entry.saved = (struct record_list){ saved, count };
    int r = write_entry(run);
    return r < 0 ? error_set_errno(err, r, "cannot write the spool file %s", SPOOL_PARK) : 0;
}

static int try_save(struct park_run *run, struct error *err)
{
    int r = host_memory_check(&run->spec, run->task->bytes, run->task->bytes_max, err);
    for (int round = 0; r == 0 && round < ROUNDS_MAX; round++) {
        r = lock_all(run, err);
        if (r == 0)
            r = list_saved(run, err);
        if (r == 0)
            r = save_all(run, err);
        if (r == 0)
            r = stop_all(run, err);
        if (r < 0 || !is_any_late(run))
            return r;
        park_tree_continue(&run->tree);
    }
    return r < 0 ? r : error_set(err, -EAGAIN, "it starts new processes that use CUDA too quickly");
}

static int do_save(struct park_run *run)
{
    struct error err = { 0 }, lost = { 0 };
    int r = try_save(run, &err);
    if (r == 0 && check_time(run, &err) == 0) {
        run->entry.bytes = run->task->bytes;
        return finish(run, PARK_DONE, NULL);
    }
    if (undo_all(run, &lost) == 0)
        return finish(run, PARK_REFUSED, err.message);
    _cleanup_free_ char *text = xasprintf("%.300s; then %.300s", err.message, lost.message);
    return finish(run, PARK_LOST, text);
}

static int do_return(struct park_run *run)
{
    struct error err = { 0 };
    take_saved(run);
    int r = undo_all(run, &err);
    if (r == 0)
        r = check_saved(run, &err);
    if (r == 0)
        strings_clear(&run->entry.home);
    return finish(run, r == 0 ? PARK_DONE : PARK_LOST, r == 0 ? NULL : err.message);
}

/* Its memory belongs to the GPUs that it left; the driver is given the GPUs that it has now. */
static int map_gpus(struct park_run *run, struct error *err)
{
    return device_map_make(run->task->gpus, &run->entry.home, &run->spec.gpus, &run->map, &run->n_map, err);
}

/* Nothing has been changed yet. */
static int load(struct park_run *run, struct error *err)
{
    int r = file_read_record(run->dirfd, SPOOL_SPEC, &launch_spec_record, &run->spec, err);
    if (r == 0)
        r = file_read_record(run->dirfd, SPOOL_STARTED, &launch_started_record, &run->started, err);
    if (r < 0)
        return r;
    run->tree.cgroup = run->spec.job_cgroup;
    run->tree.init_pid = (pid_t)run->started.init_pid;
    if (run->task->is_return != 0)
        r = map_gpus(run, err);
    return r < 0 ? r : cuda_api_load(run->task->library, &run->api, err);
}

/* The order in the spool was begun, and its helper has died: processes may be locked or saved, or in the
 * middle of a restore to other GPUs. */
static int undo_begun(struct park_run *run, struct error *err)
{
    int r = map_gpus(run, err);
    if (r < 0)
        return r;
    take_saved(run);
    r = undo_all(run, err);
    if (r == 0)
        strings_clear(&run->entry.home);
    return r;
}

/* `before`: the state in the spool. */
static int carry_out_new(struct park_run *run, const struct launch_park *before)
{
    struct error err = { 0 };
    bool is_same = before->number == run->task->number;
    bool is_begun = before->number != 0 && before->outcome == 0;
    if (run->task->is_return != 0)
        return is_same && before->is_return == 0 && before->outcome == PARK_REFUSED
                   ? finish(run, PARK_DONE, NULL) // a save that was not made needs no restore
                   : do_return(run);
    if (is_begun && undo_begun(run, &err) < 0)
        return finish(run, PARK_LOST, err.message);
    if (is_begun && is_same)
        return finish(run, PARK_REFUSED, "the process that saved its memory died");
    return do_save(run);
}

static int carry_out(struct park_run *run)
{
    struct error err = { 0 };
    (void)file_read_record(run->dirfd, SPOOL_PARK, &launch_park_record, &run->entry, NULL);
    const struct launch_park before = run->entry; // its numbers
    if (before.number > run->task->number)
        return EXIT_SUCCESS; // a later order was carried out meanwhile
    if (before.number == run->task->number && before.outcome != 0 &&
        before.is_return == run->task->is_return && (before.is_return == 0 || before.outcome != PARK_REFUSED))
        return EXIT_SUCCESS; // by an earlier helper
    run->entry.number = run->task->number;
    run->entry.is_return = run->task->is_return;
    /* A restored mgpud does not know about it, and other jobs may be on its GPUs: undoing a save would bring
     * it back to them. */
    if (before.outcome == PARK_LOST)
        return write_entry(run) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    run->entry.outcome = 0;
    if (run->task->is_return == 0 && launch_is_parked(&before))
        return finish(
            run, PARK_DONE, NULL); // by an earlier order: the order to return never arrived, or was refused
    int r = load(run, &err);
    if (r == 0)
        r = write_entry(run);
    /* Nothing was changed for a parked attempt either: the order is retried later. */
    if (r < 0)
        return finish(run, PARK_REFUSED, err.code != 0 ? err.message : strerror(-r));
    return carry_out_new(run, &before);
}

int park_helper_run(const struct park_task *task, int dirfd)
{
    struct sigaction action = { .sa_handler = on_term };
    struct park_run run = { .task = task, .dirfd = dirfd };
    _cleanup_close_ int lock_fd =
        openat(dirfd, SPOOL_PARK_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_fd < 0 || lock_file(lock_fd) < 0)
        return lock_fd < 0 ? EXIT_FAILURE : PARK_EXIT_BUSY;
    (void)sigaction(SIGTERM, &action, NULL);
    run.until_ms = clock_boot_ms() + (task->timeout_ms > 0 ? task->timeout_ms : INT64_MAX / 2);
    int status = carry_out(&run);
    free(run.map);
    park_tree_clear(&run.tree);
    record_clear(&launch_spec_record, &run.spec);
    record_clear(&launch_started_record, &run.started);
    record_clear(&launch_park_record, &run.entry);
    return status;
}
