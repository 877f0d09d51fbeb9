/* SPDX-License-Identifier: MIT */
/* Sets the options of sbatch, srun and salloc. Their table is in slurm_options.c. */
#include "cli/submit/slurm_set.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/signals.h"
#include "base/utc.h"
#include "cli/options/ask.h"
#include "cli/submit/image.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_moment.h"
#include "cli/submit/slurm_values.h"
#include "job/ask.h"
#include "job/slurm.h"

#define SOURCE_MAX (1U << 20) // maximum size in bytes of an option's file

#define SETTER(name)                                                                                         \
    int slurm_set_##name(                                                                                    \
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
        { "ntasks-per-node", offsetof(struct slurm_job, tasks_per_node), 1, 65536 },
        { "tasks-per-node", offsetof(struct slurm_job, tasks_per_node), 1, 65536 },
        { "ntasks-per-gpu", offsetof(struct slurm_job, tasks_per_gpu), 1, 65536 },
        { "cpus-per-task", offsetof(struct slurm_job, cpus_per_task), 1, ASK_CPUS_MAX },
        { "cpus-per-gpu", offsetof(struct slurm_job, cpus_per_gpu), 1, ASK_CPUS_MAX },
        { "relative", offsetof(struct slurm_job, relative), 0, ASK_NODES_MAX },
        { "jobid", offsetof(struct slurm_job, job_id), 1, INT64_MAX },
        { "wait", offsetof(struct slurm_job, wait_s), 0, INT32_MAX },
        { "mincpus", offsetof(struct slurm_job, least_cpus), 0, ASK_CPUS_MAX },
        { "sockets-per-node", offsetof(struct slurm_job, sockets), 1, ASK_CPUS_MAX },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(option->name, numbers[i].name) == 0) {
            int64_t *number = (int64_t *)(void *)((char *)target + numbers[i].offset);
            int r = parse_integer(value, option->name, numbers[i].least, numbers[i].most, number, NULL);
            bool is_too_much = strcmp(option->name, "ntasks") == 0 && r == -ERANGE && strlen(value) > 4;
            if (is_too_much && value[0] != '-') { // which slurmctld refuses
                ((struct slurm_job *)target)->refusal = "More processors requested than permitted";
                return 0;
            }
            return r < 0 ? slurm_bad_number(option, value, err) : 0;
        }
    return -EINVAL;
}

/* "2k" and "1m", which Slurm reads as node counts: more than can exist. */
static bool is_huge_count(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && (strcasecmp(text + digits, "k") == 0 || strcasecmp(text + digits, "m") == 0 ||
                             (text[digits] == '\0' && strtoull(text, NULL, 10) > ASK_NODES_MAX));
}

/* "2", or "2-4": as many as are available, at least the first number. */
SETTER(nodes)
{
    static const char too_many[] = "More processors requested than permitted";
    struct slurm_job *job = target;
    const char *dash = strchr(value, '-');
    _cleanup_free_ char *least = xstrndup(value, dash != NULL ? (size_t)(dash - value) : strlen(value));
    int64_t most = 0;
    if (job->refusal == too_many)
        job->refusal = NULL; // of a value that this one replaces
    if (is_huge_count(least)) {
        job->refusal = too_many;
        return 0;
    }
    bool is_zero = least[0] != '\0' && strspn(least, "0") == strlen(least);
    int r = is_zero ? -ERANGE : parse_integer(least, "--nodes", 1, ASK_NODES_MAX, &job->nodes, NULL);
    if (r == 0 && dash != NULL)
        r = parse_integer(dash + 1, "--nodes", 0, ASK_NODES_MAX, &most, NULL);
    if (r == 0 && dash != NULL && most < job->nodes)
        return error_set(err, -EDOM,
            "Maximum node count %" PRId64 " is less than minimum node count %" PRId64, most, job->nodes);
    if (r < 0 && dash != NULL && job->nodes > 0)
        value = dash + 1;
    if (is_zero) { // slurmctld refuses it
        job->refusal = "Node count specification invalid";
        return 0;
    }
    return r < 0 ? error_set(err, -EDOM, "\"%.60s\" is not a valid node count", value) : 0;
}

