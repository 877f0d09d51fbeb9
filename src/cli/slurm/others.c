/* SPDX-License-Identifier: MIT */
/*
 * Commands for which mgpu has little information: sacctmgr and sshare (there is one account), sprio, sdiag,
 * sstat; sattach follows the output, and sbcast copies a file on its node. Their output is correct but short.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/programs.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/steps.h"
#include "cli/term/field.h"

#define ACCOUNT      "default"
#define FIELDS_WIDTH (-10)

struct others {
    const char *format, *jobs;
    bool is_headless, is_parsable;
};

static int set_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct others *others = target;
    (void)err;
    if (strcmp(option->name, "format") == 0)
        others->format = value;
    else
        others->jobs = value;
    return 0;
}

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct others *others = target;
    (void)value, (void)err;
    others->is_headless |= strcmp(option->name, "noheader") == 0;
    others->is_parsable |= strncmp(option->name, "parsable", 8) == 0;
    return 0;
}

const struct slurm_option slurm_other_options[] = {
    SLURM_NO_EFFECT(SLURM_OTHER, "accounts", 'A', "list", NULL, "of these accounts"),
    SLURM_NO_EFFECT(SLURM_OTHER, "all", 'a', NULL, NULL, "of all users"),
    SLURM_NO_EFFECT(SLURM_OTHER, "associations", 's', NULL, NULL, "with associations"),
    SLURM_NO_EFFECT(SLURM_OTHER, "clusters", 'M', "list", NULL, "of these clusters"),
    SLURM_NO_EFFECT(SLURM_OTHER, "compress", 'C', "[kind]", NULL, "compress what is copied"),
    SLURM_NO_EFFECT(SLURM_OTHER, "force", 'f', NULL, NULL, "over a file that is there"),
    SLURM_ROW(SLURM_OTHER, "format", 'o', "fields", set_text, NULL, "fields that are printed"),
    SLURM_NO_EFFECT(SLURM_OTHER, "immediate", 'i', NULL, NULL, "do not ask"),
    SLURM_ROW(SLURM_OTHER, "jobs", 'j', "list", set_text, NULL, "these jobs"),
    SLURM_NO_EFFECT(SLURM_OTHER, "long", 'l', NULL, NULL, "more fields"),
    SLURM_ROW(SLURM_OTHER, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_OTHER, "parsable", 'p', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_ROW(SLURM_OTHER, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_NO_EFFECT(SLURM_OTHER, "preserve", 0, NULL, NULL, "times and modes of what is copied"),
    SLURM_NO_EFFECT(SLURM_OTHER, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_OTHER, "users", 'u', "list", NULL, "of these users"),
    SLURM_NO_EFFECT(SLURM_OTHER, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- fields of a line --- */

struct value {
    const char *name, *text;
};

static const char *find_value(const struct value *values, const char *name)
{
    for (; values->name != NULL; values++)
        if (strcasecmp(values->name, name) == 0)
            return values->text;
    return NULL;
}

/* One line of the fields in `format`, "account%20,user"; `values` NULL: the header. An unknown field is
 * empty. */
static void print_line(const struct others *others, const char *format, const struct value *values)
{
    _cleanup_free_ char *copy = xstrdup(format);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        char *percent = strchr(word, '%');
        if (percent != NULL)
            *percent++ = '\0';
        const char *text = values != NULL ? find_value(values, word) : word;
        long width = percent != NULL ? strtol(percent, NULL, 10) : -FIELDS_WIDTH;
        text = text != NULL ? text : "";
        if (others->is_parsable)
            (void)printf("%s%s", text, rest != NULL ? "|" : "");
        else
            (void)printf("%*.*s ", (int)width, (int)(width < 0 ? -width : width), text);
    }
    (void)putchar('\n');
}

/* --- the commands --- */

