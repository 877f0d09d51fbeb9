/* SPDX-License-Identifier: MIT */
/*
 * Converts tasks to CPUs, memory and GPUs of each node, which mgpu's requests contain. Where Slurm would use
 * any number of nodes with enough tasks, a job without --nodes gets one node.
 */
#include "cli/submit/slurm_job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hostlist.h"
#include "base/memory.h"
#include "cli/options/ask.h"
#include "cli/submit/slurm_distribution.h"
#include "cli/submit/slurm_gpus.h"
#include "cli/submit/slurm_times.h"
#include "cli/submit/slurm_values.h"
#include "job/ask.h"
#include "job/slurm.h"

#define MIB_SHIFT 20

void slurm_job_init(struct slurm_job *job)
{
    *job = (struct slurm_job){ .nodes = SLURM_UNSET,
        .tasks = SLURM_UNSET,
        .tasks_per_node = SLURM_UNSET,
        .cpus_per_task = SLURM_UNSET,
        .cpus_per_gpu = SLURM_UNSET,
        .tasks_per_gpu = SLURM_UNSET,
        .gpus = SLURM_UNSET,
        .gpus_per_node = SLURM_UNSET,
        .gpus_per_task = SLURM_UNSET,
        .gpus_per_socket = SLURM_UNSET,
        .sockets = SLURM_UNSET,
        .time_s = SLURM_UNSET,
        .immediate_s = SLURM_UNSET,
        .relative = SLURM_UNSET,
        .job_id = SLURM_UNSET };
    job->submit.ask = json_object();
    client_init(&job->call.client, NULL, NULL);
}

void slurm_job_clear(struct slurm_job *job)
{
    submit_options_clear(&job->submit);
    strings_clear(&job->task_nodes);
    strings_clear(&job->kept);
    strings_clear(&job->notes);
    strings_clear(&job->defined);
    strings_clear(&job->call.defaults);
    client_clear(&job->call.client);
    free(job->gpu_model);
    free(job->mail_on);
}

void slurm_job_note_set(struct slurm_job *job, const char *name, const char *value)
{
    strings_set_env(&job->notes, name, value);
}

void slurm_job_record(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value)
{
    slurm_job_note_set(reading->target, option->key, value != NULL ? value : "yes");
}

static void note_number(struct slurm_job *job, const char *name, int64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, value);
    slurm_job_note_set(job, name, text);
}

static int64_t or_one(int64_t value)
{
    return value > 0 ? value : 1;
}

void slurm_job_warn_few_tasks(int64_t tasks, int64_t nodes, const char *program)
{
    (void)fprintf(stderr,
        "%s: Warning: can't run %" PRId64 " processes on %" PRId64 " nodes, setting nnodes to %" PRId64 "\n",
        program, tasks, nodes, tasks);
}

/* Derives the numbers of nodes and tasks from each other. */
static void resolve_tasks(struct slurm_job *job)
{
    bool has_tasks = job->tasks > 0;
    if (job->tasks_per_gpu > 0 && job->tasks <= 0) {
        int64_t gpus = job->gpus > 0 ? job->gpus : or_one(job->gpus_per_node) * or_one(job->nodes);
        job->tasks = gpus * job->tasks_per_gpu;
        has_tasks = true;
    }
    if (job->nodes <= 0)
        job->nodes = job->tasks_per_node > 0 && has_tasks
                         ? (job->tasks + job->tasks_per_node - 1) / job->tasks_per_node
                         : 1;
    if (!has_tasks)
        job->tasks = job->nodes * or_one(job->tasks_per_node);
    if (has_tasks || job->tasks_per_node > 0)
        note_number(job, SLURM_NOTE_TASKS, job->tasks);
    if (job->tasks_per_node > 0)
        note_number(job, SLURM_NOTE_TASKS_PER_NODE, job->tasks_per_node);
    if (job->cpus_per_task > 0)
        note_number(job, SLURM_NOTE_CPUS_PER_TASK, job->cpus_per_task);
}

/* A constraint names GPU models, like the type of --gpus. */
static int resolve_model(struct slurm_job *job, int64_t gpus, struct error *err)
{
    const char *model = job->gpu_model != NULL ? job->gpu_model : job->constraint;
    if (gpus == 0 && job->constraint != NULL) {
        (void)error_set(err, -EINVAL, "Invalid feature specification");
        return error_hint(err,
            "--constraint=%.60s is not supported without GPUs: features of nodes are the models of their "
            "GPUs",
            job->constraint);
    }
    if (job->gpu_model != NULL && job->constraint != NULL && strcasecmp(job->gpu_model, job->constraint) != 0)
        return error_set(err, -EINVAL, "--constraint=%.60s is not the type of the GPUs, %.60s",
            job->constraint, job->gpu_model);
    if (gpus > 0 && model != NULL)
        (void)json_object_set_new(job->submit.ask, "gpu_model", json_string(model));
    return 0;
}

