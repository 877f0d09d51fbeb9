/* SPDX-License-Identifier: MIT */
/* Only the parent of a process can read its exit status, so the exit record of an adopted process has
 * none. */
#include "agent/launch/adopted.h"

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

/* The spool file "adopted", which is older than the term for adopted processes. */
struct adopted {
    struct spool_id id;
    uint64_t token;
    uint32_t uid;
    uint32_t pid;
    uint64_t start;
};

static const struct record_field adopted_fields[] = {
    ATTEMPT_FIELDS(struct adopted),
    RECORD_FIELD(6, RECORD_U32, struct adopted, uid, 0),
    RECORD_FIELD(7, RECORD_U32, struct adopted, pid, 0),
    RECORD_FIELD(8, RECORD_U64, struct adopted, start, 0),
};
static const struct record_type adopted_record = RECORD_TYPE(63, "adopted", struct adopted, adopted_fields);

static int read_adopted(int dirfd, struct adopted *ret, struct error *err)
{
    struct error why = { 0 };
    int r = file_read_record(dirfd, SPOOL_ADOPTED, &adopted_record, ret, &why);
    return r < 0 ? error_set(err, r, "the adoption record in the spool cannot be read: %s", why.message) : 0;
}

bool adopted_is(int dirfd)
{
    return faccessat(dirfd, SPOOL_ADOPTED, F_OK, AT_EACCESS) == 0;
}

/* A pidfd becomes readable when all threads of the process have ended, even before it is reaped. */
static int open_living(pid_t pid, uint64_t start)
{
    _cleanup_close_ int pidfd = process_open(pid, start);
    if (pidfd < 0)
        return pidfd;
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    return poll(&end, 1, 0) == 0 ? take_fd(&pidfd) : -ESRCH;
}

bool adopted_is_own(const struct adopted_process *process)
{
    uint32_t uid, gid;
    return process_facts_owner(process->pid, &uid, &gid) && uid == process->uid;
}

int adopted_open(int dirfd, struct adopted_process *ret)
{
    struct adopted adopted;
    int r = read_adopted(dirfd, &adopted, NULL);
    if (r < 0)
        return r;
    _cleanup_close_ int pidfd = open_living((pid_t)adopted.pid, adopted.start);
    if (pidfd < 0)
        return pidfd;
    struct adopted_process process = { .pidfd = pidfd, .pid = (pid_t)adopted.pid, .uid = adopted.uid };
    if (!adopted_is_own(&process))
        return -EPERM;
    *ret = process;
    (void)take_fd(&pidfd);
    return 0;
}

bool adopted_is_alive(int dirfd)
{
    struct adopted adopted;
    _cleanup_close_ int pidfd =
        read_adopted(dirfd, &adopted, NULL) == 0 ? open_living((pid_t)adopted.pid, adopted.start) : -1;
    return pidfd >= 0;
}

int adopted_stage(int dirfd, const struct message_launch *launch, const struct job_spec *spec)
{
    struct adopted adopted = { launch->id, launch->token, launch->uid, spec->ask.adopted_pid,
        spec->ask.adopted_start };
    struct launch_spec entry = {
        .id = launch->id, .token = launch->token, .uid = launch->uid, .gid = launch->gid, .gpus = launch->gpus
    };
    int r = file_write_record(dirfd, SPOOL_ADOPTED, &adopted_record, &adopted, false);
    return r < 0 ? r : file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, &entry, false);
}

static int write_exit(
    int dirfd, const struct adopted *adopted, enum job_end end, char *text, struct error *err)
{
    struct launch_started started = { 0 };
    struct launch_exit record = { .id = adopted->id,
        .token = adopted->token,
        .end = end,
        .is_executed = 1,
        .ended_wall_ms = clock_wall_ms(),
        .ended_boot_ms = clock_boot_ms(),
        .text = text };
    if (faccessat(dirfd, SPOOL_EXIT, F_OK, AT_EACCESS) == 0)
        return 0;
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) == 0) {
        record.started_wall_ms = started.wall_ms;
        record.run_ms = record.ended_wall_ms > started.wall_ms ? record.ended_wall_ms - started.wall_ms : 0;
        record_clear(&launch_started_record, &started);
    }
    int r = file_write_record(dirfd, SPOOL_EXIT, &launch_exit_record, &record, false);
    return r < 0 ? error_set_errno(err, r, "cannot write the end of the adoption") : 0;
}

/* The adoption cannot begin. The record is written first, because "go" without one would require an adopting
 * shepherd. */
static int refuse(int dirfd, const struct adopted *adopted, enum job_end end, char *text, struct error *err)
{
    int r = write_exit(dirfd, adopted, end, text, err);
    if (r == 0)
        r = spool_decide(dirfd, VERDICT_GO);
    return r < 0 ? r : 1;
}

static int begin(int dirfd, const struct adopted *adopted, struct error *err)
{
    struct launch_started started = { .id = adopted->id,
        .token = adopted->token,
        .shepherd_pid = adopted->pid, // watched for its end
        .shepherd_start = adopted->start,
        .init_pid = adopted->pid, // whose descendants are measured
        .init_start = adopted->start,
        .wall_ms = clock_wall_ms(),
        .boot_ms = clock_boot_ms() };
    int r = file_write_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, false);
    if (r == 0)
        r = spool_decide(dirfd, VERDICT_GO);
    return r < 0 ? error_set_errno(err, r, "cannot begin the adoption") : 1;
}

int adopted_begin(int dirfd, struct error *err)
{
    struct adopted adopted;
    uint32_t uid, gid;
    int r = read_adopted(dirfd, &adopted, err);
    if (r < 0)
        return r;
    _cleanup_close_ int pidfd = open_living((pid_t)adopted.pid, adopted.start);
    bool has_owner = process_facts_owner((pid_t)adopted.pid, &uid, &gid);
    if (pidfd < 0 || !has_owner) {
        _cleanup_free_ char *text =
            xasprintf("process %" PRIu32 " ended before the adoption began", adopted.pid);
        return refuse(dirfd, &adopted, END_RELEASED, text, err);
    }
    if (uid != adopted.uid) {
        _cleanup_free_ char *text =
            xasprintf("process %" PRIu32 " belongs to uid %" PRIu32 " by now", adopted.pid, uid);
        return refuse(dirfd, &adopted, END_START_FAILED, text, err);
    }
    return begin(dirfd, &adopted, err);
}

int adopted_end(int dirfd, enum job_end end, struct error *err)
{
    struct adopted adopted;
    int r = read_adopted(dirfd, &adopted, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *text =
        end == END_RELEASED ? xasprintf("process %" PRIu32 " has ended", adopted.pid)
                            : xasprintf("released; process %" PRIu32 " was left running", adopted.pid);
    r = write_exit(dirfd, &adopted, end, text, err);
    return r < 0 ? r : 1;
}