static int run_sacctmgr(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    const struct passwd *self = getpwuid(geteuid());
    const char *user = self != NULL ? self->pw_name : "", *format = NULL;
    (void)client;
    if (argc < 1 || (strcasecmp(argv[0], "show") != 0 && strcasecmp(argv[0], "list") != 0))
        return error_set(
            err, -ENOTSUP, "mgpu has one account, " ACCOUNT "; it can be listed and not changed");
    bool is_of_user =
        argc > 1 && (strncasecmp(argv[1], "user", 4) == 0 || strncasecmp(argv[1], "assoc", 5) == 0);
    for (int i = 2; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (strncasecmp(argv[i], "format=", 7) == 0)
            format = equals + 1;
        else if (is_of_user && (equals == NULL || strncasecmp(argv[i], "user", 4) == 0 ||
                                   strncasecmp(argv[i], "name", 4) == 0))
            user = equals != NULL ? equals + 1 : argv[i];
    }
    if (format == NULL)
        format = is_of_user ? "User,Account,Cluster,QOS" : "Account,Descr,Org";
    const struct value values[] = { { "user", user }, { "account", ACCOUNT }, { "defaultaccount", ACCOUNT },
        { "cluster", "mgpu" }, { "qos", "normal" }, { "name", is_of_user ? user : "normal" },
        { "descr", ACCOUNT }, { "org", ACCOUNT }, { "adminlevel", "None" }, { "share", "1" }, { 0 } };
    if (!others->is_headless)
        print_line(others, format, NULL);
    print_line(others, format, values);
    return 0;
}

static int run_sshare(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    static const char format[] = "Account%20,User,RawShares,RawUsage%11,FairShare";
    _cleanup_json_ json_t *users = NULL;
    size_t index = 0;
    json_t *user = NULL;
    (void)argc, (void)argv;
    int r = client_get(client, API_PATH "/users", &users, err);
    if (r < 0)
        return r;
    if (!others->is_headless)
        print_line(others, format, NULL);
    json_array_foreach(json_object_get(users, "users"), index, user)
    {
        _cleanup_free_ char *usage = xasprintf("%.0f", field_number(user, "gpu_seconds", 0));
        _cleanup_free_ char *factor = xasprintf("%.6f", field_number(user, "factor", 0));
        const struct value values[] = { { "account", ACCOUNT }, { "user", field_text(user, "user") },
            { "rawshares", "1" }, { "rawusage", usage }, { "fairshare", factor }, { 0 } };
        print_line(others, format, values);
    }
    return 0;
}

/* Jobs that wait, by their place in the queue, which is what decides here. */
static int run_sprio(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    static const char format[] = "JobID%15,Partition,User,Priority,Position";
    _cleanup_json_ json_t *jobs = NULL;
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    size_t index = 0;
    json_t *job = NULL;
    const struct slurm_query query = { .ids = &ids, .has_open_alone = true };
    (void)argc, (void)argv;
    int r = others->jobs != NULL ? slurm_ids_parse(others->jobs, &ids, err) : 0;
    if (r == 0)
        r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    if (!others->is_headless)
        print_line(others, format, NULL);
    json_array_foreach(jobs, index, job)
    {
        if (!field_is(job, "state", "queued"))
            continue;
        _cleanup_free_ char *id = slurm_text_job_id(job, 0), *priority = slurm_text_priority(job, 0);
        _cleanup_free_ char *position = xasprintf("%" PRId64, field_integer(job, "position", 0));
        _cleanup_free_ char *partition = slurm_text_partition(job, 0);
        const struct value values[] = { { "jobid", id }, { "partition", partition },
            { "user", field_text(job, "user") }, { "priority", priority }, { "position", position }, { 0 } };
        print_line(others, format, values);
    }
    return 0;
}

static int run_sdiag(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    struct slurm_query query = { .is_quick = true, .has_open_alone = true };
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    int64_t pending = 0, running = 0;
    (void)others, (void)argc, (void)argv;
    int r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    json_array_foreach(jobs, index, job)
    {
        pending += field_is(job, "state", "queued");
        running += field_is(job, "state", "running");
    }
    (void)printf("Jobs pending:   %" PRId64 "\nJobs running:   %" PRId64 "\n", pending, running);
    return 0;
}

/* A step that runs; only sstat of its own user sees it. */
static void print_stat(const struct others *others, const char *format, const json_t *step)
{
    static const struct {
        const char *name;
        slurm_text_fn *text;
    } fields[] = { { "jobid", slurm_text_job_id }, { "maxrss", slurm_text_max_rss },
        { "averss", slurm_text_ave_rss }, { "avecpu", slurm_text_ave_cpu },
        { "ntasks", slurm_text_step_tasks }, { "maxrsstask", slurm_text_max_rss_task },
        { "maxrssnode", slurm_text_max_rss_node }, { "nodelist", slurm_text_account_nodes } };
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    struct value values[FIELDS + 1] = { 0 };
    char *texts[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        texts[i] = fields[i].text(step, 0);
        values[i] = (struct value){ fields[i].name, texts[i] };
    }
    print_line(others, format, values);
    for (size_t i = 0; i < FIELDS; i++)
        free(texts[i]);
}

