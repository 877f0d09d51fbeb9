/* SPDX-License-Identifier: MIT */
#include "agent/host/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/pids_max.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/system_mgpud.h"
#include "base/uid_min.h"
#include "wire/address.h"
#include "wire/node_name.h"
#include "wire/resource_limits.h"

#define SHEPHERD_NAME "mgpu-shepherd"

static int set_fd(const char *value, const char *what, int *ret, struct error *err)
{
    int64_t fd;
    int r = parse_integer(value, what, 0, INT_MAX, &fd, err);
    if (r < 0)
        return r;
    *ret = (int)fd;
    return 0;
}

static int check_fd(int fd, const char *what, struct error *err)
{
    if (fd < 0 || fcntl(fd, F_GETFD) >= 0)
        return 0;
    return error_set(err, -EBADF, "%s %d is not an open descriptor", what, fd);
}

/* A keeper starts its workers with its own arguments followed by this one. */
static int set_link_fd(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->keep_fd = -1;
    return set_fd(value, "--link-fd", &options->link_fd, err);
}

static int set_keep_fd(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_fd(value, "--keep", &options->keep_fd, err);
}

static int set_uplink_fd(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_fd(value, "--uplink-fd", &options->uplink_fd, err);
}

static int set_text(char **text, const char *value)
{
    free(*text);
    *text = xstrdup(value);
    return 0;
}

static int set_state_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_state_dir_given = true;
    return option_path("--state-dir", value, &options->state_dir, err);
}

static int set_log_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    if (strcmp(value, "home") == 0)
        return set_text(&options->log_dir, value);
    return option_path("--log-dir", value, &options->log_dir, err);
}

static int set_cgroup(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    if (*value != '/')
        return error_set(err, -EINVAL, "--cgroup: '%.60s' does not begin with '/'", value);
    return set_text(&options->cgroup, value);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return gpu_spec_parse(value, &options->gpus, err);
}

static int set_imex(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_imex_on = strcmp(value, "on") == 0;
    return options->is_imex_on || strcmp(value, "off") == 0
               ? 0
               : error_set(err, -EINVAL, "--imex-channels: '%.40s' is neither on nor off", value);
}

static int set_node(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    int r = node_name_check(value, err);
    if (r < 0)
        return r;
    options->is_node_given = true;
    return set_text(&options->node, value);
}

static int set_join_file(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    if (*value == '\0')
        return error_set(err, -EINVAL, "--join-file is empty");
    return set_text(&options->join_file, value);
}

static int set_controller(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    struct address unused[ADDRESSES_MAX];
    size_t count = 0;
    int r = address_parse_list(value, NODES_PORT, unused, &count, err);
    address_clear_list(unused, count);
    return r < 0 ? error_wrap(err, "--controller") : set_text(&options->controller, value);
}

static int set_pids_max(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    int64_t number = pids_max_default();
    int r = strcmp(value, "auto") == 0 ? 0 : parse_integer(value, "--pids-max", 0, PIDS_MAX, &number, err);
    if (r < 0)
        return r;
    options->pids_max = (uint32_t)number;
    return 0;
}

static int set_job_limits(void *target, const char *value, struct error *err)
{
    int r = value[0] != '\0' ? resource_limits_parse(value, "--job-limits", NULL, err) : 0;
    return r < 0 ? r : set_text(&((struct agent_options *)target)->job_limits, value);
}

static int set_min_uid(void *target, const char *value, struct error *err)
{
    return uid_min_parse(value, "--min-uid", &((struct agent_options *)target)->min_uid, err);
}

static int set_user_check(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_number_enough = strcmp(value, "number") == 0;
    if (options->is_number_enough || strcmp(value, "name") == 0)
        return 0;
    (void)error_set(err, -EINVAL, "--user-check: invalid value '%.60s'", value);
    return error_hint(err, "use name or number");
}

