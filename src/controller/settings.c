/* SPDX-License-Identifier: MIT */
/* A setting is a row of the table below: command line, help text and configuration file all come from it. */
#include "controller/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/version.h"
#include "controller/settings_outside.h"
#include "controller/settings_sched.h"
#include "wire/gpu_spec.h"

#define SYSTEM_CONFIG "/etc/mgpu/mgpu.yaml"
#define SETTINGS_MAX  64U

struct parsed {
    struct controller_options *options;
    bool is_fsck, is_help, is_version;
};

static int replace(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
    return 0;
}

static int set_path(char **field, const char *option, const char *value, struct error *err)
{
    if (value[0] != '/') {
        char cwd[PATH_MAX];
        if (getcwd(cwd, sizeof(cwd)) == NULL)
            return error_set_errno(
                err, -errno, "%s: %s is relative, and there is no working directory", option, value);
        free(*field);
        *field = xasprintf("%s/%s", cwd, value);
        return 0;
    }
    return replace(field, value);
}

static int set_config(void *target, const char *value, struct error *err)
{
    return set_path(&((struct parsed *)target)->options->config, "--config", value, err);
}

static int set_state_dir(void *target, const char *value, struct error *err)
{
    struct controller_options *options = ((struct parsed *)target)->options;
    int r = set_path(&options->state_dir, "--state-dir", value, err);
    if (r < 0)
        return r;
    /* A private instance keeps its logs to itself; one that has its usual place keeps them with the users. */
    free(options->log_dir);
    options->log_dir = xasprintf("%s/logs", options->state_dir);
    return 0;
}

static int set_run_dir(void *target, const char *value, struct error *err)
{
    return set_path(&((struct parsed *)target)->options->run_dir, "--run-dir", value, err);
}

static int set_log_dir(void *target, const char *value, struct error *err)
{
    char **field = &((struct parsed *)target)->options->log_dir;
    return strcmp(value, "home") == 0 ? replace(field, value) : set_path(field, "--log-dir", value, err);
}

static int set_listen(void *target, const char *value, struct error *err)
{
    struct parsed *parsed = target;
    const char *colon = strrchr(value, ':');
    if (strcmp(value, "none") != 0 && (colon == NULL || colon == value || colon[1] == '\0')) {
        (void)error_set(err, -EINVAL, "--listen: '%.60s' is not HOST:PORT", value);
        return error_hint(err, "write 127.0.0.1:9123, or none");
    }
    parsed->options->is_listen_explicit = true;
    return replace(&parsed->options->listen, value);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    struct gpu_spec spec;
    int r = gpu_spec_parse(value, &spec, err);
    return r < 0 ? r : replace(&((struct parsed *)target)->options->gpus, value);
}

static int set_nvml_library(void *target, const char *value, struct error *err)
{
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "--nvml-library is empty");
    return set_path(&((struct parsed *)target)->options->nvml_library, "--nvml-library", value, err);
}

static int set_user(void *target, const char *value, struct error *err)
{
    return replace(&((struct parsed *)target)->options->user, value);
}

static int set_node(void *target, const char *value, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (value[0] == '\0' || strlen(value) > 64 || strspn(value, allowed) != strlen(value))
        return error_set(
            err, -EINVAL, "--node: '%.60s' is not a name of letters, digits, '-', '_' and '.'", value);
    return replace(&((struct parsed *)target)->options->node, value);
}

static int set_cgroup(void *target, const char *value, struct error *err)
{
    if (value[0] != '/') {
        (void)error_set(err, -EINVAL, "--cgroup: '%.60s' does not begin with '/'", value);
        return error_hint(err, "name it as /proc/PID/cgroup does, such as /system.slice/mgpu-jobs.service");
    }
    return replace(&((struct parsed *)target)->options->cgroup, value);
}

static int set_allow_root_jobs(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->options->allow_root_jobs = value == NULL || strcmp(value, "true") == 0;
    return 0;
}

static int set_watch_terminals(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->options->may_watch_terminals = value == NULL || strcmp(value, "true") == 0;
    return 0;
}

static int set_detach(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->options->is_detached = true;
    return 0;
}

static int set_verbose(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->options->is_verbose = value == NULL || strcmp(value, "true") == 0;
    return 0;
}

static int set_fsck(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->is_fsck = true;
    return 0;
}

static int set_help(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->is_help = true;
    return 0;
}

static int set_version(void *target, const char *value, struct error *err)
{
    ((struct parsed *)target)->is_version = true;
    return 0;
}

/* Rows that the configuration file may use as well. */
static const struct option_row setting_rows[] = {
    { 0, "state-dir", "DIR", "what must survive: store, unfetched exit records", set_state_dir },
    { 0, "run-dir", "DIR", "sockets and the spool of running jobs", set_run_dir },
    { 0, "log-dir", "home|DIR", "default place of job output: each user's home, or a directory",
        set_log_dir },
    { 0, "listen", "HOST:PORT|none", "serve the API on TCP too (default 127.0.0.1:9123)", set_listen },
    { 0, "gpus", "auto|none|sim:8x24G[:MODEL]", "the GPUs of this node (default auto)", set_gpus },
    { 0, "nvml-library", "PATH", "the library of the NVIDIA driver (default libnvidia-ml.so.1)",
        set_nvml_library },
    { 0, "user", "NAME", "user to become when started as root (default mgpu)", set_user },
    { 0, "node", "NAME", "name of this node (default: the host's name)", set_node },
    { 0, "cgroup", "GROUP", "cgroup to make those of jobs in (default: mgpud's own)", set_cgroup },
    { 0, "allow-root-jobs", NULL, "let root submit jobs that run as root", set_allow_root_jobs },
    { 0, "watch-terminals", NULL, "let administrators look at the terminals of jobs (not type)",
        set_watch_terminals },
    { 'v', "verbose", NULL, "log every message", set_verbose },
    { 0, NULL, NULL, NULL, NULL },
};

