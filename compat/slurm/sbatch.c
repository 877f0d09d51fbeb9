/* SPDX-License-Identifier: MIT */
/* sbatch: submits a script. The script's options, in which #BSUB and #PBS lines follow those of Slurm, are
 * overridden by SBATCH_ variables, and those by the command line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/show/job_end.h"
#include "cli/submit/slurm_foreign.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_lines.h"
#include "compat/slurm/script.h"
#include "compat/slurm/send.h"
#include "compat/slurm/slurm.h"
#include "job/spec.h"

static bool ignores_by_variable(void)
{
    const char *text = getenv("SBATCH_IGNORE_PBS");
    return text != NULL && strcmp(text, "0") != 0;
}

static int read_options(const struct slurm_program *program, int argc, char **argv, struct slurm_job *job,
    struct slurm_script *script, int *ret_first, struct error *err)
{
    struct slurm_job first_look;
    struct slurm_reading reading = {
        .program = program, .target = &first_look, .record = slurm_job_record, .seen = slurm_job_show
    };
    slurm_job_init(&first_look);
    int r = slurm_options_read(&reading, argc, argv, true, ret_first, err);
    if (r == 0)
        r = slurm_job_check_single(argc, argv, *ret_first, false, err);
    if (r == 0 && first_look.wrap != NULL && *ret_first < argc)
        r = error_set(err, -EINVAL, "Script arguments not permitted with --wrap option");
    else if (r == 0 && first_look.wrap != NULL)
        slurm_script_wrap(script, first_look.wrap);
    else if (r == 0)
        r = slurm_script_read(script, *ret_first < argc ? argv[*ret_first] : NULL, err);
    if (r == 0 && first_look.insert != NULL)
        r = slurm_script_insert(script, first_look.insert, err);
    bool is_ignored = first_look.ignores_foreign || ignores_by_variable();
    slurm_job_clear(&first_look);
    reading.target = job;
    if (r == 0)
        r = slurm_lines_read(script->text, script->name, &reading, &job->kept, err);
    if (r == 0 && !is_ignored && !job->ignores_foreign)
        r = slurm_foreign_read(script->text, &reading, &job->kept, err);
    if (r == 0)
        r = slurm_options_from_environment(&reading, "SBATCH", err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, true, ret_first, err);
    if (r == 0)
        slurm_job_print_options(job, program->name);
    return r;
}

/* Variables of the surrounding job do not apply to the new one. */
static void forget_job_around(void)
{
    _cleanup_strings_ struct strings names = { 0 };
    for (char **entry = environ; *entry != NULL; entry++)
        if (strncmp(*entry, "SLURM_", 6) == 0 || strncmp(*entry, "SLURMD_", 7) == 0)
            strings_take(&names, xstrndup(*entry, strcspn(*entry, "=")));
    for (size_t i = 0; i < names.count; i++)
        (void)unsetenv(names.items[i]);
}

static json_t *make_command(const struct slurm_script *script, int argc, char **argv, int first)
{
    json_t *command = json_array();
    (void)json_array_append_new(command, json_string(script->path));
    for (int i = first + 1; i < argc; i++)
        (void)json_array_append_new(command, json_string(argv[i]));
    return command;
}

/* The status of the job; for an array, the highest of all its elements. */
static int await(struct slurm_job *job, int64_t id, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%" PRId64, id);
    _cleanup_json_ json_t *ended = NULL;
    job->call.client.timeout_ms = CLIENT_PATIENT_MS;
    int r = job_end_await(&job->call, path, JOB_END_FOR_EVER, &ended, err);
    const json_t *elements = json_object_get(ended, "elements");
    if (r == 0 && field_is_known(elements, "exit_code") && field_is(ended, "ended_by", "exit"))
        return (int)field_integer(elements, "exit_code", 0);
    /* A script that a signal ended is a failure for sbatch, whatever the signal. */
    return r < 0 ? r : field_is_known(ended, "signal") ? 1 : exit_code_of_job(ended);
}

static mode_t read_umask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return mask;
}

static int submit(const struct slurm_program *program, struct slurm_job *job, struct slurm_script *script,
    int argc, char **argv, int first, struct error *err)
{
    _cleanup_json_ json_t *made = NULL;
    if (job->name == NULL) {
        strings_take(&job->kept, text_escape_fit(script->name, SPEC_NAME_MAX));
        job->name = job->kept.items[job->kept.count - 1];
    }
    int r = slurm_job_resolve(job, program, err);
    if (r < 0)
        return slurm_wrap(err, "Batch job submission failed");
    slurm_job_debug(job, "propagating SLURM_PRIO_PROCESS=%d", getpriority(PRIO_PROCESS, 0));
    slurm_job_debug(job, "propagating UMASK=%04o", read_umask());
    forget_job_around();
    json_t *command = make_command(script, argc, argv, job->wrap != NULL ? argc : first);
    if (job->is_tested)
        return slurm_job_test(job, command, script->text, err);
    r = slurm_job_send(job, command, script->text, &made, err);
    if (r < 0)
        return slurm_wrap(err, "Batch job submission failed");
    int64_t id = field_integer(made, "id", 0);
    if (job->is_parsable)
        (void)printf("%" PRId64 "\n", id);
    else if (!job->is_quiet)
        (void)printf("Submitted batch job %" PRId64 "\n", id);
    (void)fflush(stdout);
    return job->is_waited ? await(job, id, err) : 0;
}

int slurm_run_sbatch(const struct slurm_program *program, int argc, char **argv)
{
    _cleanup_(slurm_job_clear) struct slurm_job job;
    _cleanup_slurm_script_ struct slurm_script script = { 0 };
    struct error err = { 0 };
    int first = 0;
    slurm_job_init(&job);
    slurm_umask();
    int r = read_options(program, argc, argv, &job, &script, &first, &err);
    slurm_job_note_line(&job, program->name, argc, argv);
    if (r == 0)
        r = submit(program, &job, &script, argc, argv, first, &err);
    return r < 0 ? slurm_fail(program, &err) : r;
}
