/* SPDX-License-Identifier: MIT */
/* A setting is a row of the table below: command line, help text, configuration file and default are all
 * derived from it. */
#include "controller/config/settings.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/system_mgpud.h"
#include "base/uid_min.h"
#include "controller/config/partitions.h"
#include "controller/config/roles.h"
#include "controller/config/settings_cluster.h"
#include "controller/config/settings_early.h"
#include "controller/config/settings_external.h"
#include "controller/config/settings_health.h"
#include "controller/config/settings_idle.h"
#include "controller/config/settings_keep.h"
#include "controller/config/settings_loss.h"
#include "controller/config/settings_notifications.h"
#include "controller/config/settings_park.h"
#include "controller/config/settings_sched.h"
#include "controller/config/settings_time.h"
#include "job/ask.h"
#include "wire/address.h"
#include "wire/gpu_spec.h"
#include "wire/resource_limits.h"

#define SYSTEM_CONFIG        "/etc/mgpu/mgpu.yaml"
#define DROP_INS             ".d"
#define COMMAND_LINE         "command line"
#define SETTINGS_MAX         128U
#define PIDS_MAX             4194304 // the maximum in Linux
#define PIDS_MIN             16
#define DEFAULT_LISTEN       "127.0.0.1:9123"
#define DEFAULT_NODES_LISTEN "[::]:" NODES_PORT
#define DEFAULT_USER         "mgpu"

struct parsed {
    struct controller_options *options; // first: OPTION_INNER; the rows of other files use only this member
    struct settings_actions actions;
};

static int replace(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
    return 0;
}

static int set_state_dir(void *target, const char *value, struct error *err)
{
    struct controller_options *options = ((struct parsed *)target)->options;
    int r = option_path("--state-dir", value, &options->state_dir, err);
    if (r < 0)
        return r;
    /* A private instance keeps its logs in its own directory; one in the usual place stores them with the
     * users. */
    free(options->log_dir);
    options->log_dir = xasprintf("%s/logs", options->state_dir);
    return 0;
}

static int set_log_dir(void *target, const char *value, struct error *err)
{
    char **field = &((struct parsed *)target)->options->log_dir;
    return strcmp(value, "home") == 0 ? replace(field, value) : option_path("--log-dir", value, field, err);
}

static int set_listen(void *target, const char *value, struct error *err)
{
    _cleanup_address_ struct address unused = { 0 };
    if (strcmp(value, "none") != 0 && address_parse(value, NULL, &unused, NULL) < 0) {
        (void)error_set(
            err, -EINVAL, "--listen: '%.60s' is not HOST:PORT with a port from 1 to 65535", value);
        return error_hint(err, "use 127.0.0.1:9123, or none");
    }
    return replace(&((struct parsed *)target)->options->listen, value);
}

static int set_nodes_listen(void *target, const char *value, struct error *err)
{
    _cleanup_address_ struct address unused = { 0 };
    int r = strcmp(value, "none") == 0 ? 0 : address_parse(value, NULL, &unused, err);
    if (r < 0)
        return error_wrap(err, "--nodes-listen");
    return replace(&((struct parsed *)target)->options->nodes_listen, value);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    struct gpu_spec spec;
    int r = gpu_spec_parse(value, &spec, err);
    return r < 0 ? r : replace(&((struct parsed *)target)->options->gpus, value);
}

static int set_job_access(void *target, const char *value, struct error *err)
{
    static const char *const names[] = {
        [JOB_ACCESS_NONE] = "none", [JOB_ACCESS_JOB] = "job", [JOB_ACCESS_SUBMIT] = "submit"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(value, names[i]) == 0) {
            ((struct parsed *)target)->options->job_access = (enum job_access)i;
            return 0;
        }
    (void)error_set(err, -EINVAL, "--job-access: invalid value '%.40s'", value);
    return error_hint(err, "use none, job or submit");
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
        return error_hint(err, "name it as in /proc/PID/cgroup, such as /system.slice/mgpu-jobs.service");
    }
    return replace(&((struct parsed *)target)->options->cgroup, value);
}

static int set_min_uid(void *target, const char *value, struct error *err)
{
    struct controller_options *options = ((struct parsed *)target)->options;
    int r = uid_min_parse(value, "--min-uid", &options->lowest_uid, err);
    return r < 0 ? r : replace(&options->min_uid, value);
}

