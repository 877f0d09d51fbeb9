/* SPDX-License-Identifier: MIT */
/* The options of run, submit, shell and adopt: each is stored as a member of the request, or kept for
 * later. */
#include "cli/submit/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/environment.h"
#include "cli/options/ask.h"
#include "cli/options/env_file.h"
#include "job/ask.h"
#include "job/spec.h"

static struct submit_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static json_t *ask_of(void *target)
{
    struct submit_options *options = options_of(target);
    if (options->ask == NULL)
        options->ask = json_object();
    return options->ask;
}

static int set(void *target, const char *key, const char *option, const char *value, struct error *err)
{
    return ask_set(ask_of(target), NULL, key, option, value, err);
}

/* An option that is a key of the request; a flag sets the key to true. */
static int set_key(void *target, const struct option_row *row, const char *value, struct error *err)
{
    char letter[] = { '-', row->letter, '\0' };
    _cleanup_free_ char *name = row->letter != 0 ? xstrdup(letter) : xasprintf("--%s", row->name);
    return set(target, row->key, name, row->argument != NULL ? value : "yes", err);
}

/* Slurm's -p is the partition. */
static int set_priority(void *target, const char *value, struct error *err)
{
    int r = set(target, "priority", "-p", value, err);
    return r < 0 && strchr("+-0123456789", value[0]) == NULL
               ? error_hint(err, "-P NAME (--partition) is the partition; -p N is the priority")
               : r;
}

/* Slurm's name for host memory. */
static int set_mem(void *target, const char *value, struct error *err)
{
    options_of(target)->is_mem_named = ((struct call *)target)->layer == NULL;
    return set(target, "gpu_mem", "--mem", value, err);
}

/* `none` disables the default of a shell or of the user. */
static int set_tty_idle(void *target, const char *value, struct error *err)
{
    if (strcmp(value, "none") != 0)
        return set(target, "tty_idle", "--tty-idle", value, err);
    (void)json_object_set_new(ask_of(target), "tty_idle", json_integer(0));
    return 0;
}

static int set_on_timeout(void *target, const char *value, struct error *err)
{
    bool is_requeue = strcmp(value, "requeue") == 0, is_park = strcmp(value, "park") == 0;
    if (!is_requeue && !is_park && strcmp(value, "kill") != 0)
        return error_set(err, -EINVAL, "--on-timeout: '%.60s' is not kill, requeue or park", value);
    int r = set(target, "requeue_on_timeout", "--on-timeout", is_requeue ? "yes" : "no", err);
    return r < 0 ? r : set(target, "park_on_timeout", "--on-timeout", is_park ? "yes" : "no", err);
}

static int set_on_preempt(void *target, const char *value, struct error *err)
{
    bool is_park = strcmp(value, "park") == 0;
    if (!is_park && strcmp(value, "requeue") != 0)
        return error_set(err, -EINVAL, "--on-preempt: '%.60s' is neither requeue nor park", value);
    return set(target, "park_on_preempt", "--on-preempt", is_park ? "yes" : "no", err);
}

static int set_requeue_on(void *target, const char *value, struct error *err)
{
    bool is_lost = strcmp(value, "node-lost") == 0;
    if (!is_lost && strcmp(value, "none") != 0)
        return error_set(err, -EINVAL, "--requeue-on: '%.60s' is neither node-lost nor none", value);
    return set(target, "requeue_on_node_lost", "--requeue-on", is_lost ? "yes" : "no", err);
}

/* Names are converted to numbers when mgpud can be queried. */
static int set_after(void *target, const char *value, struct error *err)
{
    const char *jobs = NULL;
    int r = option_text("--after", value, &jobs, err);
    if (r == 0)
        strings_add(&options_of(target)->after, jobs);
    return r;
}

static int set_dry(void *target, const char *value, struct error *err)
{
    if (((struct call *)target)->layer != NULL)
        return error_set(err, -EINVAL, "--dry-run is only allowed on the command line");
    options_of(target)->is_dry = true;
    return 0;
}

static int set_fallback(void *target, const char *value, struct error *err)
{
    int r = job_spec_check_fallback("--chdir-fallback", value, err);
    return r < 0 ? r : option_text("--chdir-fallback", value, &options_of(target)->fallback, err);
}

