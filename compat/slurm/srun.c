/* SPDX-License-Identifier: MIT */
/*
 * srun: inside a job, runs a step of it (step.h). Outside, submits a job and waits for its end; the job's
 * command is srun again, which is then inside.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/api/environment.h"
#include "cli/follow/run_job.h"
#include "cli/options/talk.h"
#include "cli/submit/slurm_distribution.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/send.h"
#include "compat/slurm/slurm.h"
#include "compat/step/multi_prog.h"
#include "compat/step/step.h"
#include "compat/step/step_gpus.h"
#include "compat/stepd/mpi.h"
#include "job/slurm.h"
#include "job/spec.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NO_EXEC   2
#define STEP_VERBOSE   "MGPU_STEP_VERBOSE" // set for the srun in a job submitted by srun: prints the options

static const struct command srun_command = { .name = "srun", .is_job_status = true };

/* Options of mgpu run that messages name. */
static const struct wording run_options[] = { { "--no-input", "--input=none" }, { 0 } };

/* --- MPI --- */

static bool is_mpi_listed(const struct slurm_job *job)
{
    return job->mpi != NULL && strcmp(job->mpi, "list") == 0;
}

/* The kind by its own name; a kind that does not work here is refused before anything is started. */
static int check_mpi(struct slurm_job *job, struct error *err)
{
    const char *name = job->mpi;
    const struct mpi_kind *kind = name != NULL ? mpi_kind_find(name) : NULL;
    if (name == NULL || name[0] == '\0' || strcmp(name, "none") == 0) {
        job->mpi = NULL;
        return 0;
    }
    if (kind == NULL) {
        _cleanup_free_ char *shown = text_escape(name, 60);
        (void)fprintf(stderr,
            "srun: error: Couldn't find the specified plugin name for mpi/%s looking at all files\n"
            "srun: error: cannot find mpi plugin for mpi/%s\n"
            "srun: error: MPI: Cannot create context for mpi/%s\n"
            "srun: error: MPI: Unable to load any plugin\n",
            shown, shown, shown);
    }
    if (kind == NULL)
        return error_set(err, -EINVAL, "Invalid MPI type '%.60s', --mpi=list for acceptable types", name);
    job->mpi = kind->name;
    return kind->check(err);
}

/* In Slurm's words, with the kinds that work on this machine. */
static int list_mpi(void)
{
    const struct mpi_kind *const kinds[] = { &mpi_pmi2, &mpi_pmix };
    (void)printf("MPI plugin types are...\n\tnone\n");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct error err = { 0 };
        if (kinds[i]->check(&err) == 0)
            (void)printf("\t%s\n", kinds[i]->name);
        else
            (void)printf("\t%s (not available: %s)\n", kinds[i]->name, err.message);
    }
    return 0;
}

/* --- options --- */

/* Inside a job, most SLURM_ variables describe the job. These are also options of srun, unless SRUN_
 * variables or the command line override them. */
static const struct {
    const char *variable, *option;
} step_variables[] = {
    { "SLURM_DISABLE_STATUS", "disable-status" },
    { "SLURM_DISTRIBUTION", "distribution" },
    { "SLURM_EPILOG", "epilog" },
    { "SLURM_EXACT", "exact" },
    { "SLURM_EXPORT_ENV", "export" },
    { "SLURM_GPU_BIND", "gpu-bind" },
    { "SLURM_KILL_BAD_EXIT", "kill-on-bad-exit" },
    { "SLURM_LABELIO", "label" },
    { "SLURM_OPEN_MODE", "open-mode" },
    { "SLURM_OVERLAP", "overlap" },
    { "SLURM_PROLOG", "prolog" },
    { "SLURM_REMOTE_CWD", "chdir" },
    { "SLURM_STDERRMODE", "error" },
    { "SLURM_STDINMODE", "input" },
    { "SLURM_STDOUTMODE", "output" },
    { "SLURM_STEP_GRES", "gres" },
    { "SLURM_WAIT", "wait" },
    { "SLURM_WORKING_DIR", "chdir" },
    { "SRUN_EXPORT_ENV", "export" },
};

/* The job in which srun runs, if that was not submitted by a Slurm command and has none of its variables;
 * else 0. */
