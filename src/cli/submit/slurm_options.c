/* SPDX-License-Identifier: MIT */
/*
 * Every option of sbatch, srun and salloc of Slurm 22.05, and its effect here. docs/slurm.md is generated
 * from this table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/options/ask.h"
#include "cli/submit/image.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_values.h"
#include "job/after.h"
#include "job/ask.h"
#include "job/slurm.h"

#define SETTER(name)                                                                                         \
    static int set_##name(                                                                                   \
        void *target, const struct slurm_option *option, const char *value, struct error *err)

static json_t *ask_of(struct slurm_job *job)
{
    if (job->submit.ask == NULL)
        job->submit.ask = json_object();
    return job->submit.ask;
}

static const char *keep(struct slurm_job *job, const char *value)
{
    strings_add(&job->kept, value);
    return job->kept.items[job->kept.count - 1];
}

static char *option_name(const struct slurm_option *option)
{
    return xasprintf("--%s", option->name);
}

/* --- numbers --- */

/* Members of struct slurm_job by the name of the option. */
SETTER(number)
{
    static const struct {
        const char *name;
        size_t offset;
        int64_t least, most;
    } numbers[] = {
        { "ntasks", offsetof(struct slurm_job, tasks), 1, 65536 },
        { "ntasks-per-node", offsetof(struct slurm_job, tasks_per_node), 0, 65536 },
        { "ntasks-per-gpu", offsetof(struct slurm_job, tasks_per_gpu), 1, 65536 },
        { "cpus-per-task", offsetof(struct slurm_job, cpus_per_task), 1, ASK_CPUS_MAX },
        { "cpus-per-gpu", offsetof(struct slurm_job, cpus_per_gpu), 1, ASK_CPUS_MAX },
        { "relative", offsetof(struct slurm_job, relative), 0, ASK_NODES_MAX },
        { "jobid", offsetof(struct slurm_job, job_id), 1, INT64_MAX },
        { "wait", offsetof(struct slurm_job, wait_s), 0, INT32_MAX },
    };
    _cleanup_free_ char *name = option_name(option);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(option->name, numbers[i].name) == 0) {
            int64_t *number = (int64_t *)(void *)((char *)target + numbers[i].offset);
            return parse_integer(value, name, numbers[i].least, numbers[i].most, number, err);
        }
    return -EINVAL;
}

/* "2", or "2-4": as many as are there of the least. */
SETTER(nodes)
{
    struct slurm_job *job = target;
    const char *dash = strchr(value, '-');
    _cleanup_free_ char *least = xstrndup(value, dash != NULL ? (size_t)(dash - value) : strlen(value));
    int64_t most = 0;
    (void)option;
    int r = parse_integer(least, "--nodes", 1, ASK_NODES_MAX, &job->nodes, err);
    if (r == 0 && dash != NULL)
        r = parse_integer(dash + 1, "--nodes", job->nodes, ASK_NODES_MAX, &most, err);
    return r;
}

SETTER(gpus)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *name = option_name(option);
    bool is_all = strcmp(option->name, "gpus") == 0, is_task = strcmp(option->name, "gpus-per-task") == 0;
    int64_t *number = is_all ? &job->gpus : is_task ? &job->gpus_per_task : &job->gpus_per_node;
    char *model = NULL;
    int r = strcmp(option->name, "gres") == 0 ? slurm_parse_gres(value, number, &model, err)
                                              : slurm_parse_gpus(name, value, number, &model, err);
    if (model != NULL) {
        free(job->gpu_model);
        job->gpu_model = model;
    }
    return r;
}

SETTER(memory)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *name = option_name(option);
    return slurm_parse_memory(name, value,
        strcmp(option->name, "mem") == 0           ? &job->memory
        : strcmp(option->name, "mem-per-cpu") == 0 ? &job->memory_per_cpu
                                                   : &job->memory_per_gpu,
        err);
}

SETTER(time)
{
    (void)option;
    return slurm_parse_time("--time", value, &((struct slurm_job *)target)->time_s, err);
}