static int set_env(void *target, const char *value, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) {
        (void)error_set(err, -EINVAL, "-e: '%.60s' is not NAME=VALUE", value);
        return error_hint(err, "your environment is exported anyway");
    }
    _cleanup_free_ char *name = xstrndup(value, (size_t)(equals - value));
    strings_set_env(&options_of(target)->env, name, equals + 1);
    return 0;
}

/* A file is read once for all jobs of a call: it may be a pipe. */
static int set_env_file(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    struct submit_options *options = options_of(target);
    int r = option_text("--env-file", value, &value, err);
    if (r < 0)
        return r;
    json_t *variables = json_object_get(call->env_files, value);
    if (variables == NULL) {
        r = env_file_read(value, &variables, err);
        if (r < 0)
            return r;
        if (call->env_files == NULL)
            call->env_files = json_object();
        if (json_object_set_new(call->env_files, value, variables) < 0)
            return error_set(err, -EINVAL, "--env-file: the name of the file is not UTF-8 text");
    }
    if (options->env_files == NULL)
        options->env_files = json_object();
    return json_object_update(options->env_files, variables);
}

static int set_export(void *target, const char *value, struct error *err)
{
    options_of(target)->export = value;
    return environment_check(value, err);
}

static int set_module(void *target, const char *value, struct error *err)
{
    strings_add(&options_of(target)->setup.modules, value);
    return value[0] != '\0' ? 0 : error_set(err, -EINVAL, "--module: the name of the module is empty");
}

static int set_image(void *target, const char *value, struct error *err)
{
    return image_set_name(&options_of(target)->image, value, err);
}

static int set_image_mount(void *target, const char *value, struct error *err)
{
    return image_add_mount(&options_of(target)->image, value, err);
}

static int set_image_runtime(void *target, const char *value, struct error *err)
{
    return image_set_runtime(&options_of(target)->image, value, err);
}

static int set_setup(void *target, const char *value, struct error *err)
{
    return option_text("-E", value, &options_of(target)->setup.command, err);
}

static int set_tty(void *target, const char *value, struct error *err)
{
    options_of(target)->is_tty = true;
    options_of(target)->is_never_tty = false;
    return 0;
}

static int set_no_tty(void *target, const char *value, struct error *err)
{
    options_of(target)->is_never_tty = true;
    options_of(target)->is_tty = false;
    return 0;
}

/* Each occurrence adds a target; "none" removes earlier ones, for example from the user's defaults. */
static int set_notify(void *target, const char *value, struct error *err)
{
    struct submit_options *options = options_of(target);
    json_t *before = options->ask != NULL ? json_object_get(options->ask, "notify") : NULL;
    if (strcmp(value, "none") == 0) {
        if (options->ask != NULL) {
            (void)json_object_del(options->ask, "notify");
            (void)json_object_del(options->ask, "notify_on");
        }
        return 0;
    }
    _cleanup_json_ json_t *all = before != NULL ? json_copy(before) : json_array();
    int r = set(target, "notify", "--notify", value, err);
    if (r < 0)
        return r;
    (void)json_array_extend(all, json_object_get(options->ask, "notify"));
    return json_object_set(options->ask, "notify", all);
}

/* srun uses it for tasks, and one of the earlier schedulers used it for GPUs: a guess would often be
 * wrong. */
static int refuse_n(void *target, const char *value, struct error *err)
{
    return error_set(err, -EINVAL, "-n is not an option; for %.20s GPUs use -g %.20s", value, value);
}