static int64_t plain_job(void)
{
    const char *text = getenv("MGPU_JOB_ID");
    int64_t id;
    if (getenv("SLURM_JOB_ID") != NULL || text == NULL ||
        parse_integer(text, "MGPU_JOB_ID", 1, INT64_MAX, &id, NULL) < 0)
        return 0;
    return id;
}

static bool is_in_job(void)
{
    return getenv("SLURM_JOB_ID") != NULL || plain_job() != 0;
}

/* True if the step specifies which GPUs its tasks have. Otherwise each has as many as the job's tasks. */
static bool has_gpus(const struct slurm_job *job)
{
    return job->gpus != SLURM_UNSET || job->gpus_per_node != SLURM_UNSET ||
           job->gpus_per_task != SLURM_UNSET || job->gpu_bind != NULL;
}

static int read_options(const struct slurm_program *program, int argc, char **argv, struct slurm_job *job,
    int *ret_first, struct error *err)
{
    const struct slurm_reading reading = {
        .program = program, .target = job, .record = slurm_job_record, .seen = slurm_job_show
    };
    bool is_inside = is_in_job();
    job->program = program->name;
    /* Variables set for the surrounding job are not options of its steps. */
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(step_variables) / sizeof(step_variables[0]); i++)
        r = slurm_option_from_variable(&reading, step_variables[i].variable, step_variables[i].option, err);
    if (r == 0 && !is_inside)
        r = slurm_option_from_variable(&reading, "SLURM_NPROCS", "ntasks", err);
    if (r == 0)
        r = slurm_options_from_environment(&reading, is_inside ? "SRUN" : "SLURM", err);
    if (is_inside && job->mpi == NULL)
        job->mpi = getenv("SLURM_MPI_TYPE"); // set by the user, not by the job
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, true, ret_first, err);
    if (r == 0 && is_inside && !has_gpus(job))
        r = slurm_option_from_variable(&reading, "SLURM_GPUS_PER_TASK", "gpus-per-task", err);
    if (r == 0)
        r = slurm_job_check_single(argc, argv, *ret_first, true, err);
    if (r == 0 && getenv(STEP_VERBOSE) == NULL)
        slurm_job_print_options(job, program->name);
    job->is_verbose |= getenv(STEP_VERBOSE) != NULL;
    (void)unsetenv(STEP_VERBOSE);
    if (r == 0 && *ret_first >= argc && !is_mpi_listed(job))
        r = error_mark(err, SLURM_FATAL, error_set(err, -EINVAL, "No command given to execute."));
    return r == 0 && !is_mpi_listed(job) ? check_mpi(job, err) : r;
}

/* --- --jobid: a step of a job in which srun does not run --- */

/* Removes the variables of the surrounding job. */
static void forget_own(void)
{
    static const char *const names[] = { "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE",
        "SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS",
        "SLURMD_NODENAME" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]);
}

static void set_variable(const char *name, int64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, value);
    (void)setenv(name, text, 1);
}

static void set_job_nodes(const json_t *job)
{
    _cleanup_strings_ struct strings names = { 0 };
    const json_t *ranks = json_object_get(job, "ranks"), *rank = NULL;
    size_t index = 0;
    json_array_foreach(ranks, index, rank) if (field_text(rank, "node") != NULL)
        strings_add(&names, field_text(rank, "node"));
    if (names.count == 0)
        strings_add(&names, field_text(job, "node"));
    _cleanup_free_ char *list = hostlist_compress(&names);
    (void)setenv("SLURM_JOB_NODELIST", list, 1);
    (void)setenv("SLURM_NODELIST", list, 1);
    set_variable("SLURM_JOB_NUM_NODES", (int64_t)names.count);
    set_variable("SLURM_NNODES", (int64_t)names.count);
}

/* Requests the nodes and tasks of that job from mgpud, and replaces SLURM_JOB_NODELIST and other
 * variables. */
