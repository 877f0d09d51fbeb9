/* SPDX-License-Identifier: MIT */
/* Reads the files of an entry in the order in which the shepherd writes them. */
#include "agent/spool_observe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/launch/adopted.h"
#include "agent/launch/launcher.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/process.h"
#include "job/start_failure.h"
#include "job/state.h"

/* True if it failed by itself, possibly because of a driver error. */
static bool has_failed(const struct launch_exit *record)
{
    return (record->end == END_EXIT && record->exit_code != 0) || record->end == END_SIGNAL;
}

/* Time on the boot clock at which an attempt that started early was given its GPUs; 0: it did not start
 * early; -1: it has not been given them. */
static int64_t granted_ms(int dirfd)
{
    struct launch_park park;
    if (file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &park, NULL) < 0)
        return 0;
    int64_t ms = park.is_early ? -1 : park.granted_ms;
    record_clear(&launch_park_record, &park);
    return ms;
}

/* On the boot clock, which is used to attribute errors of a GPU. */
static int64_t started_ms(int dirfd, const struct launch_exit *record)
{
    struct launch_started started;
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        started = (struct launch_started){ .wall_ms = record->started_wall_ms };
    int64_t ms = launch_started_boot_ms(&started, clock_boot_ms(), clock_wall_ms());
    record_clear(&launch_started_record, &started);
    return ms;
}

static void note_usage(
    const struct effects_parts *parts, const struct spool_id *id, int dirfd, struct launch_exit *record)
{
    struct job_usage *usage = usage_watch_end(parts->watch, id);
    int64_t since_ms = granted_ms(dirfd);
    if (record->is_executed != 0 && since_ms >= 0)
        gpu_check_note_fault(parts->check, id, since_ms > 0 ? since_ms : started_ms(dirfd, record), &usage);
    if (usage != NULL && record->usage.count == 0)
        record->usage = (struct record_list){ take_ptr(usage), 1 };
    job_usage_free(usage);
}

static void read_exit(const struct effects_parts *parts, const struct spool_id *id, int dirfd,
    struct attempt_observation *observed)
{
    struct error err = { 0 };
    int r = file_read_record(dirfd, SPOOL_EXIT, &launch_exit_record, &observed->exit, &err);
    if (r == -EBADMSG)
        log_job(LOG_ERROR, id->job, "its exit record is damaged: %s", err.message);
    observed->has_exit = r == 0;
    if (!observed->has_exit)
        return;
    if (observed->exit.cause == START_HOME)
        launcher_forget_users(parts->launcher);
    observed->is_populated = parts->confine->is_populated(parts->cells, id) == 1;
    if (!observed->is_populated) {
        gpu_check_end(parts->check, id, clock_boot_ms());
        gpu_access_drop(parts->access, id);
        gpu_chores_drop(parts->chores, id);
    }
    observed->is_checking =
        has_failed(&observed->exit) && gpu_check_awaits_errors(parts->check, id, clock_boot_ms());
    if (!observed->is_checking)
        note_usage(parts, id, dirfd, &observed->exit);
}

static void observe_exit(const struct effects_parts *parts, const struct spool_id *id, int dirfd,
    struct attempt_observation *observed)
{
    observed->has_exit = faccessat(dirfd, SPOOL_EXIT, F_OK, AT_EACCESS) == 0;
    if (observed->has_exit)
        observed->is_populated = parts->confine->is_populated(parts->cells, id) == 1;
}

/* The report of a dead shepherd does not apply to its successor. */
static void read_ready(int dirfd, struct attempt_observation *observed)
{
    struct launch_started *ready = &observed->started;
    if (!observed->is_alive || file_read_record(dirfd, SPOOL_READY, &launch_started_record, ready, NULL) < 0)
        return;
    observed->is_ready = process_is_alive((pid_t)ready->shepherd_pid, ready->shepherd_start);
}

void spool_observe(const struct effects_parts *parts, const struct spool_id *id, bool is_reported,
    struct attempt_observation *observed)
{
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, id);
    if (dirfd < 0) {
        observed->is_populated = parts->confine->is_populated(parts->cells, id) == 1;
        return;
    }
    int verdict = spool_verdict(dirfd);
    observed->verdict = verdict < 0 ? VERDICT_NONE : (enum spool_verdict)verdict;
    observed->has_spec = faccessat(dirfd, SPOOL_SPEC, F_OK, AT_EACCESS) == 0;
    observed->is_alive = observed->is_alive || spool_is_alive(dirfd);
    if (observed->verdict == VERDICT_NONE) {
        read_ready(dirfd, observed);
        return;
    }
    if (is_reported)
        observe_exit(parts, id, dirfd, observed);
    else
        read_exit(parts, id, dirfd, observed);
    if (observed->verdict == VERDICT_GO && adopted_is(dirfd))
        observed->is_alive = adopted_is_alive(dirfd);
    if (observed->verdict == VERDICT_GO && !(observed->has_exit && is_reported))
        (void)file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &observed->started, NULL);
}

void spool_recall(const struct effects_parts *parts, const struct spool_id *id, struct known_attempt *known)
{
    struct spool_terms terms;
    struct launch_park park;
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, id);
    if (dirfd < 0)
        return;
    known->terms = spool_read_terms(dirfd, &terms);
    if (file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &park, NULL) < 0)
        return;
    known->park_number = park.number;
    known->park_seen = launch_is_back(&park)     ? PARK_SEEN_RUNNING
                       : launch_is_parked(&park) ? PARK_SEEN_PARKED
                                                 : PARK_SEEN_CHANGING;
    record_clear(&launch_park_record, &park);
}