static int resolve_gpus(struct slurm_job *job, struct error *err)
{
    json_t *ask = job->submit.ask;
    if (job->gpus_per_socket > 0 && job->gpus_per_node <= 0)
        job->gpus_per_node = job->gpus_per_socket * job->sockets;
    int64_t gpus = job->gpus > 0            ? job->gpus
                   : job->gpus_per_node > 0 ? job->gpus_per_node * job->nodes
                   : job->gpus_per_task > 0 ? job->gpus_per_task * job->tasks
                                            : 0;
    if (gpus > ASK_GPUS_MAX)
        return error_set(err, -ERANGE, "Requested node configuration is not available");
    (void)json_object_set_new(ask, "gpus", json_integer(gpus));
    bool is_each =
        job->nodes > 1 || job->gpus_per_node > 0; // also of a single node: no others are added for them
    if (is_each && gpus > 0 && job->gpus <= 0 && gpus % job->nodes == 0)
        (void)json_object_set_new(ask, "gpus_per_node", json_integer(gpus / job->nodes));
    return resolve_model(job, gpus, err);
}

/* CPUs are requested if specified; memory below the minimum for a command is raised to it. */
static void resolve_host(struct slurm_job *job)
{
    json_t *ask = job->submit.ask;
    int64_t here = (job->tasks + job->nodes - 1) / job->nodes;
    int64_t gpus = json_integer_value(json_object_get(ask, "gpus"));
    int64_t gpus_here = (gpus + job->nodes - 1) / job->nodes;
    int64_t cpus =
        job->cpus_per_gpu > 0 ? job->cpus_per_gpu * or_one(gpus_here) : here * or_one(job->cpus_per_task);
    cpus = cpus < job->least_cpus ? job->least_cpus : cpus;
    uint64_t memory = job->memory > 0           ? job->memory
                      : job->memory_per_cpu > 0 ? job->memory_per_cpu * (uint64_t)cpus
                                                : job->memory_per_gpu * (uint64_t)gpus_here;
    if (job->cpus_per_task > 0 || job->cpus_per_gpu > 0 || job->least_cpus > 0)
        (void)json_object_set_new(ask, "cpus", json_integer(cpus));
    if (memory > 0)
        (void)json_object_set_new(
            ask, "memory", json_integer((json_int_t)(memory < ASK_MEMORY_MIN ? ASK_MEMORY_MIN : memory)));
    if (job->memory_per_cpu > 0)
        note_number(job, SLURM_NOTE_MEM_PER_CPU, (int64_t)(job->memory_per_cpu >> 20));
    if (job->nodes > 1)
        (void)json_object_set_new(ask, "nodes", json_integer(job->nodes));
}

static int resolve_mail(struct slurm_job *job, struct error *err)
{
    if (job->mail_on == NULL)
        return 0;
    _cleanup_free_ char *to = job->mail_user != NULL ? xasprintf("mail:%s", job->mail_user) : xstrdup("mail");
    int r = ask_set(job->submit.ask, NULL, "notify", "--mail-user", to, err);
    return r < 0 ? r : ask_set(job->submit.ask, NULL, "notify_on", "--mail-type", job->mail_on, err);
}

/* Sets the paths of the output files; those of a batch job are named as in Slurm. */
static void resolve_files(struct slurm_job *job, bool is_batch)
{
    const char *usual =
        json_object_get(job->submit.ask, "array") != NULL ? "slurm-%A_%a.out" : "slurm-%j.out";
    const char *output = job->output != NULL && strcmp(job->output, "none") != 0 ? job->output
                         : job->output != NULL                                   ? "/dev/null"
                         : is_batch                                              ? usual
                                                                                 : NULL;
    const struct {
        const char *text;
        const char **target;
    } files[] = { { output, &job->submit.output }, { job->error, &job->submit.error },
        { job->input, &job->submit.input } };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i].text == NULL)
            continue;
        strings_take(
            &job->kept, slurm_path(strcmp(files[i].text, "none") == 0 ? "/dev/null" : files[i].text));
        *files[i].target = job->kept.items[job->kept.count - 1];
    }
    job->submit.is_truncated =
        is_batch && (job->open_mode == NULL || strcmp(job->open_mode, "truncate") == 0);
}

static void add_number(struct slurm_job *job, const char *name, int64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, value);
    if (value > 0)
        strings_set_env(&job->submit.env, name, text);
}