/* Higher runs first here, and later there. */
SETTER(nice)
{
    struct slurm_job *job = target;
    (void)option;
    job->nice = 100;
    int r = value == NULL ? 0 : parse_integer(value, "--nice", INT32_MIN, INT32_MAX, &job->nice, err);
    int64_t priority = job->nice > ASK_PRIORITY_MAX    ? -ASK_PRIORITY_MAX
                       : job->nice < -ASK_PRIORITY_MAX ? ASK_PRIORITY_MAX
                                                       : -job->nice;
    if (r == 0)
        (void)json_object_set_new(ask_of(job), "priority", json_integer(priority));
    return r;
}

/* --- times and dependencies --- */

SETTER(moment)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *name = option_name(option);
    _cleanup_free_ char *moment = slurm_moment(value);
    return ask_set(ask_of(job), NULL, option->name, name, moment, err);
}

/* "12", "12_3", "12_*" and "12+10" as "12", "12.3", "12" and "12:start+10m". */
static int add_after_job(char *id, const char *kind, const char *separator, struct buffer *out)
{
    char *plus = strcmp(kind, "start") == 0 ? strchr(id, '+') : NULL;
    const char *minutes = plus != NULL ? plus + 1 : NULL;
    if (plus != NULL)
        *plus = '\0';
    if (id[0] == '\0' || id[strspn(id, "0123456789_*")] != '\0')
        return -EINVAL;
    if (minutes != NULL && (minutes[0] == '\0' || minutes[strspn(minutes, "0123456789")] != '\0'))
        return -EINVAL;
    if (strstr(id, "_*") != NULL)
        *strchr(id, '_') = '\0';
    if (strchr(id, '_') != NULL)
        *strchr(id, '_') = '.';
    bool is_delayed = minutes != NULL && strspn(minutes, "0") != strlen(minutes);
    buffer_printf(out, "%s%s:%s%s%s%s", out->length > 0 ? separator : "", id, kind, is_delayed ? "+" : "",
        is_delayed ? minutes : "", is_delayed ? "m" : "");
    return 0;
}

static int add_after(char *words, const char *separator, struct buffer *out)
{
    static const struct {
        const char *slurm, *kind;
    } kinds[] = { { "after", "start" }, { "afterok", "ok" }, { "afterany", "any" }, { "afternotok", "fail" },
        { "aftercorr", "corr" } };
    static const char *const unsupported[] = { "expand", "afterburstbuffer" };
    char *rest = words;
    const char *name = strsep(&rest, ":"), *kind = NULL;
    if (strcmp(name, AFTER_SINGLETON) == 0 && rest == NULL) {
        buffer_printf(out, "%s%s", out->length > 0 ? separator : "", name);
        return 0;
    }
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
        if (strcmp(name, unsupported[i]) == 0)
            return -ENOTSUP;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].slurm) == 0)
            kind = kinds[i].kind;
    if (kind == NULL || rest == NULL)
        return -EINVAL;
    int r = 0;
    for (char *id = NULL; r == 0 && (id = strsep(&rest, ":")) != NULL;)
        r = add_after_job(id, kind, separator, out);
    return r;
}

/* Separated by commas, of which all count, or by question marks: then each job of them suffices. */
int slurm_parse_dependency(const char *value, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    const char *separator = strchr(value, '?') != NULL ? "?" : ",";
    char *rest = copy;
    bool is_mixed = separator[0] == '?' && strchr(value, ',') != NULL;
    for (char *one = NULL; value[0] != '\0' && (one = strsep(&rest, separator)) != NULL;) {
        int r = is_mixed ? -EINVAL : add_after(one, separator, &out);
        if (r == -ENOTSUP)
            return error_set(err, r,
                "--dependency=%.80s is not supported: known are after, afterok, afterany, afternotok, "
                "aftercorr and "
                "singleton",
                value);
        if (r < 0)
            return error_set(err, -EINVAL, "Job dependency problem");
    }
    *ret = out.length > 0 ? buffer_take(&out) : NULL;
    return 0;
}

SETTER(dependency)
{
    struct slurm_job *job = target;
    char *after = NULL;
    (void)option;
    int r = slurm_parse_dependency(value, &after, err);
    strings_clear(&job->submit.after);
    if (after != NULL)
        strings_take(&job->submit.after, after);
    return r < 0 ? error_wrap(err, "Batch job submission failed") : 0;
}