const struct option_row agent_option_rows[] = {
    { 0, "join", "HOST:PORT#TOKEN", "join the cluster there first, with the output of `mgpu node token`",
        OPTION_VALUE(copy, struct agent_options, join) },
    { 0, "join-file", "FILE", "the same from a file, or - for standard input", set_join_file },
    { 0, "controller", "HOST[:PORT],...",
        "addresses of the controllers (default: as when this machine joined)", set_controller },
    { 0, "detach", NULL, "return once it has joined, and leave it running",
        OPTION_VALUE(flag, struct agent_options, is_detached) },
    { 0, "join-only", NULL, "exit once it has joined, before starting mgpu-agent.service",
        OPTION_VALUE(flag, struct agent_options, is_join_only) },
    { 0, "uplink-fd", "N", "serve the controller on connections that come over the socket N", set_uplink_fd },
    { 0, "link-fd", "N", "serve the controller on the connected socket N", set_link_fd },
    { 0, "keep", "N", "start agents and restart them, passing their links over the socket N", set_keep_fd },
    { 0, "run-dir", "DIR", "sockets and spool (default: that of mgpud)",
        OPTION_VALUE(path, struct agent_options, run_dir) },
    { 0, "state-dir", "DIR", "persistent data (default: that of mgpud)", set_state_dir },
    { 0, "gpus", "SPEC", "auto, " GPU_VENDOR_WORDS "none, or sim:COUNTxMEMORY[:MODEL]", set_gpus, "auto" },
    { 0, "nvml-library", "auto|PATH", "the library of the NVIDIA driver; auto: libnvidia-ml.so.1",
        OPTION_VALUE(library, struct agent_options, nvml_library), .preset = "auto" },
    { 0, "cuda-library", "auto|PATH", "CUDA's driver library, which parks jobs; auto: libcuda.so.1",
        OPTION_VALUE(library, struct agent_options, cuda_library), .preset = "auto" },
    { 0, "rocm-library", "auto|PATH", "ROCm's library for AMD GPUs; auto: librocm_smi64.so, any version",
        OPTION_VALUE(library, struct agent_options, rocm_library), .preset = "auto" },
    { 0, "mps-control", "auto|PATH", "the program nvidia-cuda-mps-control; auto: where it usually is",
        OPTION_VALUE(library, struct agent_options, mps_control), .preset = "auto" },
    { 0, "device-dir", "DIR", "directory of GPU device nodes (default: /dev; none for simulated ones)",
        OPTION_VALUE(path, struct agent_options, device_dir) },
    { 0, "imex-channels", "on|off", "allow jobs with NVIDIA GPUs the IMEX channels (NVLink between nodes)",
        set_imex, "off" },
    { 0, "gpu-scrub", "never|TIME",
        "overwrite the memory of a GPU within this time before another user gets it",
        OPTION_VALUE(duration, struct agent_options, gpu_scrub_ms), OPTION_ZERO("never"), .preset = "never" },
    { 0, "gpu-test-every", "never|TIME", "test GPUs that have been idle, each at this interval",
        OPTION_VALUE(duration, struct agent_options, gpu_test_every_ms), OPTION_ZERO("never"),
        .preset = "never" },
    { 0, "sysfs-root", "DIR", "directory to look for AMD GPUs in, for tests",
        OPTION_VALUE(path, struct agent_options, sysfs_root), .preset = "/sys" },
    { 0, "sendmail", "PATH", "the program that sends mail",
        OPTION_VALUE(path, struct agent_options, sendmail), .preset = "/usr/sbin/sendmail" },
    { 0, "node", "NAME", "name of this node (default: its host name)", set_node },
    { 0, "log-dir", "DIR", "location of job output: home, or a directory", set_log_dir },
    { 0, "cgroup", "GROUP", "cgroup for the cgroups of jobs (default: the agent's own)", set_cgroup },
    { 0, "pids-max", "auto|N", "maximum processes and threads of a job; 0: unlimited; auto: at most 32768",
        set_pids_max, "auto" },
    { 0, "job-limits", "LIST", "limits of jobs: memlock=unlimited,nofile=4096:65536,stack=64M,core=0",
        set_job_limits },
    { 0, "shepherd", "PATH", "the mgpu-shepherd to start (default: beside this program)",
        OPTION_VALUE(path, struct agent_options, shepherd) },
    { 0, "allow-root-jobs", NULL, "allow jobs of root, which are otherwise refused",
        OPTION_VALUE(flag, struct agent_options, is_root_job_allowed) },
    { 0, "adopt-any-user", NULL, "without root, allocate GPUs to processes of other users",
        OPTION_VALUE(flag, struct agent_options, adopts_any_user) },
    { 0, "min-uid", "auto|N", "lowest user id that jobs may have; auto: UID_MIN of login.defs", set_min_uid,
        "auto" },
    { 0, "no-new-privileges", NULL,
        "prevent jobs from gaining privileges: sudo, ping and rootless podman fail",
        OPTION_VALUE(flag, struct agent_options, has_no_new_privs) },
    { 0, "user-check", "name|number", "how to match users with those of mgpud", set_user_check, "name" },
    { 'v', "verbose", NULL, "log all decisions about attempts",
        OPTION_VALUE(flag, struct agent_options, is_verbose) },
    { 'h', "help", NULL, "show this help", OPTION_VALUE(flag, struct agent_options, is_help) },
    { 0, "version", NULL, "show the version", OPTION_VALUE(flag, struct agent_options, is_version) },
    { 0 },
};

/* The shepherd in the directory of this program, wherever both were installed. */
static char *find_shepherd(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return xstrdup(SHEPHERD_NAME);
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    return xasprintf("%.*s/%s", (int)(slash - self), self, SHEPHERD_NAME);
}

static char *user_directory(const char *variable, const char *below)
{
    const char *base = getenv(variable), *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu", base);
    return xasprintf("%s/%s", home != NULL && home[0] == '/' ? home : "", below);
}