static int set_job_limits(void *target, const char *value, struct error *err)
{
    int r = value[0] != '\0' ? resource_limits_parse(value, "--job-limits", NULL, err) : 0;
    return r < 0 ? r : replace(&((struct parsed *)target)->options->job_limits, value);
}

static int set_pids_max(void *target, const char *value, struct error *err)
{
    int64_t number = 0;
    bool is_auto = strcmp(value, "auto") == 0; // the node decides
    int r = is_auto ? 0 : parse_integer(value, "--pids-max", 0, PIDS_MAX, &number, err);
    if (r == 0 && number > 0 && number < PIDS_MIN)
        return error_set(
            err, -ERANGE, "--pids-max: %d is less than %d, the minimum for a job", (int)number, PIDS_MIN);
    return r < 0 ? r : replace(&((struct parsed *)target)->options->pids_max, value);
}

static int set_log_max(void *target, const char *value, struct error *err)
{
    uint64_t *log_max = &((struct parsed *)target)->options->log_max;
    *log_max = 0;
    int r = strcmp(value, "none") == 0 ? 0 : parse_size(value, "--log-max", log_max, err);
    return r < 0 || *log_max == 0 ? r : ask_check_log_max("--log-max", *log_max, err);
}

/* Rows that are also allowed in the configuration file. */
static const struct option_row setting_rows[] = {
    { 0, "state-dir", "DIR", "persistent data: store, unfetched exit records", set_state_dir },
    { 0, "run-dir", "DIR", "sockets and the spool of running jobs",
        OPTION_INNER(path, struct controller_options, run_dir) },
    { 0, "log-dir", "home|DIR", "location of job output: each user's home, or a directory", set_log_dir },
    { 0, "log-max", "none|SIZE", "maximum output of a job that is kept: its beginning and its end",
        set_log_max, "none" },
    { 0, "listen", "HOST:PORT|none", "serve the API on TCP as well", set_listen, DEFAULT_LISTEN },
    { 0, "nodes-listen", "HOST:PORT|none", "address for joining nodes, open once a token or node exists",
        set_nodes_listen, DEFAULT_NODES_LISTEN },
    { 0, "job-access", "none|job|submit",
        "rights of commands in jobs on joined machines without a token: none, change their job, or also "
        "submit",
        set_job_access, "submit" },
    { 0, "munge", "on|off", "accept MUNGE credentials over TCP",
        OPTION_INNER(on_off, struct controller_options, is_munge_on), .preset = "off" },
    { 0, "munge-socket", "PATH", "socket of munged",
        OPTION_INNER(path, struct controller_options, munge_socket), .preset = "/run/munge/munge.socket.2" },
    { 0, "gpus", "auto|nvml|amd|none|sim:8x24G[:MODEL]", "the GPUs of this node", set_gpus, "auto" },
    { 0, "nvml-library", "auto|PATH", "the library of the NVIDIA driver; auto: libnvidia-ml.so.1",
        OPTION_INNER(library, struct controller_options, nvml_library), .preset = "auto" },
    { 0, "cuda-library", "auto|PATH", "CUDA's driver library, which parks jobs; auto: libcuda.so.1",
        OPTION_INNER(library, struct controller_options, cuda_library), .preset = "auto" },
    { 0, "rocm-library", "auto|PATH", "ROCm's library for AMD GPUs; auto: librocm_smi64.so, any version",
        OPTION_INNER(library, struct controller_options, rocm_library), .preset = "auto" },
    { 0, "mps-control", "auto|PATH", "the program nvidia-cuda-mps-control; auto: where it usually is",
        OPTION_INNER(library, struct controller_options, mps_control), .preset = "auto" },
    { 0, "sysfs-root", "DIR", "directory to look for AMD GPUs in, for tests",
        OPTION_INNER(path, struct controller_options, sysfs_root), .preset = "/sys" },
    { 0, "device-dir", "DIR", "directory of GPU device nodes (default /dev; none for simulated ones)",
        OPTION_INNER(path, struct controller_options, device_dir) },
    { 0, "imex-channels", "on|off", "allow jobs with NVIDIA GPUs the IMEX channels (NVLink between nodes)",
        OPTION_INNER(on_off, struct controller_options, is_imex_on), .preset = "off" },
    { 0, "gpu-scrub", "never|TIME",
        "overwrite the memory of a GPU within this time before another user gets it",
        OPTION_INNER(duration, struct controller_options, gpu_scrub_ms), OPTION_ZERO("never"),
        .preset = "never" },
    { 0, "gpu-test-every", "never|TIME", "test GPUs that have been idle, each at this interval",
        OPTION_INNER(duration, struct controller_options, gpu_test_every_ms), OPTION_ZERO("never"),
        .preset = "never" },
    { 0, "sendmail", "PATH", "program used by nodes to send mail",
        OPTION_INNER(path, struct controller_options, sendmail), .preset = "/usr/sbin/sendmail" },
    { 0, "user", "NAME", "user to switch to if started as root",
        OPTION_INNER(copy, struct controller_options, user), .preset = DEFAULT_USER },
    { 0, "node", "NAME", "name of this node (default: the host's name)", set_node },
    { 0, "no-agent", NULL, "start no agent: no jobs run on this machine",
        OPTION_INNER(flag, struct controller_options, has_no_agent), .preset = "false" },
    { 0, "cgroup", "GROUP", "cgroup for the cgroups of jobs (default: mgpud's own)", set_cgroup },
    { 0, "pids-max", "auto|N", "maximum processes and threads of a job; 0: unlimited; auto: at most 32768",
        set_pids_max, "auto" },
    { 0, "job-limits", "LIST", "limits of jobs: memlock=unlimited,nofile=4096:65536,stack=64M,core=0",
        set_job_limits },
    { 0, "min-uid", "auto|N", "lowest user id that jobs may have; auto: UID_MIN of login.defs", set_min_uid,
        "auto" },
    { 0, "allow-root-jobs", NULL, "allow root to submit jobs that run as root",
        OPTION_INNER(flag, struct controller_options, allow_root_jobs), .preset = "false" },
    { 0, "adopt-any-user", NULL, "without root, allocate GPUs to processes of other users (srun)",
        OPTION_INNER(flag, struct controller_options, adopts_any_user), .preset = "false" },
    { 0, "no-new-privileges", NULL,
        "prevent jobs from gaining privileges: sudo, ping and rootless podman fail",
        OPTION_INNER(flag, struct controller_options, has_no_new_privs), .preset = "false" },
    { 0, "private-tmp", NULL, "give each job a private /tmp, /var/tmp, /dev/shm and System V IPC",
        OPTION_INNER(flag, struct controller_options, is_tmp_private), .preset = "false" },
    { 0, "watch-terminals", NULL, "allow administrators to view the terminals of jobs",
        OPTION_INNER(flag, struct controller_options, may_watch_terminals), .preset = "false" },
    { 'v', "verbose", NULL, "log all messages", OPTION_INNER(flag, struct controller_options, is_verbose),
        .preset = "false" },
    { 0, NULL, NULL, NULL, NULL },
};