/* "USR1@60", "B:10@30": the recipients are kept in the note. */
SETTER(signal)
{
    struct slurm_job *job = target;
    const char *rest = value;
    (void)option;
    while (strncmp(rest, "B:", 2) == 0 || strncmp(rest, "R:", 2) == 0 || strncmp(rest, "BR:", 3) == 0)
        rest = strchr(rest, ':') + 1;
    int r = ask_set(ask_of(job), NULL, "warn_signal", "--signal", rest, err);
    if (r == 0)
        slurm_job_note_set(job, SLURM_NOTE_SIGNAL, value);
    return r;
}

/* --- texts --- */

SETTER(text)
{
    struct slurm_job *job = target;
    (void)err;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "output", &job->output }, { "error", &job->error }, { "input", &job->input },
        { "chdir", &job->submit.directory }, { "wrap", &job->wrap }, { "job-name", &job->name },
        { "mail-user", &job->mail_user }, { "nodelist", &job->nodelist }, { "exclude", &job->exclude },
        { "mpi", &job->mpi }, { "gpu-bind", &job->gpu_bind } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(option->name, texts[i].name) == 0)
            *texts[i].text = keep(job, value);
    return 0;
}

SETTER(open_mode)
{
    struct slurm_job *job = target;
    (void)option;
    if (strcmp(value, "append") != 0 && strcmp(value, "truncate") != 0 && strcmp(value, "a") != 0 &&
        strcmp(value, "t") != 0)
        return error_set(err, -EINVAL, "Invalid --open-mode specification: %.60s", value);
    job->open_mode = value[0] == 'a' ? "append" : "truncate";
    return 0;
}

SETTER(array)
{
    struct slurm_job *job = target;
    (void)option;
    int r = ask_set(ask_of(job), NULL, "array", "--array", value, err);
    if (r < 0)
        return error_set(err, r, "Batch job submission failed: Invalid job array specification");
    slurm_job_note_set(job, SLURM_NOTE_ARRAY, value);
    return 0;
}

/* ALL, NONE, NIL, or names and NAME=value; what is not in the environment is left out. */
SETTER(export)
{
    struct slurm_job *job = target;
    _cleanup_buffer_ struct buffer names = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    bool is_all = false;
    (void)option, (void)err;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(word, '=');
        if (strcasecmp(word, "ALL") == 0)
            is_all = true;
        else if (equals != NULL && equals != word) {
            *equals = '\0';
            strings_set_env(&job->submit.env, word, equals + 1);
        } else if (getenv(word) != NULL)
            buffer_printf(&names, "%s%s", names.length > 0 ? "," : "", word);
    }
    bool is_none = names.length == 0 || strcasecmp(value, "NONE") == 0 || strcasecmp(value, "NIL") == 0;
    job->submit.export = is_all ? "all" : is_none ? "minimal" : keep(job, buffer_text(&names));
    return 0;
}

SETTER(partition)
{
    struct slurm_job *job = target;
    (void)option, (void)err;
    (void)json_object_set_new(ask_of(job), "partition", json_string(value));
    return 0;
}

/* Slurm's names and mgpu's; others have no equivalent. */
SETTER(mail_type)
{
    static const struct {
        const char *slurm, *event;
    } types[] = { { "BEGIN", "start" }, { "END", "end" }, { "FAIL", "fail" }, { "REQUEUE", "requeue" },
        { "ALL", "start,end,fail,requeue" }, { "NONE", NULL }, { "INVALID_DEPEND", NULL },
        { "STAGE_OUT", NULL }, { "TIME_LIMIT", NULL }, { "TIME_LIMIT_90", NULL }, { "TIME_LIMIT_80", NULL },
        { "TIME_LIMIT_50", NULL }, { "ARRAY_TASKS", NULL } };
    struct slurm_job *job = target;
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    (void)option;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            if (strcasecmp(word, types[i].slurm) != 0)
                continue;
            is_known = true;
            if (types[i].event != NULL)
                buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", types[i].event);
        }
        if (!is_known)
            return error_set(err, -EINVAL, "Invalid --mail-type specification: %.60s", word);
    }
    free(job->mail_on);
    job->mail_on = out.length > 0 ? buffer_take(&out) : NULL;
    return 0;
}

/* The container of pyxis: there '#' ends the name of a registry. */
SETTER(image)
{
    struct slurm_job *job = target;
    (void)option;
    strings_add(&job->kept, value);
    char *image = job->kept.items[job->kept.count - 1];
    for (char *p = image; *p != '\0'; p++)
        if (*p == '#')
            *p = '/';
    return image_wish(&job->submit.image, image, err);
}

