/* SPDX-License-Identifier: MIT */
/*
 * S from its start to the open gate. The order guarantees "at most once":
 *
 *   lock, and no verdict yet            no other shepherd is or was here
 *   I is created and prepares           everything that can fail fails before anything runs; for a job that
 *                                       may be next, it waits for its turn before it touches its files
 *   ready                               a rank of several waits here until all of them are (ready.c)
 *   verdict "go"                        from now on the agent cannot withdraw the attempt
 *   `started` is written                tells an adopting shepherd that the gate may be open
 *   gate                                I executes
 *
 * If a preparation fails, the verdict is still settled, and the failure becomes the attempt's end. If a
 * shepherd dies before "go", its attempt can be returned. If it dies later, its attempt is adopted, and I,
 * which reads end of file at the gate, records that nothing ran.
 */
#include "shepherd/shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "job/event.h"
#include "shepherd/exec.h"
#include "shepherd/node_lease.h"
#include "shepherd/output.h"
#include "shepherd/ready.h"
#include "shepherd/record.h"
#include "shepherd/watch.h"

#define CLONE_TRIES   20  // before the attempt is given back
#define CLONE_WAIT_MS 250 // between two of them

/* A new inode, because the init of a shepherd that died before the verdict may still write to the old one. */
static int create_status(struct shepherd *shepherd, struct error *err)
{
    struct init_status status = { .phase = INIT_WAITING };
    (void)unlinkat(shepherd->spool_fd, SPOOL_STATUS, 0);
    shepherd->status_fd =
        openat(shepherd->spool_fd, SPOOL_STATUS, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = shepherd->status_fd < 0 ? -errno : init_write_status(shepherd->status_fd, &status);
    return r < 0 ? error_set_errno(err, r, "cannot write the status file of %s", shepherd->name) : 0;
}

static char *absolute_path(const char *cwd, const char *path)
{
    return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
}

/* The environment, overridden by the assignment; the words stay owned by the spec. */
static void merge_environment(const struct launch_spec *spec, struct strings *merged)
{
    strings_copy(merged, &spec->env);
    for (size_t i = 0; i < spec->gpu_env.count; i++) {
        const char *entry = spec->gpu_env.items[i];
        _cleanup_free_ char *name = xstrndup(entry, strcspn(entry, "="));
        const char *value = strchr(entry, '=');
        strings_set_env(merged, name, value != NULL ? value + 1 : "");
    }
}

static pid_t clone_init(struct shepherd *shepherd)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD
    };
    if (shepherd->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)shepherd->cgroup_fd;
    }
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return -errno;
    if (pid > 0)
        shepherd->init_pidfd = pidfd;
    return pid;
}

/* Runs I in a child. The caller keeps the data for I alive: the child has a copy of all memory. */
static int start_init(struct shepherd *shepherd, struct init *init)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    shepherd->channel_fd = pair[0];
    init->channel_fd = pair[1];
    pid_t pid = clone_init(shepherd);
    if (pid == 0) {
        shepherd_drop(shepherd);
        init_run(init);
    }
    (void)close(pair[1]);
    if (pid < 0) {
        closep(&shepherd->channel_fd);
        return (int)pid;
    }
    shepherd->init_pid = pid;
    return 0;
}

/* Retries, because a node may briefly be short of processes or memory. */
static int start_init_soon(struct shepherd *shepherd, struct init *init)
{
    int r = start_init(shepherd, init);
    for (unsigned i = 0; i < CLONE_TRIES && r < 0 && step_cause(STEP_CLONE, -r, false) == START_PROCESS;
         i++) {
        (void)poll(NULL, 0, CLONE_WAIT_MS);
        r = start_init(shepherd, init);
    }
    return r;
}

/*
 * I is a process of the user, who may stop it, and it opens files named by the user, so it may never report.
 * STEP_NONE: a report can be read. The agent withdraws the attempt with a command.
 */
