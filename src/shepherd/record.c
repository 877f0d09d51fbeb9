/* SPDX-License-Identifier: MIT */
/*
 * Space for the file "exit" is reserved before the command starts, so a full file system cannot lose an end.
 * The shepherd waits until the agent removes the file, after the controller has committed the end. The agent
 * notifies the shepherd; if it does not, the shepherd checks when the time is up.
 */
#include "shepherd/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/signals.h"
#include "job/event.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "shepherd/orphan_tail.h"

#define EXIT_TEMPORARY      SPOOL_EXIT ".tmp"
#define EXIT_RECORD_MAX     (SPEC_PATH_MAX + EVENT_TEXT_MAX + USAGE_TAIL_MAX + SIGNALS_TEXT_MAX + 1024U)
#define FETCH_SECONDS       1 // how long the agent has before the record is copied to disk
#define EXIT_CODE_UNKNOWN   125
#define EXIT_CODE_PODMAN    125
#define EXIT_CODE_APPTAINER 255
#define EXIT_CODE_OOM       (128 + SIGKILL)

/*
 * True if the kernel killed a process of the step for lack of memory, and the command failed because of that
 * or because it needs the killed process. If all processes were killed at once, the command's status may be
 * lost. A command that continues and succeeds has ended normally.
 */
static bool is_out_of_memory(const struct ending *ending)
{
    const struct init_status *status = &ending->status;
    bool was_running = status->step == STEP_NONE || status->step == STEP_SETUP;
    if (ending->counts.oom_kills == 0 || ending->stop_signal != 0 || !was_running)
        return false;
    return status->phase == INIT_ENDED ? status->wait_status != 0
                                       : status->phase == INIT_EXECUTING && ending->counts.is_group_killed;
}

/* The cause of a failed start. */
static enum start_cause find_cause(const struct launch_spec *spec, const struct init_status *status)
{
    if (status->step == STEP_NONE)
        return status->phase < INIT_EXECUTING ? START_INIT : START_UNNAMED;
    return step_cause((enum launch_step)status->step, status->error, spec->is_output_default);
}

static bool waits_for_another_try(const struct launch_spec *spec, const struct init_status *status)
{
    return step_is_transient((enum launch_step)status->step, status->error, spec->is_output_default);
}

static enum job_end judge(const struct launch_spec *spec, const struct ending *ending)
{
    const struct init_status *status = &ending->status;
    if (status->phase < INIT_EXECUTING)
        return END_UNKNOWN;
    if (is_out_of_memory(ending))
        return END_OOM;
    enum job_end stopped = ending->stop_end != END_NONE ? ending->stop_end : END_CANCELLED;
    if (status->phase == INIT_EXECUTING)
        return ending->stop_signal != 0 ? stopped : END_UNKNOWN;
    if (status->step != STEP_NONE && status->step != STEP_SETUP)
        return waits_for_another_try(spec, status) ? END_UNKNOWN : END_START_FAILED;
    if (ending->stop_signal != 0)
        return stopped;
    if (status->step == STEP_SETUP)
        return END_SETUP_FAILED;
    return WIFSIGNALED(status->wait_status) ? END_SIGNAL : END_EXIT;
}

static bool has_wait_status(const struct init_status *status)
{
    return status->phase == INIT_ENDED && (status->step == STEP_NONE || status->step == STEP_SETUP);
}

static void set_exit_code(const struct ending *ending, struct launch_exit *ret)
{
    const struct init_status *status = &ending->status;
    if (ret->end == END_OOM) {
        ret->signal = SIGKILL;
        ret->exit_code = EXIT_CODE_OOM;
        return;
    }
    if (!has_wait_status(status)) {
        ret->exit_code = EXIT_CODE_UNKNOWN;
        if (status->phase == INIT_ENDED)
            ret->exit_code = step_exit_code(status->step, status->error);
        else if (ending->stop_signal != 0)
            ret->exit_code = 128 + (int32_t)ending->stop_signal;
        return;
    }
    if (WIFSIGNALED(status->wait_status)) {
        ret->signal = (uint32_t)WTERMSIG(status->wait_status);
        ret->exit_code = 128 + (int32_t)ret->signal;
        return;
    }
    ret->exit_code = WEXITSTATUS(status->wait_status);
    /* A setup that ends successfully before the command is still a failure. */
    if (status->step == STEP_SETUP && ret->exit_code == 0)
        ret->exit_code = EXIT_CODE_UNKNOWN;
}

