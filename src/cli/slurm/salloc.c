/* SPDX-License-Identifier: MIT */
/*
 * salloc: a job that only holds resources while a command runs on this machine: a shell by default. srun in
 * that command starts tasks in the job.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/follow/follow.h"
#include "cli/options/talk.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/send.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_job.h"
#include "cli/term/field.h"
#include "job/slurm.h"

static const struct command salloc_command = { .name = "salloc" };

static void set_number(const char *name, int64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, value);
    (void)setenv(name, text, 1);
}

static void set_variables(const struct slurm_job *job, const json_t *made)
{
    _cleanup_free_ char *nodes = slurm_text_nodes(made, 0);
    int64_t count = job->nodes;
    int64_t id = field_integer(made, "id", 0);
    _cleanup_free_ char *tasks = count > 1 ? xasprintf("%" PRId64 "(x%" PRId64 ")", job->tasks / count, count)
                                           : xasprintf("%" PRId64, job->tasks);
    set_number("SLURM_JOB_ID", id);
    set_number("SLURM_JOBID", id);
    set_number("SLURM_JOB_NUM_NODES", count);
    set_number("SLURM_NNODES", count);
    (void)setenv("SLURM_JOB_NODELIST", nodes, 1);
    (void)setenv("SLURM_NODELIST", nodes, 1);
    (void)setenv("SLURM_TASKS_PER_NODE", tasks, 1);
    _cleanup_free_ char *partition = slurm_text_partition(made, 0);
    (void)setenv("SLURM_JOB_PARTITION", partition, 1);
    (void)setenv("SLURM_JOB_NAME", job->name, 1);
    (void)setenv("SLURM_CLUSTER_NAME", "mgpu", 1);
    if (slurm_note(&job->notes, SLURM_NOTE_TASKS) != NULL) {
        set_number("SLURM_NTASKS", job->tasks);
        set_number("SLURM_NPROCS", job->tasks);
    }
    if (job->tasks_per_node > 0)
        set_number("SLURM_NTASKS_PER_NODE", job->tasks_per_node);
    if (job->cpus_per_task > 0)
        set_number("SLURM_CPUS_PER_TASK", job->cpus_per_task);
    for (size_t i = 0; i < job->submit.env.count; i++) {
        const char *entry = job->submit.env.items[i], *equals = strchr(entry, '=');
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        (void)setenv(name, equals + 1, 1);
    }
}

/* The command, with the terminal; its exit status as a shell has it. */
static int run_command(const struct slurm_job *job, const json_t *made, char **command, struct error *err)
{
    char *shell[] = { getenv("SHELL"), NULL };
    static char usual[] = "/bin/sh";
    char **words = command[0] != NULL ? command : shell;
    int status = 0;
    if (words[0] == NULL)
        words[0] = usual;
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start %.60s", words[0]);
    if (pid == 0) {
        sigset_t held;
        client_interrupts(&held);
        (void)sigprocmask(SIG_UNBLOCK, &held, NULL);
        set_variables(job, made);
        (void)execvp(words[0], words);
        (void)fprintf(stderr, "salloc: error: Unable to exec command \"%s\"\n", words[0]);
        _exit(errno == ENOENT ? 2 : 126);
    }
    /* Keys are for the command, and what ends this program ends the job, too. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
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

static int allocate(
    const struct slurm_program *program, struct slurm_job *job, char **command, struct error *err)
{
    _cleanup_json_ json_t *made = NULL, *started = NULL;
    json_t *words = json_array();
    if (job->name == NULL)
        job->name = "interactive";
    (void)json_array_append_new(words, json_string("sleep"));
    (void)json_array_append_new(words, json_string("infinity"));
    int r = slurm_job_settle(job, program, err);
    if (r < 0) {
        json_decref(words);
        return error_wrap(err, "Job submit/allocate failed");
    }
    job->submit.output = "/dev/null";
    job->call.is_followed = true;
    r = slurm_job_send(job, words, NULL, &made, err);
    if (r < 0)
        return error_wrap(err, "Job submit/allocate failed");
    int64_t id = field_integer(made, "id", 0);
    if (!job->is_quiet)
        (void)fprintf(stderr, "salloc: Pending job allocation %" PRId64 "\n", id);
    r = slurm_job_await_immediate(job, made, err);
    if (r < 0)
        return r;
    const struct follow_options follow = { .is_until_start = true, .ret_job = &started };
    r = follow_job(&job->call, made, &follow, err);
    if (r < 0 || started == NULL)
        return r < 0 ? r : 1;
    if (!job->is_quiet)
        (void)fprintf(stderr, "salloc: Granted job allocation %" PRId64 "\n", id);
    if (job->is_without_shell)
        return 0;
    r = run_command(job, started, command, err);
    relinquish(job, id);
    return r;
}

int slurm_run_salloc(const struct slurm_program *program, int argc, char **argv)
{
    struct slurm_job job;
    struct error err = { 0 };
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    slurm_job_init(&job);
    job.call.command = &salloc_command;
    talk_as(program->name, "");
    const struct slurm_reading reading = { .program = program, .target = &job, .record = slurm_job_record };
    int r = slurm_options_from_environment(&reading, "SALLOC", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, true, &first, &err);
    if (r == 0)
        r = allocate(program, &job, argv + first, &err);
    slurm_job_clear(&job);
    return r < 0 ? slurm_exit_immediate(&err, slurm_fail(program, &err)) : r;
}
