/* SPDX-License-Identifier: MIT */
/* The attempts that an agent finds when it starts, left by the previous agent. */
#include "agent/spool_load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"

static bool is_parked(int dirfd)
{
    struct launch_park park;
    if (file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &park, NULL) < 0)
        return false;
    bool is_parked = launch_is_parked(&park);
    record_clear(&launch_park_record, &park);
    return is_parked;
}

/* A failure is retried every second, and logged then. */
static void keep_access(
    const struct effects_parts *parts, const struct spool_id *id, const struct launch_spec *spec)
{
    struct error ignored;
    (void)gpu_access_take(parts->access, id, spec->uid, &spec->gpus, &ignored);
    gpu_chores_resume(parts->chores, id, spec->uid, &spec->gpus);
}

/* The token of an attempt from its spec or, for an entry recreated from a durable copy, from its exit
 * record. */
static uint64_t read_token(const struct effects_parts *parts, const struct spool_id *id, int dirfd)
{
    struct launch_spec spec;
    struct launch_exit record;
    uint64_t token = 0;
    if (file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) == 0) {
        token = spec.token;
        gpu_check_take(parts->check, id, &spec.gpus);
        if (parts->mps != NULL)
            mps_hold(parts->mps, &spec);
        bool is_away = is_parked(dirfd);
        if (spool_verdict(dirfd) == VERDICT_GO) {
            gpu_check_resume(parts->check, id);
            keep_access(parts, id, &spec);
        } else if (!is_away && spool_is_alive(dirfd)) {
            gpu_check_resume(parts->check, id); // the earlier agent may have allowed it to start
        }
        if (is_away) {
            gpu_check_end(parts->check, id, clock_boot_ms());
            gpu_check_leave(parts->check, id); // it has not started yet, and will start early
            gpu_access_drop(parts->access, id);
            gpu_chores_drop(parts->chores, id);
        }
        record_clear(&launch_spec_record, &spec);
    } else if (file_read_record(dirfd, SPOOL_EXIT, &launch_exit_record, &record, NULL) == 0) {
        token = record.token;
        record_clear(&launch_exit_record, &record);
    }
    return token;
}

/* A cgroup without a spool entry was left by a crash between creating the two, or belongs to a live process
 * and is kept. */
static void on_cell(void *arg, const struct spool_id *id, bool is_populated)
{
    const struct effects_parts *parts = arg;
    char name[SPOOL_NAME_SIZE];
    if (notifiers_is_cell(id)) {
        notifiers_clear_cell(parts->notifiers, id);
        return;
    }
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, id);
    spool_name(id, name);
    if (dirfd >= 0)
        return;
    if (is_populated)
        log_error("the cgroup of %s has processes, but the spool has no entry for it: inspect them", name);
    else
        (void)parts->confine->remove(parts->cells, id);
}

/* Completes the work of an agent that died in between. Running jobs continue even if this fails. */
static void guard_again(const struct effects_parts *parts, const struct spool_id *id, int dirfd)
{
    struct error err = { 0 };
    if (spool_verdict(dirfd) == VERDICT_NOGO || faccessat(dirfd, SPOOL_EXIT, F_OK, 0) == 0)
        return;
    int r = launcher_guard(parts->launcher, id, &err);
    if (r == 1)
        log_job(LOG_WARNING, id->job, "its device filter was missing and has been restored");
    else if (r < 0 && r != -ENOENT)
        log_job(LOG_ERROR, id->job, "its devices are not confined: %s", err.message);
}

static void note_spec(struct agent_core *core, const struct spool_id *id, int dirfd)
{
    struct launch_spec spec;
    if (file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return;
    int64_t until_ms = spec.lease_until_ms, renewed_ms = 0;
    if (spool_read_renewed(dirfd, &renewed_ms) && renewed_ms > until_ms)
        until_ms = renewed_ms;
    agent_core_note_lease(core, id, spec.lease_ms, until_ms);
    if (spec.is_prepared && spool_verdict(dirfd) == VERDICT_NONE)
        agent_core_note_prepared(core, clock_boot_ms(), id);
    record_clear(&launch_spec_record, &spec);
}

int spool_load(struct effects_parts *parts, struct agent_core *core, struct error *err)
{
    int spoolfd = launcher_spool_fd(parts->launcher);
    int fd = openat(spoolfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (dir == NULL)
        return error_set_errno(err, -errno, "cannot read the spool");
    while ((entry = readdir(dir)) != NULL) {
        struct spool_id id;
        if (!spool_parse_name(entry->d_name, &id))
            continue;
        if (id.step != 0) {
            exec_steps_find(parts->exec_steps, &id);
            continue;
        }
        _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, &id);
        if (dirfd < 0)
            continue;
        uint64_t token = read_token(parts, &id, dirfd);
        guard_again(parts, &id, dirfd);
        /* The agent died between creating the entry and writing its contents, so nothing depends on it. */
        if (token == 0 && spool_verdict(dirfd) == VERDICT_NONE)
            (void)spool_remove(spoolfd, entry->d_name);
        else
            agent_core_load(core, clock_boot_ms(), &id, token);
        note_spec(core, &id, dirfd);
    }
    (void)closedir(dir);
    launcher_sweep(parts->launcher);
    (void)parts->confine->list(parts->cells, on_cell, parts);
    return 0;
}