static const struct option_row command_rows[] = {
    { 0, "config", "FILE", "settings as YAML, and those in FILE.d (default " SYSTEM_CONFIG ")",
        OPTION_INNER(path, struct controller_options, config) },
    { 0, "check-config", NULL, "print the settings in the files, or their errors, and exit",
        OPTION_VALUE(flag, struct parsed, actions.check_config) },
    { 0, "example-config", NULL, "print a configuration file with every setting commented out, and exit",
        OPTION_VALUE(flag, struct parsed, actions.example_config) },
    { 0, "create-user", NULL, "create the system user of --user if there is none",
        OPTION_INNER(flag, struct controller_options, may_create_user) },
    { 0, "need-listen", NULL, "exit if the port of --listen is in use, instead of starting without it",
        OPTION_INNER(flag, struct controller_options, needs_listen) },
    { 0, "detach", NULL, "return once the daemon is ready, and leave it running",
        OPTION_INNER(flag, struct controller_options, is_detached) },
    { 0, "stop", NULL, "stop the running mgpud and return once it has exited; jobs are not affected",
        OPTION_VALUE(flag, struct parsed, actions.stop) },
    { 0, "reload", NULL, "check the configuration files, and have the running mgpud read them again",
        OPTION_VALUE(flag, struct parsed, actions.reload) },
    { 0, "migrate", NULL, "put the store of this machine into etcd, with --cluster, and start",
        OPTION_VALUE(flag, struct parsed, actions.migrate) },
    { 0, "leave-cluster", NULL,
        "remove the cluster from etcd, keep the store for this machine alone, and exit",
        OPTION_VALUE(flag, struct parsed, actions.leave_cluster) },
    { 0, "fsck", NULL, "verify that the tables of the store match its events",
        OPTION_VALUE(flag, struct parsed, actions.fsck) },
    { 0, "backup", "FILE", "write store, keys and settings to a new file, while mgpud runs or not",
        OPTION_VALUE(word, struct parsed, actions.backup) },
    { 0, "restore", "FILE", "put a backup into the state directory of an mgpud that is not running",
        OPTION_VALUE(word, struct parsed, actions.restore) },
    { 'h', "help", NULL, "show this", OPTION_VALUE(flag, struct parsed, actions.help) },
    { 'V', "version", NULL, "show the version", OPTION_VALUE(flag, struct parsed, actions.version) },
    { 0, NULL, NULL, NULL, NULL },
};