static int enter_job(const struct slurm_job *job, struct error *err)
{
    struct client client;
    _cleanup_json_ json_t *found = NULL;
    const char *own = getenv("SLURM_JOB_ID"), *tasks = NULL;
    if (job->job_id <= 0 || (own != NULL && strtoll(own, NULL, 10) == job->job_id))
        return 0;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, job->job_id);
    client_init(&client, NULL, NULL);
    int r = client_get(&client, path, &found, err);
    client_clear(&client);
    if (r == -ENOENT) {
        (void)fprintf(stderr,
            "srun: error: Unable to confirm allocation for job %" PRId64 ": Invalid job id specified\n",
            job->job_id);
        return error_mark(err, SLURM_NAMED,
            error_set(err, r, "Check SLURM_JOB_ID environment variable. Expired or invalid job %" PRId64,
                job->job_id));
    }
    if (r == 0 && (!field_is(found, "state", "running") || field_text(found, "node") == NULL))
        return error_set(err, -EALREADY, "Job %" PRId64 " is not running", job->job_id);
    if (r < 0)
        return r;
    forget_own();
    set_job_nodes(found);
    set_variable("SLURM_JOB_ID", job->job_id);
    set_variable("SLURM_JOBID", job->job_id);
    tasks = slurm_job_note(found, SLURM_NOTE_TASKS);
    if (tasks != NULL)
        (void)setenv("SLURM_NTASKS", tasks, 1);
    return 0;
}

/* --- inside --- */

/* Variables that the node set for the job: the tasks need them whatever is exported. */
static bool is_of_job(const char *name)
{
    static const char *const prefixes[] = { "SLURM", "MGPU_", "PMI", "MASTER_", "PET_" };
    static const char *const names[] = { "GPU_DEVICE_ORDINAL", "NVIDIA_VISIBLE_DEVICES", "TMPDIR" };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return gpu_vendor_has_variable(name);
}

/* Applies --export of a step and the variables of its other options to the environment of its tasks. */
static void apply_environment(const struct slurm_job *job)
{
    _cleanup_strings_ struct strings unwanted = { 0 };
    for (char **entry = environ; job->submit.export != NULL && *entry != NULL; entry++) {
        _cleanup_free_ char *name = xstrndup(*entry, strcspn(*entry, "="));
        if (!is_of_job(name) && !environment_is_exported(job->submit.export, name))
            strings_take(&unwanted, take_ptr(name));
    }
    for (size_t i = 0; i < unwanted.count; i++)
        (void)unsetenv(unwanted.items[i]);
    for (size_t i = 0; i < job->submit.env.count; i++) {
        const char *entry = job->submit.env.items[i], *equals = strchr(entry, '=');
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        (void)setenv(name, equals + 1, 1);
    }
}

