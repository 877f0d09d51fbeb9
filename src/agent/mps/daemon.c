/* SPDX-License-Identifier: MIT */
/*
 * A second process sends the daemon its limits. It fails until the daemon listens, and is retried until the
 * time is up. A daemon whose process died while jobs use its server is LOST: the server may still be running,
 * so no other job joins, and the server is killed when the last of these jobs has left.
 */
#include "agent/mps/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/notices.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"

#define RETRY_MS 20

/* A process that sends commands to the daemon. It may outlive a daemon that no longer waits for it. */
struct mps_command {
    struct mps_daemon *daemon; // NULL: the answer is not needed
    struct child *child;
    int output;
};

/* --- members --- */

static struct mps_member *find(const struct mps_daemon *daemon, const struct spool_id *id)
{
    for (size_t i = 0; i < daemon->n_members; i++)
        if (spool_id_equal(&daemon->members[i].id, id))
            return &daemon->members[i];
    return NULL;
}

struct mps_member *mps_daemon_add(struct mps_daemon *daemon, const struct spool_id *id, const char *notices)
{
    struct mps_member *known = find(daemon, id);
    if (known != NULL)
        return known;
    daemon->members = xreallocarray(daemon->members, daemon->n_members + 1, sizeof(struct mps_member));
    struct mps_member *member = &daemon->members[daemon->n_members++];
    *member = (struct mps_member){ .id = *id, .notices = xstrdup(notices) };
    return member;
}

bool mps_daemon_drop(struct mps_daemon *daemon, const struct spool_id *id)
{
    struct mps_member *member = find(daemon, id);
    if (member == NULL)
        return false;
    free(member->notices);
    *member = daemon->members[--daemon->n_members];
    return true;
}

void mps_daemon_notify(const struct spool_id *id, const char *notices, const char *text)
{
    log_job(LOG_WARNING, id->job, "%s", text);
    if (notices != NULL)
        (void)notices_add(notices, clock_wall_ms(), "mps", text);
}

static void notify_members(const struct mps_daemon *daemon, const char *text)
{
    for (size_t i = 0; i < daemon->n_members; i++)
        mps_daemon_notify(&daemon->members[i].id, daemon->members[i].notices, text);
}

/* Answers all members that wait. With `err`, they are removed from the members. */
static void answer(struct mps_daemon *daemon, const struct error *err)
{
    _cleanup_free_ struct spool_id *ids = xcalloc(daemon->n_members + 1, sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; i < daemon->n_members; i++)
        if (daemon->members[i].is_waiting)
            ids[count++] = daemon->members[i].id;
    for (size_t i = 0; i < count; i++) {
        find(daemon, &ids[i])->is_waiting = false;
        if (err != NULL)
            (void)mps_daemon_drop(daemon, &ids[i]);
    }
    if (count > 0)
        daemon->owner->on_answer(daemon->owner->arg, ids, count, err);
}

/* --- servers --- */

bool mps_server_is_listed(const struct mps_server *servers, size_t count, const struct mps_server *server)
{
    for (size_t i = 0; i < count; i++)
        if (servers[i].pid == server->pid && servers[i].start == server->start)
            return true;
    return false;
}

static size_t list_servers(const struct mps_daemon *daemon, struct mps_server now[MPS_SERVERS_MAX])
{
    pid_t pids[MPS_SERVERS_MAX];
    size_t count = 0, found = mps_control_servers(daemon->owner->proc, (pid_t)daemon->record.pid, pids);
    for (size_t i = 0; i < found; i++) {
        uint64_t start = process_start_time(pids[i]);
        if (start != 0)
            now[count++] = (struct mps_server){ pids[i], start };
    }
    return count;
}

void mps_daemon_check_servers(struct mps_daemon *daemon)
{
    struct mps_server now[MPS_SERVERS_MAX];
    if (daemon->phase == MPS_LOST)
        return; // its servers have another parent
    size_t count = list_servers(daemon, now);
    for (size_t i = 0; daemon->phase == MPS_READY && i < daemon->n_servers; i++)
        if (!mps_server_is_listed(now, count, &daemon->servers[i]))
            notify_members(
                daemon, "the MPS server of its GPU has ended; its CUDA calls may fail from now on");
    memcpy(daemon->servers, now, sizeof(now[0]) * count);
    daemon->n_servers = count;
}