static enum launch_step await_report(struct shepherd *shepherd)
{
    int64_t limit_ms = shepherd->spec.start_ms, ends_ms = clock_boot_ms() + limit_ms;
    for (;;) {
        struct pollfd sources[] = { { shepherd->channel_fd, POLLIN, 0 }, { shepherd->ctl_fd, POLLIN, 0 } };
        int64_t left_ms = ends_ms - clock_boot_ms();
        if (limit_ms > 0 && left_ms <= 0)
            return STEP_LATE;
        if (poll(sources, 2, limit_ms > 0 ? (int)left_ms : -1) <= 0)
            continue;
        if (sources[0].revents != 0)
            return STEP_NONE;
        if (ready_take_command(shepherd) && spool_verdict(shepherd->spool_fd) == VERDICT_NOGO)
            return STEP_LATE; // withdrawn: the reason is not read
    }
}

/* I's first packet. No packet means that I was killed. */
static struct init_report read_report(struct shepherd *shepherd)
{
    struct init_report report = { .step = await_report(shepherd) };
    if (report.step != STEP_NONE)
        return report;
    if (descriptor_receive(shepherd->channel_fd, &report, sizeof(report), &shepherd->log_fd) != 1)
        return (struct init_report){ .step = STEP_INIT };
    return report;
}

/* Kills an I that has not executed anything. Otherwise it would exit only if its user lets it. */
static void dismiss_init(struct shepherd *shepherd)
{
    siginfo_t ended;
    closep(&shepherd->channel_fd);
    if (shepherd->init_pidfd < 0)
        return;
    (void)process_signal(shepherd->init_pidfd, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)shepherd->init_pidfd, &ended, WEXITED);
    closep(&shepherd->init_pidfd);
}