/* Runs --prolog and --epilog with the arguments of the command. If they fail, the step does not. */
static void run_program(const char *which, const char *program, char *const *command)
{
    if (program == NULL || strcmp(program, "none") == 0)
        return;
    if (access(program, R_OK | X_OK) < 0) {
        _cleanup_free_ char *shown = text_escape(program, PATH_MAX);
        (void)fprintf(stderr, "srun: Access denied for %s: %s\n", shown, strerror(errno));
        return;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        size_t count = 1;
        while (command[count - 1] != NULL)
            count++;
        char **words = xcalloc(count + 1, sizeof(*words));
        words[0] = xstrdup(program);
        memcpy(words + 1, command, count * sizeof(*words));
        (void)execv(program, words);
        (void)fprintf(stderr, "srun: error: %s: %s\n", program, strerror(errno));
        _exit(EXIT_NO_EXEC);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        (void)fprintf(stderr, "srun: error: cannot start the %s %s: %s\n", which, program, strerror(errno));
    else if (status != 0)
        (void)fprintf(stderr, "srun: error: srun %s failed status=%d\n", which,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int run_step(struct slurm_job *job, char **command, struct error *err)
{
    _cleanup_(step_clear) struct step step = { 0 };
    _cleanup_(multi_prog_clear) struct multi_prog programs = { 0 };
    int r = enter_job(job, err);
    if (r == 0)
        r = slurm_distribution_settle(job, err);
    if (r == 0)
        r = step_plan(&step, job, command, err);
    if (r == 0)
        r = step_check_gpus(&step, err);
    if (r == 0 && job->has_multiple_programs)
        r = multi_prog_read(command[0], &step, &programs, err);
    if (r == 0) {
        apply_environment(job);
        run_program("prolog", job->prolog, command);
        r = step_run(&step, err);
        run_program("epilog", job->epilog, command);
    }
    return r;
}

/* --- outside --- */

enum word_kind { WORD_FLAG, WORD_NUMBER, WORD_TEXT };

/* Options of the step. Those of the job (nodes, memory, time and so on) are not repeated. */
static const struct {
    const char *option;
    enum word_kind kind;
    size_t member;
} step_options[] = {
    { "ntasks", WORD_NUMBER, offsetof(struct slurm_job, tasks) },
    { "cpus-per-task", WORD_NUMBER, offsetof(struct slurm_job, cpus_per_task) },
    { "ntasks-per-node", WORD_NUMBER, offsetof(struct slurm_job, tasks_per_node) },
    { "gpus-per-task", WORD_NUMBER, offsetof(struct slurm_job, gpus_per_task) },
    { "wait", WORD_NUMBER, offsetof(struct slurm_job, wait_s) },
    { "label", WORD_FLAG, offsetof(struct slurm_job, is_labelled) },
    { "multi-prog", WORD_FLAG, offsetof(struct slurm_job, has_multiple_programs) },
    { "kill-on-bad-exit", WORD_FLAG, offsetof(struct slurm_job, is_killed_on_exit) },
    { "pty", WORD_FLAG, offsetof(struct slurm_job, is_on_terminal) },
    { "quiet", WORD_FLAG, offsetof(struct slurm_job, is_quiet) },
    { "disable-status", WORD_FLAG, offsetof(struct slurm_job, is_status_off) },
    { "mpi", WORD_TEXT, offsetof(struct slurm_job, mpi) },
    { "input", WORD_TEXT, offsetof(struct slurm_job, input) },
    { "output", WORD_TEXT, offsetof(struct slurm_job, output) },
    { "error", WORD_TEXT, offsetof(struct slurm_job, error) },
    { "open-mode", WORD_TEXT, offsetof(struct slurm_job, open_mode) },
    { "prolog", WORD_TEXT, offsetof(struct slurm_job, prolog) },
    { "epilog", WORD_TEXT, offsetof(struct slurm_job, epilog) },
    { "gpu-bind", WORD_TEXT, offsetof(struct slurm_job, gpu_bind) },
    { "distribution", WORD_TEXT, offsetof(struct slurm_job, distribution) },
};

static void add_step_options(const struct slurm_job *job, struct strings *words)
{
    for (size_t i = 0; i < sizeof(step_options) / sizeof(step_options[0]); i++) {
        const char *option = step_options[i].option;
        const void *member = (const char *)job + step_options[i].member;
        const char *text = step_options[i].kind == WORD_TEXT ? *(const char *const *)member : NULL;
        int64_t number = step_options[i].kind == WORD_NUMBER ? *(const int64_t *)member : 0;
        bool is_set = step_options[i].kind == WORD_FLAG && *(const bool *)member;
        if (text != NULL)
            strings_take(words, xasprintf("--%s=%s", option, text));
        else if (number > 0)
            strings_take(words, xasprintf("--%s=%" PRId64, option, number));
        else if (is_set)
            strings_take(words, xasprintf("--%s", option));
    }
    if (job->nodelist != NULL) // which SLURM_HOSTFILE would replace
        strings_take(words, xasprintf("--nodelist=%s", job->nodelist));
}

/* The command of the job: this program, which then runs inside. */
static int make_command(const struct slurm_job *job, int argc, char **argv, json_t **ret, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    char self[PATH_MAX] = { 0 };
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return error_set_errno(err, -errno, "cannot find this program");
    strings_add(&words, self);
    strings_add(&words, "srun");
    add_step_options(job, &words);
    strings_add(&words, "--");
    for (int i = 0; i < argc; i++)
        strings_add(&words, argv[i]);
    return submit_words((int)words.count, words.items, ret, err);
}

/* The step opens files named by options. Standard input of this process is sent to the job, unless the tasks
 * read another one; with its own terminal, the job reads that. */
static bool choose_streams(struct slurm_job *job)
{
    const char *input = job->input;
    bool is_own = input == NULL || strcmp(input, "all") == 0 || input[strspn(input, "0123456789")] == '\0';
    bool is_sent = is_own && !job->is_on_terminal && input_is_there(INPUT_TERMINAL);
    job->submit.output = job->submit.error = NULL;
    job->submit.input = is_sent ? SPEC_INPUT_SENT : NULL;
    return is_sent;
}

/* Slurm's status for a program that cannot be executed, if the job failed for that reason. */
static int status_of_missing(struct slurm_job *job, const json_t *made, int status)
{
    _cleanup_json_ json_t *ended = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(made, "id", 0));
    bool is_missing =
        client_get(&job->call.client, path, &ended, NULL) == 0 && field_is(ended, "ended_by", "start_failed");
    return is_missing ? EXIT_NO_EXEC : status;
}

/* For the first Ctrl-C. Which tasks are still running is known only where they run. */
static void show_state(const json_t *job)
{
    const char *tasks = slurm_job_note(job, SLURM_NOTE_TASKS);
    int64_t count = tasks != NULL ? strtoll(tasks, NULL, 10) : 1;
    (void)fprintf(stderr, "srun: interrupt (one more within 1 sec to abort)\nsrun: StepId=%" PRId64 ".0 ",
        field_integer(job, "id", 0));
    if (count > 1)
        (void)fprintf(stderr, "tasks 0-%" PRId64 ": running\n", count - 1);
    else
        (void)fprintf(stderr, "task 0: running\n");
}

/* For another Ctrl-C, or with -X the first one. */
static void show_end(const json_t *job)
{
    (void)fprintf(stderr, "srun: sending Ctrl-C to StepId=%" PRId64 ".0\n", field_integer(job, "id", 0));
}

static int run_alone(
    const struct slurm_program *program, struct slurm_job *job, int argc, char **argv, struct error *err)
{
    struct terminal_options terminal = { .leaver = job->is_on_terminal  ? LEAVER_SRUN_TERMINAL
                                                   : job->is_status_off ? LEAVER_SRUN_QUICK
                                                                        : LEAVER_SRUN,
        .show_state = show_state,
        .show_end = job->is_quiet ? NULL : show_end,
        .passes_signals = !job->is_on_terminal };
    _cleanup_json_ json_t *made = NULL;
    json_t *command = NULL;
    const char *slash = strrchr(argv[0], '/');
    if (job->name == NULL) {
        strings_take(&job->kept, text_escape_fit(slash != NULL ? slash + 1 : argv[0], SPEC_NAME_MAX));
        job->name = job->kept.items[job->kept.count - 1];
    }
    if (job->relative >= 0)
        return error_mark(err, SLURM_FATAL,
            error_set(err, -EINVAL, "--relative option invalid for job allocation request"));
    int r = slurm_job_resolve(job, program, err);
    if (r == 0)
        r = make_command(job, argc, argv, &command, err);
    if (r < 0)
        return slurm_wrap(err, "Unable to allocate resources");
    if (job->is_tested)
        return slurm_job_test(job, command, NULL, err);
    if (job->is_verbose)
        strings_set_env(&job->submit.env, STEP_VERBOSE, "1");
    terminal.is_input_sent = choose_streams(job);
    job->submit.is_tty = job->is_on_terminal;
    job->call.is_followed = job->call.is_shown = true;
    r = slurm_job_send(job, command, NULL, &made, err);
    if (r < 0)
        return slurm_wrap(err, "Unable to allocate resources");
    slurm_job_print_held(job);
    r = slurm_job_await_immediate(job, made, err);
    if (r < 0)
        return r;
    if (job->immediate_s <= 0 && (job->submit.is_held || job->begin_ms > clock_wall_ms()))
        slurm_job_print_waiting(job, field_integer(made, "id", 0));
    job->call.options = &job->submit;
    r = run_job(&job->call, made, job->is_on_terminal, &terminal, err);
    job->call.options = NULL;
    return r == EXIT_NOT_FOUND ? status_of_missing(job, made, r) : r;
}

int slurm_run_srun(const struct slurm_program *program, int argc, char **argv)
{
    _cleanup_(slurm_job_clear) struct slurm_job job;
    struct error err = { 0 };
    int first = 0;
    slurm_job_init(&job);
    slurm_umask();
    job.call.command = &srun_command;
    talk_as(program->name, "");
    talk_translate(run_options);
    int r = read_options(program, argc, argv, &job, &first, &err);
    slurm_job_note_line(&job, program->name, argc, argv);
    if (job.job_id <= 0)
        job.job_id = plain_job();
    if (r == 0 && is_mpi_listed(&job))
        r = list_mpi();
    else if (r == 0)
        r = is_in_job() || job.job_id > 0 ? run_step(&job, argv + first, &err)
                                          : run_alone(program, &job, argc - first, argv + first, &err);
    return r < 0 ? slurm_exit_immediate(&err, slurm_fail(program, &err)) : r;
}
