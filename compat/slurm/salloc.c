/* SPDX-License-Identifier: MIT */
/*
 * salloc: a job that only holds resources while a command runs on this machine: a shell by default. srun in
 * that command starts tasks in the job. If the job ends first, the command continues; the user gets a message
 * and, with --kill-command, the command a signal.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/leaving.h"
#include "cli/api/leaving_signals.h"
#include "cli/follow/follow.h"
#include "cli/options/talk.h"
#include "cli/submit/slurm_job.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/send.h"
#include "compat/slurm/slurm.h"
#include "job/slurm.h"

static const struct command salloc_command = { .name = "salloc" };

static void set_number(const char *name, int64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, value);
    (void)setenv(name, text, 1);
}

/* "2(x3)": the tasks are divided evenly, as far as salloc knows. */
static void set_per_node(const char *name, int64_t number, int64_t nodes)
{
    _cleanup_free_ char *text =
        nodes > 1 ? xasprintf("%" PRId64 "(x%" PRId64 ")", number, nodes) : xasprintf("%" PRId64, number);
    (void)setenv(name, text, 1);
}

/* The numbers of the GPUs on their nodes. */
static void set_gpus(const json_t *made)
{
    _cleanup_buffer_ struct buffer list = { 0 };
    const json_t *gpus = json_object_get(made, "granted"), *gpu = NULL;
    size_t index = 0;
    json_array_foreach(gpus, index, gpu)
        buffer_printf(&list, "%s%" PRId64, index > 0 ? "," : "", field_integer(gpu, "index", 0));
    if (list.length > 0)
        (void)setenv("SLURM_JOB_GPUS", buffer_text(&list), 1);
}

static void set_notes(const struct slurm_job *job)
{
    for (const struct slurm_variable *variable = slurm_variables; variable->name != NULL; variable++) {
        const char *value = slurm_note(&job->notes, variable->note);
        if (value != NULL)
            (void)setenv(variable->name, value, 1);
    }
    for (size_t i = 0; i < job->submit.env.count; i++) {
        const char *entry = job->submit.env.items[i], *equals = strchr(entry, '=');
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        (void)setenv(name, equals + 1, 1);
    }
}

static void set_variables(const struct slurm_job *job, const json_t *made)
{
    _cleanup_free_ char *nodes = slurm_text_nodes(made, 0);
    _cleanup_free_ char *partition = slurm_text_partition(made, 0);
    int64_t count = job->nodes, tasks = job->tasks / (count > 0 ? count : 1);
    int64_t id = field_integer(made, "id", 0), memory = field_integer(made, "memory", 0);
    set_number("SLURM_JOB_ID", id);
    set_number("SLURM_JOBID", id);
    set_number("SLURM_JOB_NUM_NODES", count);
    set_number("SLURM_NNODES", count);
    (void)setenv("SLURM_JOB_NODELIST", nodes, 1);
    (void)setenv("SLURM_NODELIST", nodes, 1);
    set_per_node("SLURM_TASKS_PER_NODE", tasks, count);
    set_per_node("SLURM_JOB_CPUS_PER_NODE", tasks * (job->cpus_per_task > 0 ? job->cpus_per_task : 1), count);
    if (memory > 0 && job->memory_per_cpu == 0)
        set_number("SLURM_MEM_PER_NODE", memory >> 20);
    (void)setenv("SLURM_JOB_PARTITION", partition, 1);
    (void)setenv("SLURM_JOB_NAME", job->name, 1);
    (void)setenv("SLURM_CLUSTER_NAME", SLURM_CLUSTER, 1);
    set_gpus(made);
    set_notes(job);
}

/* --- the end of the job while the command runs --- */

/* A separate process waits for the end of the job, because the command may continue, as in Slurm. Its status
 * is then 1. */