/* The same as mgpud's: a machine either has its own mgpud or has joined another. */
static void set_default_directories(struct agent_options *options)
{
    bool is_root = geteuid() == 0;
    if (options->run_dir == NULL)
        options->run_dir =
            is_root ? xstrdup(SYSTEM_RUN_DIR) : user_directory("XDG_RUNTIME_DIR", ".local/state/mgpu/run");
    if (options->state_dir == NULL)
        options->state_dir =
            is_root ? xstrdup(SYSTEM_STATE_DIR) : user_directory("XDG_STATE_HOME", ".local/state/mgpu");
}

static void set_defaults(struct agent_options *options)
{
    char name[HOST_NAME_MAX + 1] = "localhost";
    (void)gethostname(name, sizeof(name) - 1);
    if (options->node == NULL)
        options->node = xstrdup(name);
    set_default_directories(options);
    if (options->shepherd == NULL)
        options->shepherd = find_shepherd();
    options->gpus.nvml_library = options->nvml_library;
    options->gpus.rocm_library = options->rocm_library;
    options->gpus.sysfs_root = options->sysfs_root;
}

/* Notes options that are passed on to the worker of a joined machine; the others are determined or handled
 * before. */
static void note_option(void *target, const struct option_row *row, const char *value)
{
    static const char *const own[] = { "join", "join-file", "controller", "detach", "join-only", "node",
        "run-dir", "state-dir", NULL };
    struct agent_options *options = target;
    for (size_t i = 0; own[i] != NULL; i++)
        if (strcmp(row->name, own[i]) == 0)
            return;
    strings_take(&options->passed,
        value != NULL ? xasprintf("--%s=%s", row->name, value) : xasprintf("--%s", row->name));
}

static void hide_token(const struct agent_options *options, int argc, char **argv)
{
    for (int i = 1; options->join != NULL && i < argc; i++) {
        char *token = strchr(argv[i], '#');
        if (token != NULL && strstr(argv[i], options->join) != NULL)
            memset(token + 1, 'x', strlen(token + 1));
    }
}

static int check_join(const struct agent_options *options, struct error *err)
{
    bool has_join = options->join != NULL || options->join_file != NULL;
    if (options->join != NULL && options->join_file != NULL)
        return error_set(err, -EINVAL, "--join and --join-file cannot be combined");
    if (has_join && options->controller != NULL)
        return error_set(err, -EINVAL,
            "--join already contains the address; --controller is for a machine that has joined");
    if (options->is_join_only && (!has_join || options->is_detached))
        return error_set(
            err, -EINVAL, "--join-only requires --join or --join-file, and cannot be combined with --detach");
    if (!agent_options_is_node(options) && (has_join || options->is_detached))
        return error_set(
            err, -EINVAL, "--join and --detach cannot be combined with --keep, --link-fd or --uplink-fd");
    return 0;
}

bool agent_options_is_node(const struct agent_options *options)
{
    return options->link_fd < 0 && options->keep_fd < 0 && options->uplink_fd < 0;
}

int agent_options_parse(struct agent_options *options, int argc, char **argv, struct error *err)
{
    const struct option_row *const tables[] = { agent_option_rows, NULL };
    int operands;
    *options = (struct agent_options){ .link_fd = -1, .keep_fd = -1, .uplink_fd = -1 };
    int r = options_preset(tables, options, err);
    if (r == 0)
        r = options_parse_seen(argc, argv, tables, options, note_option, false, &operands, err);
    hide_token(options, argc, argv);
    if (r < 0)
        return r;
    if (operands < argc)
        return error_set(err, -EINVAL, "mgpu-agent takes no arguments: unexpected \"%.64s\"", argv[operands]);
    set_defaults(options);
    if (options->is_help || options->is_version)
        return 0;
    r = check_join(options, err);
    if (r == 0)
        r = check_fd(options->keep_fd, "--keep", err);
    if (r == 0)
        r = check_fd(options->uplink_fd, "--uplink-fd", err);
    return r < 0 ? r : check_fd(options->link_fd, "--link-fd", err);
}

void agent_options_clear(struct agent_options *options)
{
    free(options->run_dir);
    free(options->state_dir);
    free(options->node);
    free(options->shepherd);
    free(options->log_dir);
    free(options->nvml_library);
    free(options->cuda_library);
    free(options->mps_control);
    free(options->rocm_library);
    free(options->device_dir);
    free(options->sysfs_root);
    free(options->cgroup);
    free(options->job_limits);
    free(options->sendmail);
    if (options->join != NULL)
        OPENSSL_cleanse(options->join, strlen(options->join));
    free(options->join);
    free(options->join_file);
    free(options->controller);
    strings_clear(&options->passed);
    *options = (struct agent_options){ .link_fd = -1, .keep_fd = -1, .uplink_fd = -1 };
}
