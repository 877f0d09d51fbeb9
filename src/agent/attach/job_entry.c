/* SPDX-License-Identifier: MIT */
#include "agent/attach/job_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "agent/host/enter_cgroups.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/spool.h"
#include "job/launch.h"

#define START_MS 5000
#define LOOK_MS  10

static int read_spec(
    int dirfd, uint64_t job, const uint64_t *token, struct launch_spec *ret, struct error *err)
{
    if (dirfd < 0 || faccessat(dirfd, SPOOL_EXIT, F_OK, 0) == 0 ||
        file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, ret, NULL) < 0)
        return error_set(err, -EALREADY, "job %" PRIu64 " is no longer running", job);
    if (token == NULL || ret->token == *token)
        return 0;
    record_clear(&launch_spec_record, ret);
    return error_set(err, -EALREADY, "another job %" PRIu64 " runs here", job);
}

/* On a node of several, a job may start a moment later than on the first. This is a child, which may wait. */
static void await_start(int dirfd)
{
    int64_t end_ms = clock_boot_ms() + START_MS;
    while (faccessat(dirfd, SPOOL_STARTED, F_OK, 0) < 0 && faccessat(dirfd, SPOOL_EXIT, F_OK, 0) < 0 &&
           clock_boot_ms() < end_ms)
        (void)poll(NULL, 0, LOOK_MS);
}

static int open_init(int dirfd, uint64_t job, struct error *err)
{
    struct launch_started started;
    int pidfd = -ESRCH;
    await_start(dirfd);
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) == 0) {
        pidfd = process_open((pid_t)started.init_pid, started.init_start);
        record_clear(&launch_started_record, &started);
    }
    if (pidfd < 0)
        return error_set(err, -EALREADY, "job %" PRIu64 " is no longer running", job);
    return pidfd;
}

static int become(const struct job_users *users, const struct launch_spec *spec, struct error *err)
{
    _cleanup_user_ struct user user = { 0 };
    int r = job_user_find(users, spec->uid, NULL, &user, err);
    return r < 0 ? r : job_user_become(&user, spec->gid, err);
}

int job_entry_enter(int spool_fd, const struct job_users *users, const struct spool_id *id,
    const uint64_t *token, struct job_entry *ret, struct error *err)
{
    struct launch_spec spec;
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    _cleanup_close_ int dirfd = openat(spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = read_spec(dirfd, id->job, token, &spec, err);
    if (r < 0)
        return r;
    _cleanup_close_ int init_fd = r = open_init(dirfd, id->job, err);
    if (r >= 0)
        r = enter_cgroups(&spec, err);
    if (r >= 0)
        r = become(users, &spec, err);
    if (r >= 0)
        *ret = (struct job_entry){ .token = spec.token, .uid = spec.uid, .init_fd = take_fd(&init_fd) };
    record_clear(&launch_spec_record, &spec);
    return r < 0 ? r : 0;
}
