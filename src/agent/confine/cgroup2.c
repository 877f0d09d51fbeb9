/* SPDX-License-Identifier: MIT */
/*
 * Confinement by cgroup v2. Needs no controller, only membership and cgroup.kill, so it also works on hosts
 * where the v1 hierarchies have all controllers and v2 is mounted beside them. Limits are set by
 * agent/confine/limits.h.
 *
 *   <parent>/mgpu.<hash>/                      the instance (agent/confine/name.h); outlives agents
 *     shepherds/                               all shepherds: never killed with a job
 *     j42.1/                                   an attempt
 *       step0.0/                               one step's rank: only processes of the job
 *
 * The parent is chosen in agent/confine/place.h, or is one that a service manager keeps for jobs, so that the
 * agent's own cgroup may be removed before theirs. The attempt's directory has no processes of its own:
 * limits for all its steps are set there. Nothing is deleted recursively: rmdir(2) refuses a directory with a
 * process or a child, so a removed directory is known to have been empty.
 */
#include "agent/confine/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine/cgroup_clear.h"
#include "agent/confine/devices.h"
#include "agent/confine/limits.h"
#include "agent/confine/name.h"
#include "agent/confine/place.h"
#include "agent/confine/v2.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/record.h"

#define SHEPHERDS      "shepherds"
#define REMEMBERED     "cgroup" // file in the run dir
#define OWN_CGROUP     "/proc/self/cgroup"
#define CELL_NAME_SIZE 96

struct confine_state {
    char *parent;     // directory of the cgroup delegated for jobs, or NULL
    char *path;       // the instance's directory
    int fd;           // the same
    int shepherds_fd; // its SHEPHERDS
    struct limits *limits;
    struct device_filters filters;
    struct spool_id unlimited; // the directory of its attempt is new; job 0: none
};

/* --- finding our place --- */

static const char *find_mount(void)
{
    static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct statfs fs;
        if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
            return places[i];
    }
    return NULL;
}

/* True if the instance has cgroups of attempts: "jJOB.ATTEMPT". */
static bool has_attempts(const char *path)
{
    DIR *instance = opendir(path);
    bool found = false;
    for (const struct dirent *entry; instance != NULL && !found && (entry = readdir(instance)) != NULL;)
        found = entry->d_name[0] == 'j' && entry->d_name[1] >= '1' && entry->d_name[1] <= '9';
    if (instance != NULL)
        (void)closedir(instance);
    return found;
}

/* The place used by an earlier agent of this instance, while it has cgroups of jobs: this agent may have been
 * started in another cgroup. */
static char *remembered_path(const char *run_dir)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *name = xasprintf("%s/" REMEMBERED, run_dir);
    struct statfs fs;
    if (file_read(AT_FDCWD, name, PATH_MAX, &text) < 0)
        return NULL;
    char *path = buffer_text(&text);
    bool is_usable = statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC && has_attempts(path);
    return is_usable ? buffer_take(&text) : NULL;
}

static int remember_path(const char *run_dir, const char *path)
{
    _cleanup_free_ char *name = xasprintf("%s/" REMEMBERED, run_dir);
    return file_write(AT_FDCWD, name, path, strlen(path), false);
}

/* The instance's directory: below `parent`, or below the cgroup that place_choose() returns. */
static char *instance_path(const char *mount, const char *parent, const char *run_dir)
{
    struct place_facts facts = { 0 };
    char name[CONFINE_NAME_SIZE];
    place_facts_read(mount, &facts);
    _cleanup_free_ char *place = parent != NULL ? xstrdup(parent) : place_choose(&facts);
    place_facts_clear(&facts);
    if (place == NULL)
        return NULL;
    confine_name_read(run_dir, name);
    return xasprintf("%s%s/%s", mount, strcmp(place, "/") == 0 ? "" : place, name);
}

static int make_directory(int dirfd, const char *name)
{
    return mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_directory(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

/* Proves that launches will work: creates a process in that cgroup. */
static int try_clone(int cgroup_fd)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup_fd
    };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    return waitpid(pid, NULL, 0) < 0 ? -errno : 0;
}

/* The instance's directory is kept while it has cgroups of running jobs; otherwise it is removed, and the
 * next agent creates it again. */
static void cgroup2_close(struct confine_state *state)
{
    if (state == NULL)
        return;
    closep(&state->shepherds_fd);
    closep(&state->fd);
    if (state->path != NULL) {
        _cleanup_free_ char *shepherds = xasprintf("%s/" SHEPHERDS, state->path);
        (void)rmdir(shepherds);
        (void)rmdir(state->path);
    }
    limits_free(state->limits);
    device_filters_clear(&state->filters);
    free(state->parent);
    free(state->path);
    free(state);
}

static void closep_state(struct confine_state **state)
{
    cgroup2_close(*state);
}