SETTER(gpus)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *name = option_name(option);
    bool is_all = strcmp(option->name, "gpus") == 0, is_task = strcmp(option->name, "gpus-per-task") == 0;
    bool is_socket = strcmp(option->name, "gpus-per-socket") == 0;
    int64_t *number = is_all      ? &job->gpus
                      : is_task   ? &job->gpus_per_task
                      : is_socket ? &job->gpus_per_socket
                                  : &job->gpus_per_node;
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
    int r = slurm_parse_memory(option->name, value,
        strcmp(option->name, "mem") == 0           ? &job->memory
        : strcmp(option->name, "mem-per-cpu") == 0 ? &job->memory_per_cpu
                                                   : &job->memory_per_gpu,
        NULL);
    return r < 0 ? slurm_bad_value(option, err) : 0;
}

SETTER(time)
{
    int64_t seconds = 0;
    if (slurm_parse_time("--time", value, &seconds, NULL) < 0)
        return slurm_bad_value(option, err);
    ((struct slurm_job *)target)->time_s = seconds;
    return 0;
}

SETTER(least_time)
{
    return slurm_parse_time("--time-min", value, &((struct slurm_job *)target)->least_s, NULL) < 0
               ? slurm_bad_value(option, err)
               : 0;
}

/* A higher number means earlier here, and later in Slurm. */
SETTER(nice)
{
    struct slurm_job *job = target;
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
    char utc[32];
    int64_t ms = 0;
    struct error why = { 0 };
    int r = slurm_parse_moment(name, value, SLURM_AHEAD, clock_wall_ms(), &when_local, &ms, &why);
    utc_format(ms, utc, sizeof(utc));
    if (r < 0) {
        (void)slurm_bad_value(option, err);
        return error_mark(err, SLURM_LED, error_hint(err, "%s", why.message));
    }
    bool is_deadline = strcmp(option->name, "deadline") == 0;
    *(is_deadline ? &job->deadline_ms : &job->begin_ms) = ms;
    return is_deadline ? 0 : ask_set(ask_of(job), NULL, option->name, name, utc, err);
}

SETTER(dependency)
{
    struct slurm_job *job = target;
    char *after = NULL;
    int r = slurm_parse_dependency(value, &after, err);
    strings_clear(&job->submit.after);
    if (after != NULL)
        strings_take(&job->submit.after, after);
    if (r != -EINVAL)
        return r;
    job->refusal = "Job dependency problem";
    return 0;
}

/* "USR1@60", "B:10@30": the recipients are kept in the note. */
SETTER(signal)
{
    struct slurm_job *job = target;
    const char *rest = value;
    while (strncmp(rest, "B:", 2) == 0 || strncmp(rest, "R:", 2) == 0 || strncmp(rest, "BR:", 3) == 0)
        rest = strchr(rest, ':') + 1;
    if (ask_set(ask_of(job), NULL, "warn_signal", "--signal", rest, NULL) < 0)
        return slurm_bad_value(option, err);
    slurm_job_note_set(job, SLURM_NOTE_SIGNAL, value);
    return 0;
}

/* --- texts --- */

SETTER(text)
{
    struct slurm_job *job = target;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "output", &job->output }, { "error", &job->error }, { "input", &job->input },
        { "chdir", &job->submit.directory }, { "wrap", &job->wrap }, { "job-name", &job->name },
        { "mail-user", &job->mail_user }, { "nodelist", &job->nodelist }, { "exclude", &job->exclude },
        { "mpi", &job->mpi }, { "gpu-bind", &job->gpu_bind }, { "distribution", &job->distribution },
        { "prolog", &job->prolog }, { "epilog", &job->epilog }, { "bbf", &job->insert } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(option->name, texts[i].name) == 0)
            *texts[i].text = value[0] != '\0' || strcmp(option->name, "wrap") == 0 ? keep(job, value) : NULL;
    return 0;
}

SETTER(open_mode)
{
    struct slurm_job *job = target;
    if (strcmp(value, "append") != 0 && strcmp(value, "truncate") != 0 && strcmp(value, "a") != 0 &&
        strcmp(value, "t") != 0)
        return slurm_bad_value(option, err);
    job->open_mode = value[0] == 'a' ? "append" : "truncate";
    return 0;
}