static void kill_servers(const struct mps_daemon *daemon)
{
    for (size_t i = 0; i < daemon->n_servers; i++) {
        _cleanup_close_ int fd = process_open(daemon->servers[i].pid, daemon->servers[i].start);
        if (fd >= 0)
            (void)process_signal(fd, SIGKILL);
    }
}

static void kill_child(const struct child *child)
{
    if (child != NULL)
        (void)process_signal(child_pidfd(child), SIGKILL);
}

/* --- commands --- */

static struct mps_place place_of(const struct mps_daemon *daemon)
{
    return (struct mps_place){ .program = daemon->owner->program,
        .directory = daemon->directory,
        .log = daemon->log,
        .uuid = daemon->record.uuid };
}

static void arm(struct mps_daemon *daemon, int64_t ms)
{
    const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    (void)evtimer_add(daemon->timer, &time);
}

static void drop_command(struct mps_daemon *daemon)
{
    if (daemon->command == NULL)
        return;
    kill_child(daemon->command->child);
    daemon->command->daemon = NULL;
    daemon->command = NULL;
}

static void fail(struct mps_daemon *daemon, const struct error *err)
{
    (void)evtimer_del(daemon->timer);
    drop_command(daemon);
    log_warning("MPS of uid %u on %s: %s", daemon->record.uid, daemon->record.uuid, err->message);
    bool is_starting = daemon->phase == MPS_STARTING;
    if (is_starting) {
        daemon->phase = MPS_ENDING;
        mps_daemon_check_servers(daemon);
        kill_servers(daemon);
        kill_child(daemon->child);
    }
    answer(daemon, err);
    if (is_starting && daemon->child == NULL)
        daemon->owner->on_gone(daemon->owner->arg, daemon);
}

static void accept_limits(struct mps_daemon *daemon)
{
    (void)evtimer_del(daemon->timer);
    daemon->phase = MPS_READY;
    daemon->record.bytes = daemon->wanted.bytes;
    daemon->record.percent = daemon->wanted.percent;
    int r = mps_folder_write(daemon->directory, &daemon->record);
    if (r < 0)
        log_warning("cannot write the record in %s: %s", daemon->directory, strerror(-r));
    answer(daemon, NULL);
}

/* The daemon may not be listening yet. */
static void try_again(struct mps_daemon *daemon, const struct error *err)
{
    daemon->last = *err;
    arm(daemon, RETRY_MS);
}

static void on_answer(void *arg, int status)
{
    struct mps_command *command = arg;
    struct mps_daemon *daemon = command->daemon;
    struct error err = { 0 };
    int r = daemon == NULL ? 0 : mps_control_judge(status, command->output, &err);
    closep(&command->output);
    free(command);
    if (daemon == NULL)
        return;
    daemon->command = NULL;
    if (daemon->phase == MPS_ENDING)
        return; // its process has ended, or is being killed
    if (r == 0)
        accept_limits(daemon);
    else if (clock_boot_ms() < daemon->until_ms && daemon->phase == MPS_STARTING)
        try_again(daemon, &err);
    else
        fail(daemon, &err);
}

static int send_commands(struct mps_daemon *daemon, const char *commands)
{
    int pidfd = -1, output = -1;
    const struct mps_place place = place_of(daemon);
    pid_t pid = mps_control_send(&place, commands, &pidfd, &output);
    if (pid < 0)
        return pid;
    struct mps_command *command = xcalloc(1, sizeof(*command));
    *command = (struct mps_command){ .daemon = daemon, .output = output };
    command->child = child_watch(daemon->owner->base, pidfd, on_answer, command);
    daemon->command = command;
    return 0;
}

static int send_limits(struct mps_daemon *daemon)
{
    pid_t servers[MPS_SERVERS_MAX];
    size_t count = mps_control_servers(daemon->owner->proc, (pid_t)daemon->record.pid, servers);
    _cleanup_free_ char *commands = mps_control_commands(&daemon->wanted, servers, count);
    int64_t left_ms = daemon->until_ms - clock_boot_ms();
    arm(daemon, left_ms > 0 ? left_ms : 0);
    return send_commands(daemon, commands);
}