const struct settings_table settings_tables[] = {
    { setting_rows, false },
    { sched_rows, true },
    { external_rows, true },
    { health_rows, true },
    { idle_rows, true },
    { time_rows, true },
    { notifications_rows, true },
    { keep_rows, true },
    { park_rows, true },
    { early_rows, true },
    { loss_rows, false },
    { cluster_rows, false },
    { NULL, false },
};

int settings_set(struct controller_options *options, const char *key, const char *value, const char *origin,
    struct error *err)
{
    struct parsed parsed = { .options = options };
    const char *names[SETTINGS_MAX + 1] = { NULL };
    size_t count = 0;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++) {
        for (const struct option_row *row = table->rows; row->name != NULL && count < SETTINGS_MAX; row++) {
            names[count++] = row->name;
            if (strcmp(row->name, key) != 0)
                continue;
            int r = options_set(&parsed, row, value, err);
            if (r == 0)
                settings_note(options, key, value, origin);
            return r;
        }
    }
    const char *nearest = text_nearest(key, names);
    (void)error_set(err, -EINVAL, "unknown key '%.60s'", key);
    return nearest != NULL ? error_hint(err, "did you mean %s?", nearest) : -EINVAL;
}

/* The directory of the agent and the shepherd: this program's in a build directory, libexec when
 * installed. */
static char *program_directory(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return xstrdup("/usr/bin");
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    _cleanup_free_ char *beside = xasprintf("%s/mgpu-shepherd", path); // bin has a link only to the agent
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
    struct parsed parsed = { .options = options };
    *options = (struct controller_options){ 0 };
    sched_settings_init(&options->sched); // some of these are not settings
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++) {
        const struct option_row *const tables[] = { table->rows, NULL };
        int r = options_preset(tables, &parsed, err);
        if (r < 0)
            return r;
    }
    options->node = xstrdup(uname(&host) == 0 && host.nodename[0] != '\0' ? host.nodename : "localhost");
    options->log_dir = xstrdup("home");
    options->program_dir = program_directory();
    if (is_root) {
        options->state_dir = xstrdup(SYSTEM_STATE_DIR);
        options->run_dir = xstrdup(SYSTEM_RUN_DIR);
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

void settings_print_help(void)
{
    (void)printf("Usage: mgpud [OPTION...]\n"
                 "\n"
                 "The controller of mgpu: queue, store and API. It starts the agent of this node\n"
                 "itself.\n"
                 "Without options and configuration it serves this machine.\n"
                 "\n");
    _cleanup_free_ const struct option_row **tables = NULL;
    size_t count = 0;
    while (settings_tables[count].rows != NULL)
        count++;
    tables = xcalloc(count + 2, sizeof(*tables));
    for (size_t i = 0; i < count; i++)
        tables[i] = settings_tables[i].rows;
    tables[count] = command_rows;
    options_print_all(tables, stdout);
}

/* --- files --- */

static int is_drop_in(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".yaml") == 0;
}