SETTER(array)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *indexes = slurm_array_indexes(value);
    if (indexes[0] == '\0') // a job that is not an array
        return 0;
    int r = ask_set(ask_of(job), NULL, "array", "--array", indexes, err);
    if (r < 0)
        return error_set(err, r, "Batch job submission failed: Invalid job array specification");
    slurm_job_note_set(job, SLURM_NOTE_ARRAY, value);
    return 0;
}

/* ALL, NONE, NIL, or names and NAME=value; names that are not in the environment are omitted. */
SETTER(export)
{
    struct slurm_job *job = target;
    _cleanup_buffer_ struct buffer names = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    bool is_all = false;
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
    /* As after a login; without --export, the home directory is taken from the environment. */
    const struct passwd *user = strcasecmp(value, "NONE") == 0 ? getpwuid(geteuid()) : NULL;
    if (user != NULL)
        strings_set_env(&job->submit.env, "HOME", user->pw_dir);
    job->submit.export = is_all ? "all" : is_none ? "minimal" : keep(job, buffer_text(&names));
    return 0;
}

SETTER(partition)
{
    struct slurm_job *job = target;
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
            return slurm_bad_value(option, err);
    }
    free(job->mail_on);
    job->mail_on = out.length > 0 ? buffer_take(&out) : NULL;
    return 0;
}

/* The container of pyxis, in which '#' ends the name of a registry. */
SETTER(image)
{
    struct slurm_job *job = target;
    strings_add(&job->kept, value);
    char *image = job->kept.items[job->kept.count - 1];
    for (char *p = image; *p != '\0'; p++)
        if (*p == '#')
            *p = '/';
    return image_set_name(&job->submit.image, image, err);
}

SETTER(mounts)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    int r = 0;
    for (char *one = NULL; r == 0 && (one = strsep(&rest, ",")) != NULL;)
        r = image_add_mount(&job->submit.image, one, err);
    return r;
}

/* --- flags --- */

SETTER(flag)
{
    struct slurm_job *job = target;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "hold", &job->submit.is_held }, { "parsable", &job->is_parsable },
        { "wait", &job->is_waited }, { "test-only", &job->is_tested }, { "quiet", &job->is_quiet },
        { "verbose", &job->is_verbose }, { "label", &job->is_labelled }, { "pty", &job->is_on_terminal },
        { "overlap", &job->is_overlapping }, { "exact", &job->is_exact },
        { "no-shell", &job->is_without_shell }, { "disable-status", &job->is_status_off },
        { "quit-on-interrupt", &job->is_status_off }, { "preserve-env", &job->keeps_counts },
        { "multi-prog", &job->has_multiple_programs }, { "ignore-pbs", &job->ignores_foreign } };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(option->name, flags[i].name) == 0)
            *flags[i].flag = value == NULL || strcmp(value, "0") != 0; // of a variable
    return 0;
}

SETTER(exclusive)
{
    if (value != NULL && strcmp(value, "user") != 0 && strcmp(value, "mcs") != 0)
        return slurm_bad_value(option, err);
    ((struct slurm_job *)target)->is_exclusive = true;
    return 0;
}

/* Features of a node are its GPU models: "a100", or "a100|h100" for either. */
SETTER(constraint)
{
    struct slurm_job *job = target;
    const char *bad = strpbrk(value, "&*[](),:");
    if (bad != NULL || value[0] == '\0')
        job->refusal =
            "Invalid feature specification: features are GPU models, one or several, as in a100|h100";
    job->constraint = keep(job, value);
    return 0;
}

/* mgpu does not count licenses: a job that needs one would start without it. */
SETTER(licenses)
{
    struct slurm_job *job = target;
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    for (char *one = NULL; (one = strsep(&rest, ",;|")) != NULL;) {
        const char *colon = strrchr(one, ':');
        if (one[0] != '\0' && (colon == NULL || strcmp(colon, ":0") != 0))
            job->refusal = "Invalid license specification";
    }
    slurm_job_note_set(job, option->name, value);
    return 0;
}