/* Includes the status of a command that was not killed itself. */
static void describe_memory(
    const struct shepherd *shepherd, const struct ending *ending, char *text, size_t size)
{
    const struct init_status *status = &ending->status;
    counts_describe_memory(&ending->counts, &shepherd->spec, text, size);
    size_t length = strlen(text);
    if (status->phase == INIT_ENDED && WIFEXITED(status->wait_status) &&
        WEXITSTATUS(status->wait_status) != EXIT_CODE_OOM)
        (void)snprintf(text + length, size - length, "; then the command ended with status %d",
            WEXITSTATUS(status->wait_status));
}

/* Exit statuses with which podman and apptainer report their own failures. */
static bool is_reported_by_runtime(const struct launch_spec *spec, int wait_status)
{
    return spec->image.count > 0 && WIFEXITED(wait_status) &&
           (WEXITSTATUS(wait_status) == EXIT_CODE_PODMAN || WEXITSTATUS(wait_status) == EXIT_CODE_APPTAINER);
}

static void describe_idle(const struct launch_spec *spec, char *text, size_t size)
{
    char limit[32];
    format_duration(launch_ask(spec)->tty_idle_ms, limit, sizeof(limit));
    (void)snprintf(text, size, "its terminal was unused for %s", limit);
}

void ending_add_signal(struct ending *ending, int signal, const struct roll *reached)
{
    char processes[ROLL_NAMES_MAX + 32], name[32];
    size_t used = strlen(ending->signals);
    const char *known = signal_name(signal);
    roll_format(reached, processes, sizeof(processes));
    if (known != NULL)
        (void)snprintf(name, sizeof(name), "SIG%s", known);
    else
        (void)snprintf(name, sizeof(name), "signal %d", signal);
    (void)snprintf(ending->signals + used, sizeof(ending->signals) - used, "%s%s to %s", used > 0 ? "; " : "",
        name, reached->count > 0 ? processes : "no process: none handles it");
}

/* Describes how the end of the step affected processes other than the command. */
static void describe_rolls(const struct ending *ending, char *text, size_t size)
{
    char processes[ROLL_NAMES_MAX + 32], grace[32];
    size_t used = strlen(text);
    const char *between = used > 0 ? "; " : "";
    if (ending->killed.count > 0) {
        roll_format(&ending->killed, processes, sizeof(processes));
        format_duration(ending->grace_ms, grace, sizeof(grace));
        (void)snprintf(text + used, size - used, "%s%s had to be killed after the grace period of %s",
            between, processes, grace);
    } else if (ending->left.count > 0) {
        roll_format(&ending->left, processes, sizeof(processes));
        (void)snprintf(text + used, size - used, "%s%s that the command left running %s ended", between,
            processes, ending->left.count == 1 ? "was" : "were");
    }
}