/* It is time to retry, or the answer is late. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct mps_daemon *daemon = arg;
    struct error err = { 0 };
    if (daemon->phase == MPS_ENDING) {
        drop_command(daemon);
        kill_servers(daemon);
        kill_child(daemon->child);
        return;
    }
    int r = 0;
    if (daemon->command == NULL && clock_boot_ms() < daemon->until_ms)
        r = send_limits(daemon);
    else if (daemon->last.code != 0)
        err = daemon->last;
    else
        (void)error_set(
            &err, -ETIMEDOUT, MPS_CONTROL " did not answer within %" PRId64 " ms", daemon->owner->answer_ms);
    if (r < 0)
        (void)error_set_errno(&err, r, "cannot start " MPS_CONTROL);
    if (err.code != 0)
        fail(daemon, &err);
}

void mps_daemon_raise(struct mps_daemon *daemon, const struct mps_limits *limits)
{
    const struct mps_record *now = &daemon->record;
    daemon->wanted.bytes = limits->bytes > now->bytes ? limits->bytes : now->bytes;
    daemon->wanted.percent = limits->percent > now->percent ? limits->percent : now->percent;
    daemon->until_ms = clock_boot_ms() + daemon->owner->answer_ms;
    daemon->last = (struct error){ 0 };
    if (send_limits(daemon) < 0)
        arm(daemon, RETRY_MS);
}

/* --- start and end --- */

static void on_end(void *arg, int status)
{
    struct mps_daemon *daemon = arg;
    struct error err = { 0 };
    daemon->child = NULL;
    if (daemon->phase == MPS_STARTING) {
        (void)error_set(&err, -EIO, MPS_CONTROL " ended at its start (status %d)", status);
        fail(daemon, &err);
        return;
    }
    (void)evtimer_del(daemon->timer);
    drop_command(daemon);
    if (daemon->phase == MPS_READY && daemon->n_members > 0) {
        daemon->phase = MPS_LOST;
        notify_members(daemon, MPS_DAEMON_DIED);
        (void)error_set(&err, -EIO, "the MPS control daemon has died");
        answer(daemon, &err);
        return;
    }
    kill_servers(daemon);
    daemon->owner->on_gone(daemon->owner->arg, daemon);
}

void mps_daemon_end(struct mps_daemon *daemon)
{
    if (daemon->child == NULL) {
        kill_servers(daemon);
        daemon->owner->on_gone(daemon->owner->arg, daemon);
        return;
    }
    mps_daemon_check_servers(daemon);
    drop_command(daemon);
    daemon->phase = MPS_ENDING;
    arm(daemon, daemon->owner->answer_ms);
    if (send_commands(daemon, "quit\n") < 0)
        kill_child(daemon->child);
}

int mps_daemon_start(
    struct mps_daemon *daemon, const struct mps_limits *limits, int cgroup_fd, struct error *err)
{
    int pidfd = -1;
    const struct mps_place place = place_of(daemon);
    pid_t pid = mps_control_start(&place, cgroup_fd, &pidfd);
    if (pid < 0)
        return error_set_errno(err, pid, "cannot start " MPS_CONTROL);
    daemon->record.pid = (uint32_t)pid;
    daemon->record.start = process_start_time(pid);
    daemon->child = child_watch(daemon->owner->base, pidfd, on_end, daemon);
    int r = mps_folder_write(daemon->directory, &daemon->record); // from now on, another agent can find it
    if (r < 0)
        log_warning("cannot write the record in %s: %s", daemon->directory, strerror(-r));
    mps_daemon_raise(daemon, limits);
    return 0;
}

void mps_daemon_adopt(struct mps_daemon *daemon, int pidfd)
{
    daemon->phase = MPS_READY;
    daemon->child = child_watch(daemon->owner->base, pidfd, on_end, daemon);
    mps_daemon_check_servers(daemon);
}

struct mps_daemon *mps_daemon_new(const struct mps_owner *owner, const char *name, const char *directory)
{
    struct mps_daemon *daemon = xcalloc(1, sizeof(*daemon));
    daemon->owner = owner;
    (void)strncpy(daemon->name, name, sizeof(daemon->name) - 1);
    daemon->directory = xstrdup(directory);
    daemon->log = xasprintf("%s/log", directory);
    daemon->timer = evtimer_new(owner->base, on_timer, daemon);
    if (daemon->timer == NULL)
        abort(); // memory
    return daemon;
}

void mps_daemon_free(struct mps_daemon *daemon)
{
    if (daemon->command != NULL) {
        struct mps_command *command = daemon->command;
        child_free(command->child);
        closep(&command->output);
        free(command);
    }
    child_free(daemon->child);
    event_free(daemon->timer);
    for (size_t i = 0; i < daemon->n_members; i++)
        free(daemon->members[i].notices);
    free(daemon->members);
    record_clear(&mps_record_type, &daemon->record);
    free(daemon->directory);
    free(daemon->log);
    free(daemon);
}