/* On failure, `state` is unchanged. */
static int take_into_use(struct confine_state *state, struct error *err)
{
    _cleanup_close_ int fd = -1, shepherds_fd = -1;
    if (state->parent != NULL && access(state->parent, F_OK) < 0)
        return error_set_errno(err, -errno, "cannot use the cgroup %s", state->parent);
    if (state->parent != NULL)
        (void)cgroup_clear(state->parent); // needed only for controllers
    int r = make_directory(AT_FDCWD, state->path);
    if (r == 0)
        r = fd = open_directory(AT_FDCWD, state->path);
    if (r >= 0)
        r = make_directory(fd, SHEPHERDS);
    if (r == 0)
        r = shepherds_fd = open_directory(fd, SHEPHERDS);
    if (r < 0)
        return error_set_errno(err, r, "cannot create cgroup %s", state->path);
    if (faccessat(shepherds_fd, "cgroup.kill", W_OK, 0) < 0)
        return error_set_errno(
            err, -errno, "cgroup %s cannot be killed as a whole (needs Linux 5.14)", state->path);
    r = try_clone(shepherds_fd);
    if (r < 0)
        return error_set_errno(err, r, "cannot start a process in cgroup %s", state->path);
    closep(&state->shepherds_fd);
    closep(&state->fd);
    state->fd = take_fd(&fd);
    state->shepherds_fd = take_fd(&shepherds_fd);
    limits_enable_v2(state->limits, state->path);
    return 0;
}

static int cgroup2_open(
    const char *run_dir, const char *parent, struct confine_state **ret, struct error *err)
{
    const char *mount = find_mount();
    if (mount == NULL) {
        (void)error_set(err, -ENOSYS, "no cgroup v2 hierarchy is mounted at /sys/fs/cgroup");
        return error_hint(
            err, "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 at /sys/fs/cgroup/unified");
    }
    _cleanup_(closep_state) struct confine_state *state = xcalloc(1, sizeof(*state));
    state->fd = state->shepherds_fd = -1;
    state->parent = parent == NULL ? NULL : xasprintf("%s%s", mount, parent);
    state->path = remembered_path(run_dir);
    if (state->path == NULL)
        state->path = instance_path(mount, parent, run_dir);
    if (state->path == NULL)
        return error_set(err, -ENOSYS, "%s contains no cgroup v2 entry", OWN_CGROUP);
    state->limits = limits_new(run_dir, parent);
    int r = take_into_use(state, err);
    if (r < 0) {
        (void)error_hint(err, "%s",
            parent != NULL ? "start its unit (systemctl start mgpu-jobs), then restart mgpud"
                           : v2_delegation());
        return r;
    }
    r = remember_path(run_dir, state->path);
    if (r < 0)
        return error_set_errno(err, r, "cannot write %s/" REMEMBERED, run_dir);
    *ret = take_ptr(state);
    return 0;
}

/* --- cgroups of steps --- */

static void attempt_name(const struct spool_id *id, char name[CELL_NAME_SIZE])
{
    (void)snprintf(name, CELL_NAME_SIZE, "j%" PRIu64 ".%u", id->job, id->attempt);
}

static void cell_name(const struct spool_id *id, char name[CELL_NAME_SIZE])
{
    (void)snprintf(
        name, CELL_NAME_SIZE, "j%" PRIu64 ".%u/step%u.%u", id->job, id->attempt, id->step, id->rank);
}

static int make_cell(
    struct confine_state *state, const struct spool_id *id, const char *attempt, const char *cell)
{
    if (mkdirat(state->fd, attempt, 0755) == 0)
        state->unlimited = *id;
    else if (errno != EEXIST)
        return -errno;
    return make_directory(state->fd, cell);
}

static int cgroup2_prepare(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
    int *ret_shepherd_fd, struct error *err)
{
    char attempt[CELL_NAME_SIZE], cell[CELL_NAME_SIZE];
    attempt_name(id, attempt);
    cell_name(id, cell);
    int r = make_cell(state, id, attempt, cell);
    /* A service manager that recreated the parent removed the instance's directory. */
    if (r == -ENOENT) {
        r = take_into_use(state, err);
        if (r < 0)
            return r;
        r = make_cell(state, id, attempt, cell);
    }
    if (r < 0)
        return error_set_errno(err, r, "cannot create cgroup %s/%s", state->path, cell);
    *ret_job_cgroup = xasprintf("%s/%s", state->path, cell);
    *ret_shepherd_fd = state->shepherds_fd;
    return 0;
}

static int cgroup2_limit(
    struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    char name[CELL_NAME_SIZE];
    attempt_name(id, name);
    _cleanup_free_ char *attempt = xasprintf("%s/%s", state->path, name);
    int r = limits_apply(state->limits, id, attempt, spec, err);
    if (r == 0)
        state->unlimited = (struct spool_id){ 0 };
    return r;
}

static int cgroup2_limit_step(
    struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    char attempt_dir[CELL_NAME_SIZE], cell_dir[CELL_NAME_SIZE];
    attempt_name(id, attempt_dir);
    cell_name(id, cell_dir);
    int r = make_directory(state->fd, cell_dir);
    if (r < 0)
        return error_set_errno(err, r, "cannot create cgroup %s/%s", state->path, cell_dir);
    _cleanup_free_ char *attempt = xasprintf("%s/%s", state->path, attempt_dir);
    _cleanup_free_ char *cell = xasprintf("%s/%s", state->path, cell_dir);
    return limits_apply_step(state->limits, id, attempt, cell, spec, err);
}

