/* SPDX-License-Identifier: MIT */
/* How a process ended only its parent knows, so the exit record of a lease has no status. */
#include "agent/launch/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "agent/host/process_facts.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/spool.h"
#include "job/launch.h"

/* Spool file "lease". */
struct lease {
    struct spool_id id;
    uint64_t token;
    uint32_t uid;
    uint32_t pid;
    uint64_t start;
};

static const struct record_field lease_fields[] = {
    ATTEMPT_FIELDS(struct lease),
    RECORD_FIELD(6, RECORD_U32, struct lease, uid, 0),
    RECORD_FIELD(7, RECORD_U32, struct lease, pid, 0),
    RECORD_FIELD(8, RECORD_U64, struct lease, start, 0),
};
static const struct record_type lease_record = RECORD_TYPE(63, "lease", struct lease, lease_fields);

static int read_lease(int dirfd, struct lease *ret, struct error *err)
{
    struct error why = { 0 };
    int r = file_read_record(dirfd, SPOOL_LEASE, &lease_record, ret, &why);
    return r < 0 ? error_set(err, r, "the adoption record in the spool cannot be read: %s", why.message) : 0;
}

bool lease_is(int dirfd)
{
    return faccessat(dirfd, SPOOL_LEASE, F_OK, 0) == 0;
}

/* A pidfd polls readable when every thread of the process is over, also while nobody reaps it. */
static int open_living(pid_t pid, uint64_t start)
{
    _cleanup_close_ int pidfd = process_open(pid, start);
    if (pidfd < 0)
        return pidfd;
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    return poll(&end, 1, 0) == 0 ? take_fd(&pidfd) : -ESRCH;
}

bool lease_is_own(const struct lease_process *process)
{
    uint32_t uid, gid;
    return process_facts_owner(process->pid, &uid, &gid) && uid == process->uid;
}

int lease_open(int dirfd, struct lease_process *ret)
{
    struct lease lease;
    int r = read_lease(dirfd, &lease, NULL);
    if (r < 0)
        return r;
    _cleanup_close_ int pidfd = open_living((pid_t)lease.pid, lease.start);
    if (pidfd < 0)
        return pidfd;
    struct lease_process process = { .pidfd = pidfd, .pid = (pid_t)lease.pid, .uid = lease.uid };
    if (!lease_is_own(&process))
        return -EPERM;
    *ret = process;
    (void)take_fd(&pidfd);
    return 0;
}

bool lease_is_alive(int dirfd)
{
    struct lease lease;
    _cleanup_close_ int pidfd =
        read_lease(dirfd, &lease, NULL) == 0 ? open_living((pid_t)lease.pid, lease.start) : -1;
    return pidfd >= 0;
}

int lease_stage(int dirfd, const struct message_launch *launch, const struct job_spec *spec)
{
    struct lease lease = { launch->id, launch->token, launch->uid, spec->ask.lease_pid,
        spec->ask.lease_start };
    struct launch_spec entry = {
        .id = launch->id, .token = launch->token, .uid = launch->uid, .gid = launch->gid, .gpus = launch->gpus
    };
    int r = file_write_record(dirfd, SPOOL_LEASE, &lease_record, &lease, false);
    return r < 0 ? r : file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, &entry, false);
}

static int write_exit(int dirfd, const struct lease *lease, enum job_end end, char *text, struct error *err)
{
    struct launch_started started = { 0 };
    struct launch_exit record = { .id = lease->id,
        .token = lease->token,
        .end = end,
        .is_executed = 1,
        .ended_wall_ms = clock_wall_ms(),
        .text = text };
    if (faccessat(dirfd, SPOOL_EXIT, F_OK, 0) == 0)
        return 0;
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) == 0) {
        record.started_wall_ms = started.wall_ms;
        record.run_ms = record.ended_wall_ms > started.wall_ms ? record.ended_wall_ms - started.wall_ms : 0;
        record_clear(&launch_started_record, &started);
    }
    int r = file_write_record(dirfd, SPOOL_EXIT, &launch_exit_record, &record, false);
    return r < 0 ? error_set_errno(err, r, "cannot write the end of the adoption") : 0;
}

/* It cannot begin: the record comes first, as "go" without one would ask for somebody to finish it. */
static int refuse(int dirfd, const struct lease *lease, enum job_end end, char *text, struct error *err)
{
    int r = write_exit(dirfd, lease, end, text, err);
    if (r == 0)
        r = spool_settle(dirfd, VERDICT_GO);
    return r < 0 ? r : 1;
}

static int begin(int dirfd, const struct lease *lease, struct error *err)
{
    struct launch_started started = { .id = lease->id,
        .token = lease->token,
        .shepherd_pid = lease->pid, // whose end is watched
        .shepherd_start = lease->start,
        .init_pid = lease->pid, // whose descendants are measured
        .init_start = lease->start,
        .wall_ms = clock_wall_ms(),
        .boot_ms = clock_boot_ms() };
    int r = file_write_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, false);
    if (r == 0)
        r = spool_settle(dirfd, VERDICT_GO);
    return r < 0 ? error_set_errno(err, r, "cannot begin the adoption") : 1;
}

int lease_begin(int dirfd, struct error *err)
{
    struct lease lease;
    uint32_t uid, gid;
    int r = read_lease(dirfd, &lease, err);
    if (r < 0)
        return r;
    _cleanup_close_ int pidfd = open_living((pid_t)lease.pid, lease.start);
    bool has_owner = process_facts_owner((pid_t)lease.pid, &uid, &gid);
    if (pidfd < 0 || !has_owner) {
        _cleanup_free_ char *text =
            xasprintf("process %" PRIu32 " ended before the adoption began", lease.pid);
        return refuse(dirfd, &lease, END_RELEASED, text, err);
    }
    if (uid != lease.uid) {
        _cleanup_free_ char *text =
            xasprintf("process %" PRIu32 " belongs to uid %" PRIu32 " by now", lease.pid, uid);
        return refuse(dirfd, &lease, END_START_FAILED, text, err);
    }
    return begin(dirfd, &lease, err);
}

int lease_end(int dirfd, enum job_end end, struct error *err)
{
    struct lease lease;
    int r = read_lease(dirfd, &lease, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *text = end == END_RELEASED
                                    ? xasprintf("process %" PRIu32 " has ended", lease.pid)
                                    : xasprintf("released; process %" PRIu32 " was left running", lease.pid);
    r = write_exit(dirfd, &lease, end, text, err);
    return r < 0 ? r : 1;
}