static pid_t watch_job(int64_t id)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct client client;
    _cleanup_json_ json_t *ended = NULL;
    struct error err = { 0 };
    int delay_ms = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/wait?states=done,failed,cancelled", id);
    client_init(&client, NULL, NULL);
    client.timeout_ms = CLIENT_PATIENT_MS;
    client.answer_ms = CLIENT_WAITS_FOR_EVER; // the answer is the end of the job
    for (;;) {
        int r = client_get(&client, path, &ended, &err);
        if (r == 0)
            break;
        if (!client_is_away(&err))
            _exit(0);
        client_back_off(&delay_ms);
    }
    if (field_is(ended, "ended_by", "time_limit"))
        (void)fprintf(stderr,
            "salloc: Job %" PRId64 " has exceeded its time limit and its allocation has been revoked.\n", id);
    else
        (void)fprintf(stderr, "salloc: Job allocation %" PRId64 " has been revoked.\n", id);
    _exit(1);
}

/* Keys of the terminal are for the command, which receives them anyway. */
static const int keys[] = { SIGINT, SIGQUIT };
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* The signals for which salloc waits. */
static void hold_signals(sigset_t *ret, struct sigaction before[KEYS])
{
    static const int numbers[] = { SIGHUP, SIGTERM, SIGUSR1, SIGUSR2 };
    const struct sigaction ignored = { .sa_handler = SIG_IGN };
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGCHLD);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        leaving_signals_add(ret, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, ret, NULL);
    for (size_t i = 0; i < KEYS; i++)
        (void)sigaction(keys[i], &ignored, &before[i]);
}

/* Restores the signals for the command as they were when salloc began. */
static void release_signals(const sigset_t *held, const struct sigaction before[KEYS])
{
    sigset_t set;
    for (size_t i = 0; i < KEYS; i++)
        (void)sigaction(keys[i], &before[i], NULL);
    leaving_restore_unread();
    leaving_signals(&set); // since the job was submitted
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)sigprocmask(SIG_UNBLOCK, held, NULL);
}

/* Waits until the command has ended, or salloc's terminal is closed. True if the job ended first. */
static bool await_command(
    pid_t command, pid_t watcher, int signal_number, const sigset_t *signals, int *ret_status)
{
    bool is_revoked = false;
    for (;;) {
        int number = sigwaitinfo(signals, NULL), status = 0;
        if (number == SIGCHLD && watcher > 0 && waitpid(watcher, &status, WNOHANG) == watcher) {
            is_revoked = WIFEXITED(status) && WEXITSTATUS(status) == 1;
            watcher = 0;
            if (is_revoked && signal_number > 0)
                (void)kill(command, signal_number);
        }
        if (number == SIGCHLD && waitpid(command, ret_status, WNOHANG) == command)
            break;
        if (number > 0 && number != SIGCHLD)
            (void)kill(command, number);
        if (leaving_effect(LEAVER_SALLOC, false, number) == LEAVE_ENDS)
            break;
    }
    if (watcher > 0) {
        (void)kill(watcher, SIGKILL);
        (void)waitpid(watcher, NULL, 0);
    }
    return is_revoked;
}

/* Runs the command with the terminal; returns its exit status as in a shell. *ret_is_revoked: the job ended
 * before it. */