static int read_drop_ins(const char *config, struct controller_options *options, struct error *err)
{
    _cleanup_free_ char *dir = xasprintf("%s" DROP_INS, config);
    struct dirent **entries = NULL;
    int r = 0, count = scandir(dir, &entries, is_drop_in, alphasort);
    if (count < 0)
        return errno == ENOENT ? 0 : error_set_errno(err, -errno, "cannot read %s", dir);
    for (int i = 0; i < count; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        if (r == 0)
            r = config_read(path, options, err);
        free(entries[i]);
    }
    free(entries);
    return r;
}

static char *usual_config(bool is_root)
{
    const char *home = getenv("HOME");
    if (is_root)
        return xstrdup(SYSTEM_CONFIG);
    _cleanup_free_ char *dir = user_directory("XDG_CONFIG_HOME", home != NULL ? home : "", ".config/mgpu");
    return xasprintf("%s/mgpu.yaml", dir);
}

/* A file given by the user must exist; the default file need not. */
static int read_files(const char *named, bool is_root, struct controller_options *options, struct error *err)
{
    _cleanup_free_ char *config = named != NULL ? xstrdup(named) : usual_config(is_root);
    int r = 0;
    if (named != NULL || access(config, F_OK) == 0)
        r = config_read(config, options, err);
    return r < 0 ? r : read_drop_ins(config, options, err);
}

#define TABLES_MAX 16

/* The tables allowed in files, then those only for the command line. */
static void list_tables(const struct option_row *tables[TABLES_MAX + 1])
{
    size_t count = 0;
    for (const struct settings_table *table = settings_tables; table->rows != NULL && count < TABLES_MAX - 1;
         table++)
        tables[count++] = table->rows;
    tables[count++] = command_rows;
    tables[count] = NULL;
}

static void note_option(void *target, const struct option_row *row, const char *value)
{
    struct controller_options *options = ((struct parsed *)target)->options;
    for (const struct option_row *other = command_rows; other->name != NULL; other++)
        if (row == other)
            return;
    settings_note(options, row->name, value, COMMAND_LINE);
}

int settings_read(int argc, char **argv, bool is_root, struct controller_options *options,
    struct settings_actions *ret_actions, struct error *err)
{
    struct controller_options scratch = { 0 };
    struct parsed first = { .options = &scratch };
    const struct option_row *tables[TABLES_MAX + 1];
    int operands = 0;
    list_tables(tables);
    int r = options_parse(argc, argv, tables, &first, false, &operands, err);
    if (r == 0 && operands < argc)
        r = error_set(err, -EINVAL, "mgpud takes no arguments: unexpected '%.60s'", argv[operands]);
    *ret_actions = first.actions;
    _cleanup_free_ char *config = xstrdup(scratch.config);
    settings_clear(&scratch);
    if (r == 0 && !first.actions.help && !first.actions.version)
        r = read_files(config, is_root, options, err);
    if (r < 0)
        return r;
    struct parsed second = { .options = options };
    r = partitions_complete(options, err);
    if (r < 0)
        return r;
    return options_parse_seen(argc, argv, tables, &second, note_option, false, &operands, err);
}

void settings_clear(struct controller_options *options)
{
    char *fields[] = { options->config, options->state_dir, options->run_dir, options->listen,
        options->nodes_listen, options->munge_socket, options->gpus, options->nvml_library,
        options->cuda_library, options->mps_control, options->rocm_library, options->device_dir,
        options->sysfs_root, options->user, options->node, options->log_dir, options->min_uid,
        options->pids_max, options->job_limits, options->program_dir, options->priority_group,
        options->cgroup, options->sendmail, options->cluster.etcd, options->cluster.address,
        options->cluster.ca, options->cluster.cert, options->cluster.key };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        free(fields[i]);
    for (size_t i = 0; i < options->n_notes; i++) {
        free(options->notes[i].key);
        free(options->notes[i].value);
        free(options->notes[i].origin);
    }
    for (size_t i = 0; i < options->n_files; i++)
        free(options->files[i]);
    free(options->notes);
    free(options->files);
    strings_clear(&options->warnings);
    free(options->accounts);
    partitions_clear(options);
    roles_free(options->roles);
    *options = (struct controller_options){ 0 };
}