static const struct option_row command_rows[] = {
    { 0, "config", "FILE", "settings as YAML (default " SYSTEM_CONFIG " when it exists)", set_config },
    { 0, "detach", NULL, "return when the daemon is ready, and leave it running", set_detach },
    { 0, "fsck", NULL, "check the store: the fold of its events must equal its tables", set_fsck },
    { 'h', "help", NULL, "show this", set_help },
    { 'V', "version", NULL, "show the version", set_version },
    { 0, NULL, NULL, NULL, NULL },
};

static const struct option_row *const tables[] = { setting_rows, sched_rows, outside_rows, command_rows,
    NULL };

int settings_set(struct controller_options *options, const char *key, const char *value, struct error *err)
{
    struct parsed parsed = { .options = options };
    const struct option_row *const rows[] = { setting_rows, sched_rows, outside_rows };
    const char *names[SETTINGS_MAX + 1] = { NULL };
    size_t count = 0;
    for (size_t table = 0; table < sizeof(rows) / sizeof(rows[0]); table++) {
        for (const struct option_row *row = rows[table]; row->name != NULL && count < SETTINGS_MAX; row++) {
            names[count++] = row->name;
            if (strcmp(row->name, key) == 0)
                return row->set(&parsed, value, err);
        }
    }
    const char *nearest = text_nearest(key, names);
    (void)error_set(err, -EINVAL, "unknown key '%.60s'", key);
    return nearest != NULL ? error_hint(err, "did you mean %s?", nearest) : -EINVAL;
}

/* Where the agent and the shepherd are: beside us in a build directory, in libexec when installed. */
static char *program_directory(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return xstrdup("/usr/bin");
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    _cleanup_free_ char *beside = xasprintf("%s/mgpu-agent", path);
    if (access(beside, X_OK) == 0)
        return xstrdup(path);
    return xasprintf("%s/../libexec/mgpu", path);
}

static char *user_directory(const char *variable, const char *home, const char *below)
{
    const char *base = getenv(variable);
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu", base);
    return xasprintf("%s/%s", home, below);
}

int settings_default(struct controller_options *options, bool is_root, struct error *err)
{
    struct utsname host;
    *options = (struct controller_options){ 0 };
    sched_settings_init(&options->sched);
    outside_settings_init(&options->outside);
    options->listen = xstrdup("127.0.0.1:9123");
    options->gpus = xstrdup("auto");
    options->user = xstrdup("mgpu");
    options->node = xstrdup(uname(&host) == 0 && host.nodename[0] != '\0' ? host.nodename : "localhost");
    options->log_dir = xstrdup("home");
    options->program_dir = program_directory();
    if (is_root) {
        options->state_dir = xstrdup("/var/lib/mgpu");
        options->run_dir = xstrdup("/run/mgpu");
        return 0;
    }
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/') {
        (void)error_set(err, -ENOENT, "HOME is not set");
        return error_hint(err, "give --state-dir and --run-dir");
    }
    options->state_dir = user_directory("XDG_STATE_HOME", home, ".local/state/mgpu");
    options->run_dir = user_directory("XDG_RUNTIME_DIR", home, ".local/state/mgpu/run");
    return 0;
}

static void print_help(void)
{
    (void)printf("Usage: mgpud [OPTION...]\n\n"
                 "The controller of mgpu: queue, store and API. It starts the agent of this node itself.\n"
                 "Without options and without a file it serves this machine.\n\n");
    options_print(setting_rows, stdout);
    options_print(sched_rows, stdout);
    options_print(outside_rows, stdout);
    options_print(command_rows, stdout);
}

int settings_read(
    int argc, char **argv, struct controller_options *options, bool *ret_fsck, struct error *err)
{
    struct controller_options scratch = { 0 };
    struct parsed first = { .options = &scratch };
    int operands = 0;
    int r = options_parse(argc, argv, tables, &first, false, &operands, err);
    if (r == 0 && operands < argc)
        r = error_set(err, -EINVAL, "mgpud takes no operand, but '%.60s' was given", argv[operands]);
    _cleanup_free_ char *config = xstrdup(scratch.config);
    settings_clear(&scratch);
    if (r < 0)
        return r;
    if (first.is_help)
        print_help();
    else if (first.is_version)
        (void)printf("mgpud %s\n", MGPU_VERSION);
    if (first.is_help || first.is_version)
        return 1;
    if (config == NULL && geteuid() == 0 && access(SYSTEM_CONFIG, F_OK) == 0)
        config = xstrdup(SYSTEM_CONFIG);
    if (config != NULL) {
        r = config_read(config, options, err);
        if (r < 0)
            return r;
    }
    struct parsed second = { .options = options };
    r = options_parse(argc, argv, tables, &second, false, &operands, err);
    *ret_fsck = second.is_fsck;
    return r;
}

void settings_clear(struct controller_options *options)
{
    char *fields[] = { options->config, options->state_dir, options->run_dir, options->listen, options->gpus,
        options->nvml_library, options->user, options->node, options->log_dir, options->program_dir,
        options->priority_group, options->cgroup };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        free(fields[i]);
    free(options->accounts);
    *options = (struct controller_options){ 0 };
}