const struct option_row submit_rows[] = {
    { 'g', "gpus", "N|0.5|N:TYPE", "number of GPUs, 0 for none, a part of one, or of a model: 2:h200 (1)",
        .set_key = set_key, .key = "gpus" },
    { 'G', "gpu-ids", "LIST", ask_help_gpu_ids, .set_key = set_key, .key = "gpu_ids" },
    { 0, "node-gpu-ids", "LIST", NULL, .set_key = set_key, .key = "gpu_ids" },
    { 0, "gpu-allow", "LIST", ask_help_gpu_allow, .set_key = set_key, .key = "gpu_allow" },
    { 'm', "gpu-mem", "SIZE|auto", ask_help_gpu_mem, .set_key = set_key, .key = "gpu_mem" },
    { 0, "share", "KIND", ask_help_share, .set_key = set_key, .key = "share" },
    { 0, "mem", "SIZE", NULL, set_mem },
    { 'c', "cpus", "N", ask_help_cpus, .set_key = set_key, .key = "cpus" },
    { 'M', "ram", "SIZE", "host memory per node: 64G; plain = MiB", .set_key = set_key, .key = "memory" },
    { 'N', "nodes", "N", ask_help_nodes, .set_key = set_key, .key = "nodes" },
    { 0, "gpus-per-node", "N", ask_help_gpus_per_node, .set_key = set_key, .key = "gpus_per_node" },
    { 'P', "partition", "NAME[,NAME]", "partition, or one of several: mgpu partitions", .set_key = set_key,
        .key = "partition" },
    { 0, "nodelist", "NODE[,NODE]", ask_help_nodelist, .set_key = set_key, .key = "nodelist" },
    { 0, "exclude", "NODE[,NODE]", ask_help_exclude, .set_key = set_key, .key = "exclude" },
    { 0, "exclusive", NULL, ask_help_exclusive, .set_key = set_key, .key = "exclusive" },
    { 't', "time", "TIME", ask_help_time_limit, .set_key = set_key, .key = "time_limit" },
    { 0, "no-time-limit", NULL, ask_help_no_time_limit, .set_key = set_key, .key = "no_time_limit" },
    { 0, "time-limit", "TIME", NULL, .set_key = set_key, .key = "time_limit" },
    { 0, "signal", "SIGNAL[@TIME]", ask_help_warn_signal, .set_key = set_key, .key = "warn_signal" },
    { 0, "grace", "TIME", ask_help_grace, .set_key = set_key, .key = "grace" },
    { 0, "on-timeout", "kill|requeue|park", "at the time limit: end, requeue or park the job (kill)",
        set_on_timeout },
    { 0, "on-preempt", "requeue|park", "when other jobs need its GPUs: requeue or park the job (requeue)",
        set_on_preempt },
    { 0, "park-anywhere", NULL, ask_help_park_anywhere, .set_key = set_key, .key = "park_anywhere" },
    { 0, "early", NULL, ask_help_early, .set_key = set_key, .key = "early" },
    { 0, "no-early", NULL, ask_help_no_early, .set_key = set_key, .key = "no_early" },
    { 0, "no-park", NULL, ask_help_no_park, .set_key = set_key, .key = "no_park" },
    { 0, "requeue-on", "node-lost|none", "requeue the job if its node is lost or reboots (none)",
        set_requeue_on },
    { 0, "max-requeues", "N", ask_help_max_requeues, .set_key = set_key, .key = "max_requeues" },
    { 0, "retry", "N", ask_help_retry, .set_key = set_key, .key = "retry" },
    { 0, "retry-on", "LIST", ask_help_retry_on, .set_key = set_key, .key = "retry_on" },
    { 0, "retry-oom", "FACTOR[,max=SIZE]", ask_help_retry_oom, .set_key = set_key, .key = "retry_oom" },
    { 0, "notify", "TARGET", ask_help_notify, set_notify },
    { 0, "notify-on", "EVENTS", ask_help_notify_on, .set_key = set_key, .key = "notify_on" },
    { 'p', "priority", "N", ask_help_priority, set_priority },
    { 'b', "begin", "TIME", "earliest start: 18:00, 'Fri 18:00', +2h, '2026-11-22 14:00'", .set_key = set_key,
        .key = "begin" },
    { 0, "deadline", "TIME", ask_help_deadline, .set_key = set_key, .key = "deadline" },
    { 'a', "array", "LIST", ask_help_array, .set_key = set_key, .key = "array" },
    { 'A', "after", "JOB[:ok|any|fail|start[+TIME]|corr]",
        "start after this job has ended (ok) or started; can be repeated", set_after },
    { 0, "cancel-if-never", NULL, ask_help_cancel_if_never, .set_key = set_key, .key = "cancel_if_never" },
    { 0, "hold", NULL, "do not start before mgpu release JOB",
        OPTION_INNER(flag, struct submit_options, is_held) },
    { 0, "checkpoint", NULL, ask_help_checkpoint, .set_key = set_key, .key = "checkpoint" },
    { 0, "preemptible", NULL, ask_help_preemptible, .set_key = set_key, .key = "preemptible" },
    { 0, "idle-timeout", "TIME", ask_help_idle_timeout, .set_key = set_key, .key = "idle_timeout" },
    { 0, "idle-ok", NULL, ask_help_idle_ok, .set_key = set_key, .key = "idle_ok" },
    { 0, "log-max", "SIZE", ask_help_log_max, .set_key = set_key, .key = "log_max" },
    { 0, "private-tmp", NULL, ask_help_private_tmp, .set_key = set_key, .key = "private_tmp" },
    { 0, "tty-idle", "TIME", ask_help_tty_idle, set_tty_idle },
    { 0, "dry-run", NULL, "show where and when it would start; submit nothing", set_dry },
    { 'J', "name", "NAME", "job name", .set_key = set_key, .key = "name" },
    { 'C', "chdir", "DIR", "run in this directory instead of the current one",
        OPTION_INNER(text, struct submit_options, directory) },
    { 0, "chdir-fallback", "home|tmp|DIR", "where to run on a node without that directory (fail)",
        set_fallback },
    { 'e', "env", "NAME=VALUE", "set a variable; can be repeated", set_env },
    { 0, "env-file", "FILE", "set variables from NAME=VALUE lines; can be repeated", set_env_file },
    { 0, "export", "all|minimal|NAMES", "variables to export: minimal, or these too (all)", set_export },
    { 0, "module", "NAME", "load an environment module; can be repeated", set_module },
    { 0, "conda", "ENV", "activate a conda environment",
        OPTION_INNER(text, struct submit_options, setup.conda) },
    { 0, "venv", "DIR", "activate a Python virtual environment",
        OPTION_INNER(text, struct submit_options, setup.venv) },
    { 'E', "setup", "COMMAND", "shell command to run first, in the same environment", set_setup },
    { 0, "env-setup-cmd", "COMMAND", NULL, set_setup },
    { 0, "image", "IMAGE", "run in a container: pytorch/pytorch:latest, docker://..., net.sif", set_image },
    { 0, "image-mount", "SRC[:DST[:ro]]", "additional mount in the container; can be repeated",
        set_image_mount },
    { 0, "image-runtime", "podman|apptainer", "container runtime (the one installed)", set_image_runtime },
    { 'o', "output", "FILE", "output file, appended to; %j is the job number, %n its name",
        OPTION_INNER(text, struct submit_options, output) },
    { 0, "error", "FILE", "file for standard error alone (that of standard output)",
        OPTION_INNER(text, struct submit_options, error) },
    { 0, "input", "FILE", "file for standard input (/dev/null)",
        OPTION_INNER(text, struct submit_options, input) },
    { 0, "split-log", NULL, ask_help_split_log, .set_key = set_key, .key = "split_log" },
    { 0, "truncate", NULL, "empty these output files at the start of each attempt",
        OPTION_INNER(flag, struct submit_options, is_truncated) },
    { 'T', "tty", NULL, "run on a terminal, for mgpu attach", set_tty },
    { 0, "no-tty", NULL, "do not run on a terminal", set_no_tty },
    { 'n', "n", "N", NULL, refuse_n },
    { 0 },
};

