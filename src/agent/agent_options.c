/* SPDX-License-Identifier: MIT */
#include "agent/agent_options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/pids_max.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/spec.h"

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

/* A keeper starts its workers with its own arguments and this one after them. */
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

static int set_text(char **text, const char *value)
{
    free(*text);
    *text = xstrdup(value);
    return 0;
}

static int set_absolute(char **path, const char *value, const char *what, struct error *err)
{
    char here[PATH_MAX];
    if (*value == '\0')
        return error_set(err, -EINVAL, "%s is empty", what);
    if (*value == '/')
        return set_text(path, value);
    if (getcwd(here, sizeof(here)) == NULL)
        return error_set_errno(err, -errno, "cannot tell the working directory for %s", what);
    free(*path);
    *path = xasprintf("%s/%s", here, value);
    return 0;
}

static int set_run_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->run_dir, value, "--run-dir", err);
}

static int set_state_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->state_dir, value, "--state-dir", err);
}

static int set_log_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    if (strcmp(value, "home") == 0)
        return set_text(&options->log_dir, value);
    return set_absolute(&options->log_dir, value, "--log-dir", err);
}

static int set_cgroup(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    if (*value != '/')
        return error_set(err, -EINVAL, "--cgroup: '%.60s' does not begin with '/'", value);
    return set_text(&options->cgroup, value);
}

static int set_shepherd(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->shepherd, value, "--shepherd", err);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return gpu_spec_parse(value, &options->gpus, err);
}

static int set_nvml_library(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->nvml_library, value, "--nvml-library", err);
}

static int set_rocm_library(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->rocm_library, value, "--rocm-library", err);
}

static int set_device_dir(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->device_dir, value, "--device-dir", err);
}

static int set_sysfs_root(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->sysfs_root, value, "--sysfs-root", err);
}

static int set_sendmail(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    return set_absolute(&options->sendmail, value, "--sendmail", err);
}

static int set_node(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    size_t length = strlen(value);
    if (length == 0 || length > SPEC_NAME_MAX)
        return error_set(err, -EINVAL, "a node's name has 1 to %u bytes, not %zu", SPEC_NAME_MAX, length);
    return set_text(&options->node, value);
}

static int set_pids_max(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    int64_t number;
    int r = parse_integer(value, "--pids-max", 0, PIDS_MAX, &number, err);
    if (r < 0)
        return r;
    options->pids_max = (uint32_t)number;
    return 0;
}

static int set_allow_root_jobs(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_root_job_allowed = true;
    return 0;
}

static int set_verbose(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_verbose = true;
    return 0;
}

static int set_help(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_help = true;
    return 0;
}

static int set_version(void *target, const char *value, struct error *err)
{
    struct agent_options *options = target;
    options->is_version = true;
    return 0;
}

const struct option_row agent_option_rows[] = {
    { 0, "link-fd", "N", "serve the controller on the connected socket N", set_link_fd },
    { 0, "keep", "N", "start agents and restart them, passing their links over the socket N", set_keep_fd },
    { 0, "run-dir", "DIR", "sockets and spool (default: /run/mgpu)", set_run_dir },
    { 0, "state-dir", "DIR", "what outlives a reboot (default: /var/lib/mgpu)", set_state_dir },
    { 0, "gpus", "SPEC", "auto, nvml, amd, none, or sim:COUNTxMEMORY[:MODEL] (default: auto)", set_gpus },
    { 0, "nvml-library", "PATH", "the library of the NVIDIA driver (default: libnvidia-ml.so.1)",
        set_nvml_library },
    { 0, "rocm-library", "PATH", "ROCm's library for AMD GPUs (default: librocm_smi64.so)",
        set_rocm_library },
    { 0, "device-dir", "DIR", "where the nodes of GPUs are (default: /dev; none for simulated ones)",
        set_device_dir },
    { 0, "sysfs-root", "DIR", "where AMD GPUs are looked for, for tests (default: /sys)", set_sysfs_root },
    { 0, "sendmail", "PATH", "the program that sends mail (default: /usr/sbin/sendmail)", set_sendmail },
    { 0, "node", "NAME", "name of this node (default: its host name)", set_node },
    { 0, "log-dir", "DIR", "where logs of jobs go: home, or a directory with one for each user",
        set_log_dir },
    { 0, "cgroup", "GROUP", "cgroup to make those of jobs in (default: the agent's own)", set_cgroup },
    { 0, "pids-max", "N", "processes and threads that one job may have; 0: any number", set_pids_max },
    { 0, "shepherd", "PATH", "the mgpu-shepherd to start (default: beside this program)", set_shepherd },
    { 0, "allow-root-jobs", NULL, "run jobs of root, which are refused otherwise", set_allow_root_jobs },
    { 'v', "verbose", NULL, "log what is decided about each attempt", set_verbose },
    { 'h', "help", NULL, "show this help", set_help },
    { 0, "version", NULL, "show the version", set_version },
    { 0 },
};

/* The shepherd beside this program, wherever both were installed. */
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

static void set_defaults(struct agent_options *options)
{
    char name[HOST_NAME_MAX + 1] = "localhost";
    (void)gethostname(name, sizeof(name) - 1);
    if (options->node == NULL)
        options->node = xstrdup(name);
    if (options->run_dir == NULL)
        options->run_dir = xstrdup("/run/mgpu");
    if (options->state_dir == NULL)
        options->state_dir = xstrdup("/var/lib/mgpu");
    if (options->sendmail == NULL)
        options->sendmail = xstrdup("/usr/sbin/sendmail");
    if (options->shepherd == NULL)
        options->shepherd = find_shepherd();
    options->gpus.nvml_library = options->nvml_library;
    options->gpus.rocm_library = options->rocm_library;
    options->gpus.sysfs_root = options->sysfs_root;
}

int agent_options_parse(struct agent_options *options, int argc, char **argv, struct error *err)
{
    const struct option_row *const tables[] = { agent_option_rows, NULL };
    int operands;
    *options = (struct agent_options){ .link_fd = -1, .keep_fd = -1, .pids_max = pids_max_default() };
    int r = options_parse(argc, argv, tables, options, false, &operands, err);
    if (r < 0)
        return r;
    if (operands < argc)
        return error_set(err, -EINVAL, "mgpu-agent takes no argument such as \"%.64s\"", argv[operands]);
    set_defaults(options);
    if (options->is_help || options->is_version)
        return 0;
    if (options->link_fd < 0 && options->keep_fd < 0) {
        (void)error_set(err, -EINVAL, "mgpu-agent is started by mgpud, with --keep or --link-fd");
        return error_hint(err, "start mgpud; it starts the agent of this machine");
    }
    r = check_fd(options->keep_fd, "--keep", err);
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
    free(options->rocm_library);
    free(options->device_dir);
    free(options->sysfs_root);
    free(options->cgroup);
    free(options->sendmail);
    *options = (struct agent_options){ .link_fd = -1, .keep_fd = -1 };
}