/* The steps of a running job. The batch script has the memory of the job, of which the steps are a part. */
static int stat_job(struct client *client, const struct others *others, const char *format,
    const struct slurm_id *id, struct error *err)
{
    _cleanup_json_ json_t *job = NULL, *steps = NULL;
    _cleanup_free_ char *path = slurm_id_path(id);
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    size_t index = 0;
    json_t *step = NULL;
    int r = client_get(client, request, &job, err);
    if (r == 0)
        r = slurm_steps_get(client, job, true, &steps, err);
    json_array_foreach(steps, index, step)
    {
        int64_t peak = field_integer(json_object_get(job, "usage"), "memory_peak_bytes", 0);
        if (field_is(step, SLURM_STEP_WORD, "batch") && peak > 0)
            (void)json_object_set_new(step, "max_rss_bytes", json_integer(peak));
        if (slurm_id_fits_step(id, step))
            print_stat(others, format, step);
    }
    return r;
}

static int run_sstat(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    const char *format = others->format != NULL ? others->format : "JobID,MaxRSS,AveRSS,AveCPU,NTasks";
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    int r = others->jobs == NULL && argc == 0
                ? error_set(err, -EINVAL, "You need to specify a job id with -j")
                : slurm_ids_parse(others->jobs != NULL ? others->jobs : argv[0], &ids, err);
    if (r == 0 && !others->is_headless)
        print_line(others, format, NULL);
    for (size_t i = 0; r == 0 && i < ids.count; i++)
        r = stat_job(client, others, format, &ids.items[i], err);
    return r;
}

static int replace_by(const struct strings *words, struct error *err)
{
    (void)execvp(words->items[0], words->items);
    return error_set_errno(err, -errno, "cannot start %.200s", words->items[0]);
}

static int run_sattach(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    (void)client, (void)others;
    int r = argc == 1 ? slurm_ids_parse(argv[0], &ids, err)
                      : error_set(err, -EINVAL, "One job step is required, such as 42.0");
    if (r < 0)
        return r;
    strings_take(&words, program_find("mgpu"));
    strings_add(&words, "logs");
    strings_add(&words, "-f");
    strings_take(&words, slurm_id_path(&ids.items[0]));
    return replace_by(&words, err);
}

static int run_sbcast(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    const char *nodes = getenv("SLURM_NNODES");
    (void)client, (void)others;
    if (argc != 2)
        return error_set(err, -EINVAL, "Need two file names, have %d names", argc);
    if (nodes == NULL)
        return error_set(err, -EINVAL, "Need a job id to run this command. Run from within a Slurm job.");
    if (strcmp(nodes, "1") != 0)
        return error_set(err, -ENOTSUP, "sbcast is supported for jobs on one node");
    strings_add(&words, "cp");
    strings_add(&words, "-p");
    strings_add(&words, "--");
    strings_add(&words, argv[0]);
    strings_add(&words, argv[1]);
    return replace_by(&words, err);
}

static const struct {
    const char *name;
    int (*run)(struct client *client, const struct others *others, int argc, char **argv, struct error *err);
} commands[] = {
    { "sacctmgr", run_sacctmgr },
    { "sshare", run_sshare },
    { "sprio", run_sprio },
    { "sdiag", run_sdiag },
    { "sstat", run_sstat },
    { "sattach", run_sattach },
    { "sbcast", run_sbcast },
};

int slurm_run_other(const struct slurm_program *program, int argc, char **argv)
{
    struct others others = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &others };
    struct error err = { 0 };
    struct client client;
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    client_init(&client, NULL, NULL);
    for (size_t i = 0; r == 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, program->name) == 0)
            r = commands[i].run(&client, &others, argc - first, argv + first, &err);
    client_clear(&client);
    return r < 0 ? slurm_fail(program, &err) : r;
}