const struct option_row adopt_rows[] = {
    { 'g', "gpus", "N|0.5", "number of GPUs (those used by the process)", .set_key = set_key, .key = "gpus" },
    { 'G', "gpu-ids", "LIST", "exactly these GPUs: 0,2-3 or gpu1:0,1", .set_key = set_key, .key = "gpu_ids" },
    { 'm', "gpu-mem", "SIZE", "memory it uses on each GPU, which can then be shared: 8G", .set_key = set_key,
        .key = "gpu_mem" },
    { 'c', "cpus", "N", "CPUs to count as used: 8, 2.5", .set_key = set_key, .key = "cpus" },
    { 'M', "ram", "SIZE", "host memory to count as used: 64G; plain = MiB", .set_key = set_key,
        .key = "memory" },
    { 't', "time", "TIME", "release the process after this time: 90m, 4h; plain = seconds",
        .set_key = set_key, .key = "time_limit" },
    { 'p', "priority", "N", "priority while it waits, higher first (0)", .set_key = set_key,
        .key = "priority" },
    { 0, "deadline", "TIME", "give up if not started by then", .set_key = set_key, .key = "deadline" },
    { 'J', "name", "NAME", "job name (that of its program)", .set_key = set_key, .key = "name" },
    { 0 },
};

void submit_options_clear(void *arg)
{
    struct submit_options *options = arg;
    json_decrefp(&options->ask);
    strings_clear(&options->after);
    strings_clear(&options->env);
    strings_clear(&options->sweeps);
    strings_clear(&options->setup.modules);
    image_options_clear(&options->image);
    json_decrefp(&options->env_files);
}