static int run_command(
    const struct slurm_job *job, const json_t *made, char **command, bool *ret_is_revoked, struct error *err)
{
    char *shell[] = { getenv("SHELL"), NULL };
    static char usual[] = "/bin/sh";
    char **words = command[0] != NULL ? command : shell;
    int status = 0, usual_signal = command[0] == NULL && isatty(STDIN_FILENO) == 1 ? SIGHUP : SIGTERM;
    sigset_t signals;
    struct sigaction before[KEYS];
    if (words[0] == NULL)
        words[0] = usual;
    hold_signals(&signals, before);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start %.60s", words[0]);
    if (pid == 0) {
        release_signals(&signals, before);
        set_variables(job, made);
        (void)execvp(words[0], words);
        (void)fprintf(stderr, "salloc: error: _fork_command: Unable to find command \"%s\"\n", words[0]);
        _exit(EXIT_FAILURE);
    }
    pid_t watcher = watch_job(field_integer(made, "id", 0));
    int number = job->kill_signal == SLURM_UNSET ? usual_signal : job->kill_signal;
    *ret_is_revoked = await_command(pid, watcher, number, &signals, &status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void relinquish(struct slurm_job *job, int64_t id)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/cancel", id);
    _cleanup_json_ json_t *body = json_object();
    if (!job->is_quiet)
        (void)fprintf(stderr, "salloc: Relinquishing job allocation %" PRId64 "\n", id);
    (void)client_call(&job->call.client, "POST", path, body, NULL, NULL);
}

/* True if the job gets its resources within the second in which slurmctld would have answered. Signals are
 * left to the wait that follows. */
static bool starts_at_once(struct slurm_job *job, int64_t id)
{
    _cleanup_json_ json_t *now = NULL;
    _cleanup_free_ char *path = xasprintf(
        API_PATH "/jobs/%" PRId64 "/wait?states=running,stopping,done,failed,cancelled&timeout=1", id);
    return client_get(&job->call.client, path, &now, NULL) == 0;
}

static void print_granted(const json_t *started, int64_t id, bool was_waiting)
{
    _cleanup_free_ char *nodes = slurm_text_nodes(started, 0);
    if (was_waiting)
        (void)fprintf(stderr, "salloc: job %" PRId64 " has been allocated resources\n", id);
    (void)fprintf(stderr,
        "salloc: Granted job allocation %" PRId64 "\nsalloc: Waiting for resource configuration\n"
        "salloc: Nodes %s are ready for job\n",
        id, nodes);
}

static int allocate(
    const struct slurm_program *program, struct slurm_job *job, char **command, struct error *err)
{
    _cleanup_json_ json_t *made = NULL, *started = NULL;
    json_t *words = json_array();
    if (job->name == NULL)
        job->name = "interactive";
    (void)json_array_append_new(words, json_string("sleep"));
    (void)json_array_append_new(words, json_string("infinity"));
    int r = slurm_job_resolve(job, program, err);
    if (r < 0) {
        json_decref(words);
        return slurm_wrap(err, "Job submit/allocate failed");
    }
    slurm_job_debug(job, "Entering _msg_thr_internal");
    job->submit.output = "/dev/null";
    job->call.is_followed = true;
    r = slurm_job_send(job, words, NULL, &made, err);
    if (r < 0)
        return slurm_wrap(err, "Job submit/allocate failed");
    int64_t id = field_integer(made, "id", 0);
    slurm_job_print_held(job);
    r = slurm_job_await_immediate(job, made, err);
    if (r < 0)
        return r;
    bool is_waiting = !job->is_quiet && !starts_at_once(job, id);
    if (is_waiting)
        slurm_job_print_waiting(job, id);
    const struct follow_options follow = {
        .leaver = LEAVER_SALLOC, .is_until_start = true, .ret_job = &started
    };
    r = follow_job(&job->call, made, &follow, err);
    if (r >= 0 && started == NULL && !job->is_quiet)
        (void)fprintf(stderr, "salloc: Job allocation %" PRId64 " has been revoked.\n", id);
    if (r < 0 || started == NULL)
        return r < 0 ? r : 1;
    if (!job->is_quiet)
        print_granted(started, id, is_waiting);
    if (job->is_without_shell)
        return 0;
    bool is_revoked = false;
    r = run_command(job, started, command, &is_revoked, err);
    if (!is_revoked)
        relinquish(job, id);
    return r;
}

int slurm_run_salloc(const struct slurm_program *program, int argc, char **argv)
{
    _cleanup_(slurm_job_clear) struct slurm_job job;
    struct error err = { 0 };
    int first = 0;
    slurm_job_init(&job);
    job.call.command = &salloc_command;
    talk_as(program->name, "");
    const struct slurm_reading reading = {
        .program = program, .target = &job, .record = slurm_job_record, .seen = slurm_job_show
    };
    int r = slurm_options_from_environment(&reading, "SALLOC", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, true, &first, &err);
    if (r == 0)
        r = slurm_job_check_single(argc, argv, first, true, &err);
    if (r == 0)
        slurm_job_print_options(&job, program->name);
    slurm_job_note_line(&job, program->name, argc, argv);
    if (r == 0)
        r = allocate(program, &job, argv + first, &err);
    if (r >= 0)
        slurm_job_debug(&job, "Leaving _msg_thr_internal");
    return r < 0 ? slurm_exit_immediate(&err, slurm_fail(program, &err)) : r;
}