static bool cgroup2_is_limited(const struct confine_state *state, const struct spool_id *id)
{
    return state->unlimited.job != id->job || state->unlimited.attempt != id->attempt;
}

static const struct limits *cgroup2_limits(const struct confine_state *state)
{
    return state->limits;
}

static int cgroup2_can_guard(struct confine_state *state, struct error *err)
{
    return confine_devices_probe(state->fd, err);
}

static int cgroup2_guard(
    struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec, struct error *err)
{
    char attempt[CELL_NAME_SIZE];
    attempt_name(id, attempt);
    return confine_devices_guard(&state->filters, state->fd, attempt, spec, err);
}

static int read_populated(int dirfd, const char *cell)
{
    char name[CELL_NAME_SIZE + 32], text[128];
    (void)snprintf(name, sizeof(name), "%s/cgroup.events", cell);
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return errno == ENOENT || errno == ENODEV ? 0 : -errno;
    text[n] = '\0';
    return strstr(text, "populated 1") != NULL;
}

static int cgroup2_is_populated(struct confine_state *state, const struct spool_id *id)
{
    char cell[CELL_NAME_SIZE];
    cell_name(id, cell);
    return read_populated(state->fd, cell);
}

static int cgroup2_kill(struct confine_state *state, const struct spool_id *id)
{
    char cell[CELL_NAME_SIZE], name[CELL_NAME_SIZE + 32];
    cell_name(id, cell);
    (void)snprintf(name, sizeof(name), "%s/cgroup.kill", cell);
    _cleanup_close_ int fd = openat(state->fd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return write_all(fd, "1", 1);
}

static int cgroup2_remove(struct confine_state *state, const struct spool_id *id)
{
    char cell[CELL_NAME_SIZE], attempt[CELL_NAME_SIZE];
    cell_name(id, cell);
    attempt_name(id, attempt);
    if (unlinkat(state->fd, cell, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    if (id->step != 0)
        limits_remove_step(state->limits, id);
    /* The attempt may have another step in it. */
    if (unlinkat(state->fd, attempt, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return errno == EBUSY || errno == ENOTEMPTY ? 0 : -errno;
    return limits_remove(state->limits, id);
}

/* --- what others left --- */

/* The names of cgroups contain the same numbers as those of spool directories. */
static bool parse_cell(const char *attempt, const char *step, struct spool_id *ret)
{
    char name[SPOOL_NAME_SIZE];
    if (attempt[0] != 'j' || strncmp(step, "step", 4) != 0)
        return false;
    int n = snprintf(name, sizeof(name), "%s.%s", attempt + 1, step + 4);
    return n > 0 && n < (int)sizeof(name) && spool_parse_name(name, ret);
}

static int list_steps(struct confine_state *state, const char *attempt, confine_visit_fn *visit, void *arg)
{
    _cleanup_close_ int fd = open_directory(state->fd, attempt);
    DIR *steps = fd < 0 ? NULL : fdopendir(fd);
    if (steps == NULL)
        return -errno;
    (void)take_fd(&fd);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(steps)) != NULL;) {
        struct spool_id id;
        char cell[CELL_NAME_SIZE];
        if (!parse_cell(attempt, entry->d_name, &id))
            continue;
        cell_name(&id, cell);
        count++;
        visit(arg, &id, read_populated(state->fd, cell) != 0);
    }
    (void)closedir(steps);
    /* An agent died between the two calls of mkdir or rmdir. */
    if (count == 0)
        (void)unlinkat(state->fd, attempt, AT_REMOVEDIR);
    return 0;
}

static int cgroup2_list(struct confine_state *state, confine_visit_fn *visit, void *arg)
{
    _cleanup_close_ int fd = open_directory(state->fd, ".");
    if (fd < 0)
        return fd;
    DIR *attempts = fdopendir(fd);
    if (attempts == NULL)
        return -errno;
    (void)take_fd(&fd);
    for (struct dirent *entry; (entry = readdir(attempts)) != NULL;) {
        struct spool_id id;
        if (parse_cell(entry->d_name, "step0.0", &id))
            (void)list_steps(state, entry->d_name, visit, arg);
    }
    (void)closedir(attempts);
    limits_list(state->limits, state->path, visit, arg);
    return 0;
}

const struct confine confine_cgroup2 = {
    .name = "cgroup2",
    .open = cgroup2_open,
    .prepare = cgroup2_prepare,
    .limit = cgroup2_limit,
    .limit_step = cgroup2_limit_step,
    .is_limited = cgroup2_is_limited,
    .limits = cgroup2_limits,
    .can_guard = cgroup2_can_guard,
    .guard = cgroup2_guard,
    .is_populated = cgroup2_is_populated,
    .kill = cgroup2_kill,
    .remove = cgroup2_remove,
    .list = cgroup2_list,
    .close = cgroup2_close,
};