SETTER(mounts)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    int r = 0;
    (void)option;
    for (char *one = NULL; r == 0 && (one = strsep(&rest, ",")) != NULL;)
        r = image_wish_mount(&job->submit.image, one, err);
    return r;
}

/* --- flags --- */

SETTER(flag)
{
    struct slurm_job *job = target;
    (void)value, (void)err;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "hold", &job->submit.is_held }, { "parsable", &job->is_parsable },
        { "wait", &job->is_waited }, { "test-only", &job->is_tested }, { "quiet", &job->is_quiet },
        { "label", &job->is_labelled }, { "pty", &job->is_on_terminal }, { "overlap", &job->is_overlapping },
        { "exact", &job->is_exact }, { "exclusive", &job->is_exclusive },
        { "no-shell", &job->is_without_shell }, { "disable-status", &job->is_status_off },
        { "multi-prog", &job->has_multiple_programs } };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(option->name, flags[i].name) == 0)
            *flags[i].flag = true;
    return 0;
}

SETTER(immediate)
{
    struct slurm_job *job = target;
    (void)option;
    job->immediate_s = 1;
    int r = value == NULL ? 0 : parse_integer(value, "--immediate", 0, INT32_MAX, &job->immediate_s, err);
    if (r == 0 && job->immediate_s == 0)
        job->immediate_s = 1;
    return r;
}

SETTER(requeue)
{
    bool is_on = strcmp(option->name, "requeue") == 0;
    (void)value, (void)err;
    (void)json_object_set_new(ask_of(target), "requeue_on_node_lost", json_boolean(is_on));
    return 0;
}

SETTER(kill)
{
    (void)option, (void)err;
    ((struct slurm_job *)target)->is_killed_on_exit = value == NULL || strcmp(value, "0") != 0;
    return 0;
}

#define S   SLURM_SBATCH
#define R   SLURM_SRUN
#define A   SLURM_SALLOC
#define ANY SLURM_SUBMITS
#define DONE(name, letter, argument, programs, set, variable, help)                                          \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_DONE, set, variable, help, NULL                              \
    }
#define RECORDED(name, letter, argument, programs, variable, help)                                           \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_RECORDED, NULL, variable, help, name                         \
    }
#define ACCEPTED(name, letter, argument, programs, variable, help)                                           \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_ACCEPTED, NULL, variable, help, NULL                         \
    }
#define REFUSED(name, letter, argument, programs, why)                                                       \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_REFUSED, NULL, NULL, why, NULL                               \
    }