static off_t log_size(int log_fd)
{
    struct stat st;
    return fstat(log_fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* Called when I is ready and its log is open. */
static void start_terminal(struct shepherd *shepherd, struct init_status *ret_failure)
{
    shepherd->log_start = log_size(shepherd->log_fd);
    int r = terminal_start(&shepherd->terminal, &shepherd->spec, shepherd->log_fd, shepherd->host_pidfd);
    if (r == 0)
        return;
    ret_failure->step = STEP_TERMINAL;
    ret_failure->error = -r;
}

static int open_host(const struct shepherd *shepherd)
{
    struct spool_id host = {
        .job = shepherd->id.job, .attempt = shepherd->id.attempt, .rank = shepherd->id.rank
    };
    struct launch_started started;
    char name[SPOOL_NAME_SIZE];
    spool_name(&host, name);
    _cleanup_free_ char *path = xasprintf("../%s/" SPOOL_STARTED, name);
    if (file_read_record(shepherd->spool_fd, path, &launch_started_record, &started, NULL) < 0)
        return -1;
    int fd = process_open((pid_t)started.init_pid, started.init_start);
    record_clear(&launch_started_record, &started);
    return fd < 0 ? -1 : fd;
}

/* An exec step starts in the cgroup of another step, so only its own descendants end with it. */
static void leave_host(struct shepherd *shepherd)
{
    if (shepherd->spec.is_exec_step)
        closep(&shepherd->cgroup_fd);
}

/* Notes that the job is not in the requested directory, and that its log may have moved with it. */
static void note_move(struct shepherd *shepherd, int error, char **log_path)
{
    char text[EVENT_TEXT_MAX / 2];
    step_describe(STEP_CWD, error, &shepherd->spec, NULL, text, sizeof(text));
    shepherd->start_text = xasprintf("%s; running in %.500s", text, shepherd->spec.cwd_fallback);
    free(shepherd->log_path);
    shepherd->log_path = take_ptr(*log_path);
}

/* The names in the order of struct init. */
static void name_logs(const struct launch_spec *spec, struct strings *ret)
{
    const char *const places[] = { spec->output, spec->output_fallback };
    for (size_t i = 0; i < 2 && places[i] != NULL; i++) {
        strings_take(ret, absolute_path(spec->cwd, places[i]));
        if (spec->is_output_default)
            strings_take(ret, output_own_name(ret->items[ret->count - 1], spec->token));
    }
}

/* Waits for the turn of a prepared job; false if the job is withdrawn. A failure until then does not end the
 * job. */
static bool await_turn(struct shepherd *shepherd)
{
    if (!shepherd->spec.is_prepared)
        return true;
    return read_report(shepherd).step == STEP_NONE && ready_await_turn(shepherd);
}

/* Starts I and waits until it has prepared everything, or has failed at some step. False: withdrawn. */
static bool prepare_step(struct shepherd *shepherd, struct init_status *ret_failure)
{
    struct launch_spec *spec = &shepherd->spec;
    _cleanup_strings_ struct strings environment = { 0 };
    _cleanup_strings_ struct strings logs = { 0 };
    name_logs(spec, &logs);
    shepherd->log_path = xstrdup(logs.items[0]);
    _cleanup_free_ char *moved_path =
        spec->cwd_fallback != NULL ? absolute_path(spec->cwd_fallback, spec->output) : NULL;
    char **argv = exec_argv(&spec->command);
    merge_environment(spec, &environment);
    if (spec->is_exec_step)
        shepherd->host_pidfd = open_host(shepherd);
    struct init init = {
        .spec = spec,
        .log_path_moved = moved_path,
        .command = argv,
        .environment = &environment,
        .is_confined = shepherd->cgroup_fd >= 0 && !spec->is_exec_step,
        .host_pidfd = shepherd->host_pidfd,
        .status_fd = shepherd->status_fd,
    };
    for (size_t i = 0; i < logs.count; i++)
        init.logs[i] = logs.items[i];
    int r = terminal_open(&shepherd->terminal, spec);
    init.stdio = shepherd->terminal.is_open ? shepherd->terminal.job_fds : NULL;
    enum launch_step failed = STEP_TERMINAL;
    if (r == 0) {
        failed = STEP_SAYING;
        r = status_pipe_make(&shepherd->status_pipe, spec, shepherd->spool_fd);
    }
    if (r == 0) {
        failed = STEP_CLONE;
        r = start_init_soon(shepherd, &init);
    }
    bool has_turn = r == 0 ? await_turn(shepherd) : !spec->is_prepared;
    if (r < 0) {
        ret_failure->step = failed;
        ret_failure->error = -r;
    } else if (has_turn) {
        struct init_report report = read_report(shepherd);
        ret_failure->step = report.step;
        ret_failure->error = report.error;
        if (report.cwd_error != 0)
            note_move(shepherd, report.cwd_error, &moved_path);
        if (report.log > 0 && report.log < logs.count) {
            free(shepherd->log_path);
            shepherd->log_path = xstrdup(logs.items[report.log]);
        }
        if (report.step == STEP_NONE)
            start_terminal(shepherd, ret_failure);
    }
    leave_host(shepherd);
    free(argv - 2);
    return has_turn;
}

/* All output is in the log before the end is reported. The output of an exec step stays with T for its
 * client, if the client can return. */
static void finish_terminal(struct shepherd *shepherd, const struct ending *ending)
{
    char text[EVENT_TEXT_MAX];
    struct launch_exit exit_record;
    if (!shepherd->terminal.is_open)
        return;
    record_make(shepherd, ending, text, sizeof(text), &exit_record);
    const struct launch_spec *spec = &shepherd->spec;
    bool is_kept = spec->is_exec_step && spec->exec_key != 0;
    terminal_finish(&shepherd->terminal, &exit_record,
        is_kept                               ? TERMINAL_AWAIT_CLIENT
        : spec->is_tty && !spec->is_exec_step ? TERMINAL_AWAIT_LOG
                                              : TERMINAL_AWAIT_NOTHING);
}

static int end_launch(struct shepherd *shepherd, struct ending *ending)
{
    if (ending->status.step == STEP_NONE) {
        int r = record_write_started(shepherd, SPOOL_STARTED);
        if (r < 0) {
            ending->status.step = STEP_STARTED;
            ending->status.error = -r;
        }
    }
    if (ending->status.step != STEP_NONE) {
        /* INIT_NEVER proves that nothing ran, so the job is retried. */
        bool is_transient =
            step_is_transient(ending->status.step, ending->status.error, shepherd->spec.is_output_default);
        ending->status.phase = is_transient ? INIT_NEVER : INIT_ENDED;
        dismiss_init(shepherd);
        return record_publish(shepherd, ending);
    }
    if (!shepherd->terminal.is_open)
        shepherd->log_start = log_size(shepherd->log_fd);
    if (shepherd->spec.memory_cgroup == NULL)
        shepherd->node_oom_kills = counts_node_oom_kills_before(PROC_VMSTAT, clock_boot_ms());
    meeting_hand_over(&shepherd->meeting);
    const struct init_gate gate = { .magic = INIT_GATE_MAGIC, .port = shepherd->meeting.port };
    (void)send(shepherd->channel_fd, &gate, sizeof(gate), MSG_NOSIGNAL);
    shepherd_hint(shepherd, SPOOL_HINT_STARTED);
    watch_step(shepherd, ending);
    finish_terminal(shepherd, ending);
    return record_publish(shepherd, ending);
}

static int launch(struct shepherd *shepherd)
{
    struct error err = { 0 };
    struct ending ending = { 0 };
    int r = shepherd_prepare(shepherd, &err);
    if (r == 0)
        r = create_status(shepherd, &err);
    if (r < 0)
        return shepherd_complain(&err);
    if (!prepare_step(shepherd, &ending.status)) {
        dismiss_init(shepherd);
        return SHEPHERD_WITHDRAWN;
    }
    if (shepherd->spec.is_gated && ending.status.step == STEP_NONE)
        ready_wait(shepherd, &ending.status);
    /* Too late for this node: the job may be running elsewhere by now. */
    r = spool_decide(shepherd->spool_fd, node_lease_has_passed(shepherd) ? VERDICT_NOGO : VERDICT_GO);
    if (r == VERDICT_GO)
        return end_launch(shepherd, &ending);
    dismiss_init(shepherd);
    return r == VERDICT_NOGO ? SHEPHERD_SETTLED : SHEPHERD_UNUSABLE;
}

/* A shepherd with more processes, descriptors or memory than usual exits with its step. */
static bool is_plain(const struct shepherd *shepherd)
{
    const struct launch_spec *spec = &shepherd->spec;
    return !shepherd->terminal.is_open && !spec->is_gated && !spec->is_exec_step && spec->image.count == 0;
}

int shepherd_launch_kept(const char *spool_dir, int agent_fd, bool *ret_is_plain)
{
    _cleanup_(shepherd_close) struct shepherd shepherd;
    struct error err = { 0 };
    *ret_is_plain = false;
    int r = shepherd_open(&shepherd, spool_dir, false, &err);
    shepherd.agent_fd = agent_fd;
    if (r == -EAGAIN)
        return SHEPHERD_BUSY;
    if (r < 0)
        return shepherd_complain(&err);
    /* Only the holder of the lock writes "go": an existing "go" is from a shepherd that died. */
    r = spool_verdict(shepherd.spool_fd);
    if (r != VERDICT_NONE)
        return r > 0 ? SHEPHERD_SETTLED : SHEPHERD_UNUSABLE;
    int status = launch(&shepherd);
    *ret_is_plain = status == SHEPHERD_DONE && is_plain(&shepherd);
    return status;
}

int shepherd_launch(const char *spool_dir)
{
    bool is_plain;
    return shepherd_launch_kept(spool_dir, -1, &is_plain);
}