/* Adds variables about the submission; variables of options only if these were given. */
static void add_variables(struct slurm_job *job)
{
    add_number(job, "SLURM_CPUS_PER_GPU", job->cpus_per_gpu);
    add_number(job, "SLURM_NTASKS_PER_GPU", job->tasks_per_gpu);
    add_number(job, "SLURM_MEM_PER_GPU", (int64_t)(job->memory_per_gpu >> MIB_SHIFT));
    _cleanup_free_ char *nice = xasprintf("%d", getpriority(PRIO_PROCESS, 0));
    strings_set_env(&job->submit.env, "SLURM_PRIO_PROCESS", nice);
    char host[256] = "";
    _cleanup_free_ char *here = getcwd(NULL, 0);
    if (gethostname(host, sizeof(host) - 1) == 0)
        strings_set_env(&job->submit.env, "SLURM_SUBMIT_HOST", host);
    strings_set_env(&job->submit.env, "SLURM_SUBMIT_DIR", here != NULL ? here : "/");
}

/* "gpu[1-2],gpu1" as "gpu1,gpu2", the first `most` of them; the number of names in *ret_count. */
static int resolve_list(struct slurm_job *job, const char *key, const char *list, size_t most,
    size_t *ret_count, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = list != NULL ? hostlist_expand_once(list, &names, err) : 0;
    if (r < 0 && err != NULL) {
        struct error why = *err;
        (void)error_set(err, r, "Invalid node name specified");
        return error_hint(err, "%.200s", why.message);
    }
    for (size_t i = 0; i < names.count && i < most; i++)
        buffer_printf(&text, "%s%s", i > 0 ? "," : "", names.items[i]);
    if (r == 0 && names.count > 0)
        (void)json_object_set_new(job->submit.ask, key, json_string(buffer_text(&text)));
    *ret_count = names.count;
    return r;
}

/* A job gets all listed nodes, and no others. */
static int resolve_nodes(struct slurm_job *job, struct error *err)
{
    size_t listed = 0, excluded = 0;
    int r = resolve_list(job, "nodelist", job->nodelist, SIZE_MAX, &listed, err);
    if (r == 0)
        r = resolve_list(job, "exclude", job->exclude, SIZE_MAX, &excluded, err);
    if (r == 0 && listed > 0 && job->nodes > 0 && (size_t)job->nodes != listed)
        return error_set(err, -EINVAL, "Requested node configuration is not available");
    if (r == 0 && listed > 0)
        job->nodes = (int64_t)listed;
    if (r == 0 && job->program != NULL && job->tasks > 0 && job->tasks < job->nodes) {
        if (!job->is_quiet || text_equal(job->program, "srun"))
            slurm_job_warn_few_tasks(job->tasks, job->nodes, job->program);
        job->nodes = job->tasks; // a node without a task is not part of the job
        r = resolve_list(job, "nodelist", job->nodelist, (size_t)job->nodes, &listed, err);
        if (listed > 0)
            job->nodelist = json_string_value(json_object_get(job->submit.ask, "nodelist"));
    }
    return r;
}

void slurm_job_note_line(struct slurm_job *job, const char *program, int argc, char **argv)
{
    _cleanup_buffer_ struct buffer line = { 0 };
    buffer_append_text(&line, program);
    for (int i = 1; i < argc && line.length < SLURM_LINE_MAX; i++)
        buffer_printf(&line, " %.*s", SLURM_LINE_MAX, argv[i]);
    _cleanup_free_ char *kept = text_escape_fit(buffer_text(&line), SLURM_LINE_MAX);
    slurm_job_note_set(job, SLURM_NOTE_LINE, kept);
}

int slurm_job_resolve_request(struct slurm_job *job, struct error *err)
{
    if ((job->memory_options & (job->memory_options - 1)) != 0)
        return error_mark(err, SLURM_FATAL,
            error_set(err, -EINVAL, "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."));
    if (job->refusal != NULL)
        return error_set(err, -EINVAL, "%s", job->refusal);
    int r = slurm_settle_times(job, clock_wall_ms(), err);
    if (r == 0)
        r = slurm_distribution_settle(job, err);
    if (r == 0)
        r = slurm_gpus_check(job, err);
    slurm_gpus_note(job);
    if (r == 0)
        r = resolve_nodes(job, err);
    resolve_tasks(job);
    if (r == 0)
        r = resolve_gpus(job, err);
    resolve_host(job);
    if (job->is_exclusive)
        (void)json_object_set_new(job->submit.ask, "exclusive", json_true());
    if (job->name != NULL)
        (void)json_object_set_new(job->submit.ask, "name", json_string(job->name));
    return r == 0 ? resolve_mail(job, err) : r;
}

int slurm_job_resolve(struct slurm_job *job, const struct slurm_program *program, struct error *err)
{
    json_t *notes = json_array();
    job->program = program->name;
    int r = slurm_job_resolve_request(job, err);
    slurm_job_note_set(job, SLURM_NOTE_KIND, program->name);
    resolve_files(job, program->bit == SLURM_SBATCH);
    add_variables(job);
    for (size_t i = 0; i < job->notes.count; i++)
        (void)json_array_append_new(notes, json_string(job->notes.items[i]));
    (void)json_object_set_new(job->submit.ask, "slurm", notes);
    return r;
}