static bool was_killed_by_others(const struct ending *ending)
{
    int wait_status = ending->status.wait_status;
    return !ending->is_killed && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

/* If the job's own count is not available, the node's count is used, with a remark that it proves nothing
 * about this job. */
static void describe_node(const struct ending *ending, char *text, size_t size)
{
    uint64_t kills = ending->counts.node_oom_kills;
    if (text[0] != '\0' || kills == 0 || !was_killed_by_others(ending))
        return;
    (void)snprintf(text, size,
        "the node was out of memory while it ran: the kernel killed %" PRIu64
        " process%s there, perhaps this one",
        kills, kills == 1 ? "" : "es");
}

static void describe(const struct shepherd *shepherd, const struct ending *ending, char *text, size_t size)
{
    const struct init_status *status = &ending->status;
    text[0] = '\0';
    if (is_out_of_memory(ending))
        describe_memory(shepherd, ending, text, size);
    else if (ending->stop_end == END_NODE_LOST && ending->stop_signal != 0)
        (void)snprintf(text, size, "its node had no contact to mgpud for longer than its lease of %lld s",
            (long long)(shepherd->spec.lease_ms / 1000));
    else if (judge(&shepherd->spec, ending) == END_IDLE_TIMEOUT)
        describe_idle(&shepherd->spec, text, size);
    else if (status->phase < INIT_EXECUTING && status->step != STEP_NONE)
        step_describe(status->step, status->error, &shepherd->spec, shepherd->log_path, text, size);
    else if (status->phase < INIT_EXECUTING)
        (void)snprintf(text, size, "the command was never started: its shepherd died before the gate opened");
    else if (status->phase == INIT_EXECUTING)
        (void)snprintf(
            text, size, "the exit status of the command is lost: its shepherd and its init were killed");
    else if (status->step == STEP_SETUP && WIFSIGNALED(status->wait_status))
        (void)snprintf(text, size, "the setup command ended by signal %d", WTERMSIG(status->wait_status));
    else if (status->step == STEP_SETUP)
        (void)snprintf(
            text, size, "the setup command failed with status %d", WEXITSTATUS(status->wait_status));
    else if (status->step != STEP_NONE)
        step_describe(status->step, status->error, &shepherd->spec, shepherd->log_path, text, size);
    else if (is_reported_by_runtime(&shepherd->spec, status->wait_status))
        (void)snprintf(text, size,
            "the container runtime also exits with %d if it cannot start the container: see the output",
            WEXITSTATUS(status->wait_status));
    else {
        counts_describe_rest(&ending->counts, &shepherd->spec, text, size);
        describe_node(ending, text, size);
    }
}

/* Only for jobs that may have been affected, because the kernel formats a long text for it. */
static uint64_t count_node_kills(const struct shepherd *shepherd, const struct ending *ending)
{
    bool is_known = shepherd->node_oom_kills >= 0 && was_killed_by_others(ending);
    int64_t now = is_known ? counts_node_oom_kills(PROC_VMSTAT) : -1;
    return now > shepherd->node_oom_kills ? (uint64_t)(now - shepherd->node_oom_kills) : 0;
}

/* A kept shepherd has the same start time for all its steps. */
static uint64_t own_start_time(void)
{
    static uint64_t known;
    static pid_t pid;
    if (pid != getpid()) {
        pid = getpid();
        known = process_start_time(pid);
    }
    return known;
}

int record_write_started(const struct shepherd *shepherd, const char *name)
{
    const struct launch_spec *spec = &shepherd->spec;
    struct launch_started started = {
        .id = spec->id,
        .token = spec->token,
        .shepherd_pid = (uint32_t)getpid(),
        .shepherd_start = own_start_time(),
        .init_pid = (uint32_t)shepherd->init_pid,
        .init_start = process_start_time(shepherd->init_pid),
        .log_path = shepherd->log_path,
        .wall_ms = clock_wall_ms(),
        .boot_ms = clock_boot_ms(),
        .port = shepherd->meeting.port,
        .text = shepherd->start_text,
    };
    return file_put_record(shepherd->spool_fd, name, &launch_started_record, &started);
}

void record_make(const struct shepherd *shepherd, const struct ending *ending, char *text, size_t size,
    struct launch_exit *ret)
{
    const struct launch_spec *spec = &shepherd->spec;
    const struct init_status *status = &ending->status;
    enum start_cause cause = find_cause(spec, status);
    enum start_class class = start_row(cause)->class;
    describe(shepherd, ending, text, size);
    if (status->step == STEP_NONE)
        describe_rolls(ending, text, size);
    leftovers_describe(&ending->leftovers, text, size);
    *ret = (struct launch_exit){
        .id = spec->id,
        .token = spec->token,
        .end = judge(spec, ending),
        .is_executed = status->phase >= INIT_EXECUTING && status->step == STEP_NONE,
        .is_refused = class == START_SOON || class == START_ELSEWHERE,
        .cause = cause,
        .ended_wall_ms = status->ended_wall_ms != 0 ? status->ended_wall_ms : clock_wall_ms(),
        .ended_boot_ms = status->ended_boot_ms != 0 ? status->ended_boot_ms : clock_boot_ms(),
        .cpu_ms = status->cpu_ms,
        .max_rss = status->max_rss,
        .log_bytes = status->log_bytes,
        /* A launch that failed before its log was open has no log. */
        .log_path = shepherd->log_fd >= 0 || shepherd->is_adopting ? shepherd->log_path : NULL,
        .text = text[0] != '\0' ? text : NULL,
        .signals = ending->signals[0] != '\0' ? (char *)(uintptr_t)ending->signals : NULL,
    };
    set_exit_code(ending, ret);
    if (ret->is_executed != 0 || status->step == STEP_SETUP) {
        ret->started_wall_ms = status->started_wall_ms;
        ret->run_ms = ret->ended_boot_ms - status->started_boot_ms;
    }
    struct stat st;
    if (shepherd->log_fd >= 0 && fstat(shepherd->log_fd, &st) == 0 && S_ISREG(st.st_mode))
        ret->log_bytes = (uint64_t)st.st_size;
}

int record_reserve(struct shepherd *shepherd)
{
    static const char zeros[EXIT_RECORD_MAX];
    buffer_append(&shepherd->record, zeros, sizeof(zeros));
    (void)unlinkat(shepherd->spool_fd, EXIT_TEMPORARY, 0);
    shepherd->exit_fd = openat(
        shepherd->spool_fd, EXIT_TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (shepherd->exit_fd < 0)
        return -errno;
    /* File systems without fallocate(2) are filled with zeros. */
    if (fallocate(shepherd->exit_fd, FALLOC_FL_KEEP_SIZE, 0, EXIT_RECORD_MAX) == 0)
        return 0;
    shepherd->is_exit_padded = errno == EOPNOTSUPP;
    return shepherd->is_exit_padded ? write_all(shepherd->exit_fd, zeros, sizeof(zeros)) : -errno;
}

static int write_exit(const struct shepherd *shepherd)
{
    const struct buffer *record = &shepherd->record;
    if (pwrite(shepherd->exit_fd, record->bytes, record->length, 0) != (ssize_t)record->length)
        return -EIO;
    if (shepherd->is_exit_padded && ftruncate(shepherd->exit_fd, (off_t)record->length) < 0)
        return -errno;
    if (renameat(shepherd->spool_fd, EXIT_TEMPORARY, shepherd->spool_fd, SPOOL_EXIT) < 0)
        return -errno;
    return 0;
}

static bool is_spool_gone(const struct shepherd *shepherd)
{
    struct stat st;
    return fstatat(shepherd->spool_fd, SPOOL_EXIT, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* True if the agent took the record away in time. */
static bool await_fetch(const struct shepherd *shepherd)
{
    int64_t deadline_ms = clock_boot_ms() + FETCH_SECONDS * 1000L;
    struct pollfd source = { shepherd->ctl_fd, POLLIN, 0 };
    while (!is_spool_gone(shepherd)) {
        struct spool_command word; // the command is irrelevant: it comes too late
        int64_t left_ms = deadline_ms - clock_boot_ms();
        if (left_ms <= 0)
            return false;
        if (poll(&source, 1, (int)left_ms) > 0)
            (void)recv(shepherd->ctl_fd, &word, sizeof(word), MSG_DONTWAIT);
    }
    return true;
}

/* `is_published`: the record is in the spool too. An agent that fetched it there has not seen the copy, so
 * the shepherd must remove the copy. */
static void copy_record(const struct shepherd *shepherd, bool is_published)
{
    char name[SPOOL_NAME_SIZE + 8];
    (void)snprintf(name, sizeof(name), "%s.exit", shepherd->name);
    const struct buffer *record = &shepherd->record;
    if (shepherd->exit_copy_fd < 0 ||
        file_write(shepherd->exit_copy_fd, name, record->bytes, record->length, true) < 0)
        return;
    if (is_published && is_spool_gone(shepherd))
        (void)unlinkat(shepherd->exit_copy_fd, name, 0);
}

int record_publish(struct shepherd *shepherd, const struct ending *ending)
{
    char text[EVENT_TEXT_MAX], tail[TAIL_SIZE];
    struct launch_exit exit_record;
    struct ending counted = *ending;
    counts_read(&shepherd->spec, &counted.counts);
    counted.counts.node_oom_kills = count_node_kills(shepherd, ending);
    leftovers_find(&shepherd->spec, ending->status.started_wall_ms, &counted.leftovers);
    record_make(shepherd, &counted, text, sizeof(text), &exit_record);
    init_read_tail(shepherd->status_fd, &ending->status, tail);
    /* True if the kernel killed the init with the rest, or other processes have written since the init read
     * the tail. */
    bool has_more = ending->is_outlived && exit_record.exit_code != 0;
    if ((tail[0] == '\0' && exit_record.end == END_OOM) || has_more)
        orphan_tail_read(shepherd, tail);

    /* Output through a terminal was still on its way when the init read the tail. */
    bool is_terminal = shepherd->terminal.is_open && shepherd->log_fd >= 0;
    if (is_terminal && (exit_record.exit_code != 0 || tail[0] != '\0'))
        (void)tail_read(shepherd->log_fd, shepherd->log_start, tail);
    if (tail[0] != '\0')
        exit_record.tail = tail;
    shepherd->record.length = 0; // the reserved memory is kept
    (void)record_encode_readable(&launch_exit_record, &exit_record, &shepherd->record, &(struct error){ 0 });
    int r = write_exit(shepherd);
    if (r < 0) {
        copy_record(shepherd, false);
        return SHEPHERD_UNUSABLE;
    }
    shepherd_hint(shepherd, "exit");
    if (!await_fetch(shepherd))
        copy_record(shepherd, true);
    return SHEPHERD_DONE;
}