SETTER(job_clusters)
{
    int r = slurm_set_clusters(target, option, value, err);
    if (r == 0)
        slurm_job_note_set(target, option->name, value);
    return r;
}

SETTER(invalid_dependency)
{
    bool is_yes = strcasecmp(value, "yes") == 0;
    if (!is_yes && strcasecmp(value, "no") != 0)
        return slurm_bad_value(option, err);
    (void)json_object_set_new(ask_of(target), "cancel_if_never", json_boolean(is_yes));
    return 0;
}

/* Reads the text of a file, or of a descriptor from 3 on. */
static int read_source(const char *what, const char *value, struct buffer *text, struct error *err)
{
    bool is_fd = value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
    _cleanup_free_ char *path = is_fd ? xasprintf("/proc/self/fd/%s", value) : xstrdup(value);
    int r = file_read(AT_FDCWD, path, SOURCE_MAX, text);
    return r < 0 ? error_set_errno(err, r, "%s: cannot read %.200s", what, value) : 0;
}

/* NAME=value, each ended by a NUL. */
SETTER(export_file)
{
    struct slurm_job *job = target;
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = read_source("--export-file", value, &text, err);
    if (r < 0) {
        struct error why = *err;
        (void)error_set(err, r, "Could not open user environment file %.200s", value);
        return error_hint(err, "%.200s", why.message);
    }
    const char *at = buffer_text(&text), *end = at + text.length;
    for (; at < end; at += strlen(at) + 1) {
        const char *equals = strchr(at, '=');
        _cleanup_free_ char *name = equals != NULL ? xstrndup(at, (size_t)(equals - at)) : NULL;
        if (name != NULL && name[0] != '\0')
            strings_set_env(&job->submit.env, name, equals + 1);
    }
    return 0;
}

/* Lists of nodes, one or several on a line. */
SETTER(nodefile)
{
    struct slurm_job *job = target;
    _cleanup_buffer_ struct buffer text = { 0 }, list = { 0 };
    int r = read_source("--nodefile", value, &text, err);
    if (r < 0) {
        (void)error_set(
            err, -EDOM, "slurm_allocate_resources error opening file %.200s, %s", value, strerror(-r));
        (void)error_hint(err, "Invalid --nodefile node file");
        return error_mark(err, SLURM_BOTH, -EDOM);
    }
    char *rest = r == 0 ? buffer_text(&text) : NULL;
    for (char *one = NULL; rest != NULL && (one = strsep(&rest, " \t\r\n,")) != NULL;)
        if (one[0] != '\0')
            buffer_printf(&list, "%s%s", list.length > 0 ? "," : "", one);
    if (r == 0)
        job->nodelist = keep(job, buffer_text(&list));
    return r;
}

/* SIGHUP for a shell, SIGTERM for other commands; salloc knows which is used. */
SETTER(kill_command)
{
    struct slurm_job *job = target;
    job->kill_signal = value == NULL ? SLURM_UNSET : signal_find(value);
    return job->kill_signal == 0 ? slurm_bad_value(option, err) : 0;
}

SETTER(immediate)
{
    struct slurm_job *job = target;
    job->immediate_s = 1;
    int r = value == NULL ? 0 : parse_integer(value, "--immediate", 0, INT32_MAX, &job->immediate_s, err);
    if (r == 0 && job->immediate_s == 0)
        job->immediate_s = 1;
    return r;
}

SETTER(requeue)
{
    bool is_on = strcmp(option->name, "requeue") == 0;
    (void)json_object_set_new(ask_of(target), "requeue_on_node_lost", json_boolean(is_on));
    (void)json_object_set_new(ask_of(target), "no_restart", json_boolean(!is_on));
    return 0;
}

SETTER(kill)
{
    ((struct slurm_job *)target)->is_killed_on_exit = value == NULL || strcmp(value, "0") != 0;
    return 0;
}

SETTER(message_timeout)
{
    int64_t seconds = 0;
    if (parse_integer(value, option->name, 1, INT32_MAX / 1000, &seconds, NULL) < 0)
        return slurm_bad_number(option, value, err);
    client_answer_within((int)seconds * 1000);
    return 0;
}