const struct slurm_option slurm_submit_options[] = {
    RECORDED("account", 'A', "name", ANY, "ACCOUNT", "account to charge"),
    DONE("array", 'a', "indexes", S, set_array, "ARRAY_INX", "array of jobs: 0-9, 1-10:2%3"),
    DONE(
        "begin", 'b', "time", ANY, set_moment, "BEGIN", "earliest start: now+1hour, 16:00, 2026-12-24T12:00"),
    DONE("chdir", 'D', "directory", ANY, set_text, "CHDIR", "directory to run in"),
    DONE("container-image", 0, "image", S | R, set_image, NULL, "container to run in (pyxis)"),
    DONE("container-mounts", 0, "list", S | R, set_mounts, NULL, "SRC:DST[:ro] in the container (pyxis)"),
    DONE("cpus-per-gpu", 0, "n", ANY, set_number, "CPUS_PER_GPU", "CPUs for each GPU"),
    DONE("cpus-per-task", 'c', "n", ANY, set_number, "CPUS_PER_TASK", "CPUs for each task"),
    DONE("deadline", 0, "time", ANY, set_moment, NULL, "give up if not started by then"),
    DONE("dependency", 'd', "list", ANY, set_dependency, "DEPENDENCY",
        "start after other jobs: afterok:12:13"),
    DONE("error", 'e', "file", S | R, set_text, "ERROR", "file for standard error"),
    DONE(
        "export", 0, "list", ANY, set_export, "EXPORT", "variables of the job: ALL, NONE, names, NAME=value"),
    DONE("exact", 0, NULL, R, set_flag, "EXACT",
        "only the CPUs that the step requests, so that others run beside it"),
    DONE("gpus", 'G', "[type:]n", ANY, set_gpus, "GPUS", "GPUs of the whole job"),
    DONE("gpus-per-node", 0, "[type:]n", ANY, set_gpus, "GPUS_PER_NODE", "GPUs on each node"),
    DONE("gpus-per-task", 0, "[type:]n", ANY, set_gpus, "GPUS_PER_TASK", "GPUs for each task"),
    DONE("gres", 0, "gpu[:type]:n", ANY, set_gpus, "GRES", "GPUs on each node"),
    DONE("hold", 'H', NULL, ANY, set_flag, "HOLD", "do not start before scontrol release"),
    DONE("immediate", 'I', "[seconds]", R | A, set_immediate, "IMMEDIATE",
        "give up if the resources are not there within this time (1)"),
    DONE("input", 'i', "file", S | R, set_text, "INPUT", "file for standard input"),
    DONE("job-name", 'J', "name", ANY, set_text, "JOB_NAME", "name of the job"),
    DONE("kill-on-bad-exit", 'K', "[0|1]", R, set_kill, "KILL_BAD_EXIT", "end all tasks when one fails"),
    DONE("label", 'l', NULL, R, set_flag, "LABELIO", "begin each line of output with the number of its task"),
    DONE("mail-type", 0, "list", ANY, set_mail_type, NULL, "send mail: BEGIN, END, FAIL, REQUEUE, ALL, NONE"),
    DONE("mail-user", 0, "user", ANY, set_text, NULL, "who gets the mail (you)"),
    DONE("mem", 0, "size", ANY, set_memory, "MEM_PER_NODE", "host memory of each node; plain = MiB"),
    DONE("mem-per-cpu", 0, "size", ANY, set_memory, "MEM_PER_CPU", "host memory for each CPU"),
    DONE("mem-per-gpu", 0, "size", ANY, set_memory, "MEM_PER_GPU", "host memory for each GPU"),
    DONE("nice", 0, "[n]", ANY, set_nice, NULL, "lower the priority by this much (100)"),
    DONE("no-requeue", 0, NULL, S, set_requeue, "NO_REQUEUE", "never put it back into the queue"),
    DONE("no-shell", 0, NULL, A, set_flag, NULL, "allocate, and run nothing"),
    DONE("nodes", 'N', "n[-m]", ANY, set_nodes, NULL, "number of nodes"),
    DONE("ntasks", 'n', "n", ANY, set_number, "NTASKS", "number of tasks"),
    DONE("ntasks-per-gpu", 0, "n", ANY, set_number, "NTASKS_PER_GPU", "tasks for each GPU"),
    DONE("ntasks-per-node", 0, "n", ANY, set_number, "NTASKS_PER_NODE", "tasks on each node"),
    DONE("open-mode", 0, "append|truncate", S | R, set_open_mode, "OPEN_MODE",
        "append to an existing output file, or truncate it"),
    DONE("output", 'o', "file", S | R, set_text, "OUTPUT", "file for standard output (slurm-%j.out)"),
    DONE("overlap", 0, NULL, R, set_flag, "OVERLAP", "share the nodes of the step with all other steps"),
    DONE("parsable", 0, NULL, S, set_flag, NULL, "print the number of the job alone"),
    DONE("partition", 'p', "name", ANY, set_partition, "PARTITION", "partition"),
    DONE("quiet", 'Q', NULL, ANY, set_flag, NULL, "print errors only"),
    DONE("requeue", 0, NULL, S, set_requeue, "REQUEUE", "put it back into the queue when its node is lost"),
    DONE("signal", 0, "[B:]signal[@s]", ANY, set_signal, "SIGNAL", "signal before the time limit"),
    DONE("test-only", 0, NULL, S | R, set_flag, NULL, "say when it would start, and submit nothing"),
    DONE("time", 't', "time", ANY, set_time, "TIMELIMIT", "time limit: 30, 2:00:00, 1-12"),
    DONE("wait", 'W', NULL, S, set_flag, "WAIT", "stay until the job has ended, and exit with its status"),
    DONE("wrap", 0, "command", S, set_text, NULL, "run this command line instead of a script"),

    RECORDED("clusters", 'M', "list", ANY, "CLUSTERS", "clusters"),
    RECORDED("comment", 0, "text", ANY, "COMMENT", "any text"),
    RECORDED("licenses", 'L', "list", ANY, NULL, "licenses, which are not counted"),
    RECORDED("qos", 'q', "name", ANY, "QOS", "quality of service"),
    RECORDED("wckey", 0, "key", ANY, "WCKEY", "key of accounting"),

    ACCEPTED("acctg-freq", 0, "list", ANY, "ACCTG_FREQ", "how often usage is sampled"),
    ACCEPTED("cluster-constraint", 0, "list", S, NULL, "features of a cluster"),
    ACCEPTED("contiguous", 0, NULL, ANY, NULL, "nodes side by side"),
    ACCEPTED("core-spec", 'S', "n", ANY, "CORE_SPEC", "cores for the system"),
    ACCEPTED("cores-per-socket", 0, "n", ANY, NULL, "cores of a socket"),
    ACCEPTED("cpu-bind", 0, "kind", R, "CPU_BIND", "which CPUs a task is bound to"),
    ACCEPTED("cpu-freq", 0, "range", ANY, "CPU_FREQ_REQ", "frequency of the CPUs"),
    ACCEPTED("delay-boot", 0, "minutes", ANY, "DELAY_BOOT", "when nodes are booted"),
    DONE("disable-status", 'X', NULL, R, set_flag, "DISABLE_STATUS", "end the step at the first Ctrl-C"),
    ACCEPTED("distribution", 'm', "kind", ANY, "DISTRIBUTION", "which task runs where"),
    ACCEPTED("epilog", 0, "program", R, "EPILOG", "program after the step"),
    ACCEPTED("export-file", 0, "file", S, NULL, "variables of a file"),
    ACCEPTED("extra-node-info", 'B', "s[:c[:t]]", ANY, NULL, "sockets, cores and threads"),
    ACCEPTED("get-user-env", 0, "[time]", S, "GET_USER_ENV", "environment of a login"),
    DONE("gpu-bind", 0, "kind", ANY, set_text, "GPU_BIND",
        "GPUs that a task sees: none, single:N, per_task:N, map_gpu:LIST, mask_gpu:LIST, closest"),
    ACCEPTED("gpu-freq", 0, "range", ANY, "GPU_FREQ", "frequency of the GPUs"),
    ACCEPTED("gpus-per-socket", 0, "n", ANY, "GPUS_PER_SOCKET", "GPUs of a socket"),
    ACCEPTED("gres-flags", 0, "kind", ANY, "GRES_FLAGS", "how GPUs and CPUs belong together"),
    ACCEPTED("hint", 0, "kind", ANY, "HINT", "how CPUs are used"),
    ACCEPTED("ignore-pbs", 0, NULL, S, "IGNORE_PBS", "no #PBS lines"),
    ACCEPTED("interactive", 0, NULL, R, NULL, "the shell of salloc"),
    ACCEPTED("kill-command", 0, "[signal]", A, NULL, "what ends the shell"),
    ACCEPTED("mem-bind", 0, "kind", ANY, "MEM_BIND", "which memory a task is bound to"),
    ACCEPTED("mincpus", 0, "n", ANY, NULL, "CPUs that a node has at least"),
    DONE("mpi", 0, "kind", R, set_text, "MPI_TYPE", "kind of MPI: none, pmi2 (MPICH), pmix (Open MPI), list"),
    ACCEPTED("no-bell", 0, NULL, A, NULL, "no bell"),
    ACCEPTED("bell", 0, NULL, A, NULL, "a bell"),
    ACCEPTED("no-kill", 'k', "[off]", ANY, "NO_KILL", "go on when a node fails"),
    ACCEPTED("ntasks-per-core", 0, "n", ANY, NULL, "tasks of a core"),
    ACCEPTED("ntasks-per-socket", 0, "n", ANY, NULL, "tasks of a socket"),
    ACCEPTED("overcommit", 'O', NULL, ANY, "OVERCOMMIT", "several tasks for each CPU"),
    ACCEPTED("oversubscribe", 's', NULL, ANY, "OVERSUBSCRIBE", "nodes with other jobs"),
    ACCEPTED("power", 0, "flags", ANY, "POWER", "power"),
    ACCEPTED("priority", 0, "value", ANY, NULL, "priority, which nice sets"),
    ACCEPTED("profile", 0, "kind", ANY, "PROFILE", "what is sampled"),
    ACCEPTED("prolog", 0, "program", R, "PROLOG", "program before the step"),
    ACCEPTED("propagate", 0, "[limits]", S | R, "PROPAGATE", "limits of this shell"),
    ACCEPTED("reboot", 0, NULL, ANY, "REBOOT", "boot the nodes first"),
    ACCEPTED("slurmd-debug", 0, "level", R, "SLURMD_DEBUG", "log level of slurmd"),
    ACCEPTED("sockets-per-node", 0, "n", ANY, NULL, "sockets of a node"),
    ACCEPTED("spread-job", 0, NULL, ANY, "SPREAD_JOB", "over many nodes"),
    ACCEPTED("switches", 0, "n[@time]", ANY, "REQ_SWITCH", "switches between nodes"),
    ACCEPTED("task-epilog", 0, "program", R, "TASK_EPILOG", "program after each task"),
    ACCEPTED("task-prolog", 0, "program", R, "TASK_PROLOG", "program before each task"),
    ACCEPTED("thread-spec", 0, "n", ANY, "THREAD_SPEC", "threads for the system"),
    ACCEPTED("threads", 'T', "n", R, "THREADS", "threads of srun"),
    ACCEPTED("threads-per-core", 0, "n", ANY, "THREADS_PER_CORE", "threads of a core"),
    ACCEPTED(
        "time-min", 0, "time", ANY, NULL, "shortest time limit that will do: the job gets all of --time"),
    ACCEPTED("tmp", 0, "size", ANY, NULL, "disk for temporary files"),
    ACCEPTED("unbuffered", 'u', NULL, R, "UNBUFFEREDIO", "output at once, as it always comes"),
    ACCEPTED("use-min-nodes", 0, NULL, ANY, "USE_MIN_NODES", "as few nodes as possible"),
    ACCEPTED("verbose", 'v', NULL, ANY, "DEBUG", "increase verbosity"),
    ACCEPTED("wait-all-nodes", 0, "0|1", S | A, "WAIT_ALL_NODES", "start when all nodes are ready"),
    DONE("wait", 'W', "seconds", R, set_number, "WAIT",
        "end the other tasks this long after the first has ended"),
    ACCEPTED("x11", 0, "[kind]", R | A, "X11", "X11 through the job"),

    REFUSED("batch", 0, "list", S, "nodes have no features"),
    REFUSED("bb", 0, "spec", ANY, "there is no burst buffer"),
    REFUSED("bbf", 0, "file", ANY, "there is no burst buffer"),
    REFUSED("bcast", 0, "[file]", R, "programs are run where they are"),
    REFUSED("constraint", 'C', "list", ANY, "nodes have no features; a GPU model is --gres=gpu:MODEL:N"),
    REFUSED("container", 0, "path", ANY, "containers are --container-image=IMAGE"),
    REFUSED("gid", 0, "group", ANY, "a job has the groups of its user"),
    REFUSED("het-group", 0, "list", R, "there are no heterogeneous jobs"),
    DONE("multi-prog", 0, NULL, R, set_flag, NULL, "the command is a file with a program for each task"),
    REFUSED("network", 0, "kind", ANY, "there is no such network"),
    REFUSED("nodefile", 'F', "file", S | A, "nodes are chosen by mgpu"),
    DONE("nodelist", 'w', "nodes", ANY, set_text, NULL,
        "nodes of the job, all of them, or those of it that a step runs on"),
    DONE("exclude", 'x', "nodes", ANY, set_text, NULL, "nodes that the job, or the step, does not run on"),
    DONE("exclusive", 0, "[user|mcs]", ANY, set_flag, "EXCLUSIVE",
        "no other job on the nodes of the job; of a step: --exact"),
    DONE("relative", 'r', "n", R, set_number, NULL, "first node of the job that the step runs on"),
    DONE("pty", 0, NULL, R, set_flag, NULL, "run on a terminal"),
    DONE("jobid", 0, "id", R, set_number, "JOBID", "job that the step belongs to"),
    REFUSED("reservation", 0, "names", ANY,
        "reservations of mgpu are for users, and have no names (mgpu reserve)"),
    REFUSED("uid", 0, "user", ANY, "a job runs as the user who submits it"),
    { 0 },
};
