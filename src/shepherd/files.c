/* SPDX-License-Identifier: MIT */
/*
 * The stages are a table, and each is retried by itself: if all were repeated, a log created for the job
 * would be found to exist the second time. All stages share one time limit.
 *
 * Retries are needed because programs that submit a job receive its number first and create its directory
 * after that, and because a file server may not yet know a file that another machine has created.
 */
#include "shepherd/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/node/private_tmp.h"
#include "base/strings.h"
#include "job/start_failure.h"
#include "shepherd/exec.h"
#include "shepherd/output.h"

#define TRY_FIRST_MS 10
#define TRY_MAX_MS   200

/* The result of the stages so far. */
struct opening {
    const struct init *init;
    struct place *place;
    int log_fd;
    enum launch_step step; // of the stage that failed
    int64_t until_ms;      // boot clock
};

/* --- stages: 0, or a negative errno and the step --- */

static int fail(struct opening *opening, enum launch_step step, int error)
{
    opening->step = step;
    return -error;
}

static int enter_directory(struct opening *opening)
{
    const struct launch_spec *spec = opening->init->spec;
    if (chdir(spec->cwd) == 0)
        return 0;
    int error = errno;
    if (spec->cwd_fallback == NULL || chdir(spec->cwd_fallback) < 0)
        return fail(opening, STEP_CWD, error);
    opening->place->cwd_error = error;
    strings_set_env(opening->init->environment, "PWD", spec->cwd_fallback);
    return 0;
}

/* Uses the first of the log's names that is available. The name that is unique to the attempt is for the case
 * that the one before it is taken. */
static int open_default_log(struct opening *opening)
{
    const struct init *init = opening->init;
    int first = 0, before = 0;
    for (size_t i = 0; i < INIT_LOGS && init->logs[i] != NULL; i++) {
        bool is_own = i % 2 == 1;
        enum launch_step step;
        if (is_own && before != -EEXIST)
            continue;
        int fd = output_open(init->logs[i], is_own ? OUTPUT_OWN : OUTPUT_DEFAULT, &step);
        opening->place->log = i;
        if (fd >= 0)
            return fd;
        if (first == 0)
            opening->step = step;
        first = first == 0 ? fd : first;
        before = fd;
    }
    return first;
}

/* Catches paths that the check at submission could not resolve, such as links. */
static bool would_end_with_job(const struct init *init, int fd)
{
    return launch_ask(init->spec)->private_tmp && !init->spec->is_exec_step && private_tmp_has(fd);
}

static int open_log(struct opening *opening)
{
    const struct init *init = opening->init;
    bool is_moved = opening->place->cwd_error != 0;
    int fd = init->spec->is_output_default
                 ? open_default_log(opening)
                 : output_open(is_moved ? init->log_path_moved : init->logs[0], OUTPUT_NAMED, &opening->step);
    if (fd < 0)
        return fd;
    opening->log_fd = fd;
    return would_end_with_job(init, fd) ? fail(opening, STEP_LOG_PRIVATE, EINVAL) : 0;
}

static int empty(const struct init *init, int fd)
{
    struct stat st;
    if (!init->spec->is_truncated || init->spec->is_output_default || fstat(fd, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return 0;
    return ftruncate(fd, 0) < 0 ? -errno : 0;
}

static int empty_log(struct opening *opening)
{
    int r = empty(opening->init, opening->log_fd);
    return r < 0 ? fail(opening, STEP_LOG, -r) : 0;
}

/* Opens the file beside the log, whose name belongs to this attempt by now. */
static int open_error_log(struct opening *opening)
{
    _cleanup_free_ char *path = launch_error_log(opening->init->logs[opening->place->log]);
    int fd = output_open(path, OUTPUT_OWN, &opening->step);
    if (fd < 0)
        return fd;
    opening->place->error_fd = fd;
    return ftruncate(fd, 0) < 0 ? fail(opening, STEP_LOG, errno) : 0;
}

static int open_error(struct opening *opening)
{
    enum launch_step step;
    const struct launch_spec *spec = opening->init->spec;
    const char *path = spec->error;
    if (path == NULL && launch_has_error_log(spec))
        return open_error_log(opening);
    if (path == NULL)
        return 0;
    int fd = output_open(path, OUTPUT_NAMED, &step);
    int r = fd < 0 ? fd : empty(opening->init, fd);
    if (r < 0 && fd >= 0)
        (void)close(fd);
    if (r < 0)
        return fail(opening, STEP_ERROR, -r);
    opening->place->error_fd = fd;
    return would_end_with_job(opening->init, fd) ? fail(opening, STEP_ERROR_PRIVATE, EINVAL) : 0;
}

static int open_input(struct opening *opening)
{
    const char *path = opening->init->spec->input;
    if (path == NULL)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0)
        return fail(opening, STEP_INPUT, errno);
    opening->place->input_fd = fd;
    return 0;
}

/* The PATH after the setup is unknown before the setup has run, and a name to be searched for is not a file
 * that is about to be created. */
static int find_command(struct opening *opening)
{
    const struct init *init = opening->init;
    const struct launch_spec *spec = init->spec;
    bool is_path = strchr(init->command[0], '/') != NULL;
    if (spec->setup != NULL || (!is_path && !spec->is_gated))
        return 0;
    int error = exec_check(init->command[0], strings_get_env(&spec->env, "PATH"));
    return error != 0 ? fail(opening, STEP_EXEC, error) : 0;
}

static int (*const stages[])(struct opening *opening) = {
    enter_directory,
    open_log,
    empty_log,
    open_error,
    open_input,
    find_command,
};

/* --- what is missing --- */

static const char *path_of(const struct opening *opening)
{
    const struct init *init = opening->init;
    switch (opening->step) {
    case STEP_CWD: return init->spec->cwd;
    case STEP_LOG_DIRECTORY:
    case STEP_LOG: return init->logs[0];
    case STEP_ERROR: return init->spec->error;
    case STEP_INPUT: return init->spec->input;
    case STEP_EXEC: return init->command[0];
    default: return NULL;
    }
}

/* Reads the attributes of the file's directory, so that an NFS client discards its cached result that the
 * file is missing. */
static void refresh_parent(const char *path)
{
    char parent[PATH_MAX];
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof(parent))
        return;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
}

static bool may_pass(const struct opening *opening, int error)
{
    if (opening->step == STEP_EXEC && strchr(opening->init->command[0], '/') == NULL)
        return false;
    return path_of(opening) != NULL && start_error_may_pass(error);
}

/* False when the time is up. The shepherd's end of the channel is closed if the shepherd has ended. */
static bool wait_a_moment(const struct opening *opening, int *wait_ms)
{
    struct pollfd shepherd = { opening->init->channel_fd, 0, 0 };
    if (clock_boot_ms() >= opening->until_ms)
        return false;
    if (poll(&shepherd, 1, *wait_ms) > 0 && (shepherd.revents & (POLLHUP | POLLERR)) != 0)
        _exit(1);
    *wait_ms = *wait_ms * 2 < TRY_MAX_MS ? *wait_ms * 2 : TRY_MAX_MS;
    refresh_parent(path_of(opening));
    return true;
}

/* True for a path below a home directory that does not exist here, or that is only an empty mount point. */
static bool is_home_missing(const struct opening *opening)
{
    struct stat st;
    const char *path = path_of(opening), *home = strings_get_env(&opening->init->spec->env, "HOME");
    size_t length = home != NULL ? strlen(home) : 0;
    bool is_below = length > 1 && home[0] == '/' && path != NULL && strncmp(path, home, length) == 0 &&
                    (path[length] == '/' || path[length] == '\0');
    return is_below && (stat(home, &st) < 0 ? start_error_may_pass(errno) : st.st_uid != geteuid());
}

static int run_stage(struct opening *opening, int (*stage)(struct opening *opening))
{
    int wait_ms = TRY_FIRST_MS, r = stage(opening);
    while (r < 0 && may_pass(opening, -r) && wait_a_moment(opening, &wait_ms))
        r = stage(opening);
    if (r < 0 && may_pass(opening, -r) && opening->step != STEP_EXEC && is_home_missing(opening))
        opening->step = STEP_HOME;
    return r;
}

int files_open(const struct init *init, struct place *place, enum launch_step *ret_step)
{
    struct opening opening = {
        .init = init, .place = place, .log_fd = -1, .until_ms = clock_boot_ms() + init->spec->files_ms
    };
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        int r = run_stage(&opening, stages[i]);
        /* A missing command of a job on one node is detected when it is executed, and reported in its
         * output. */
        if (r < 0 && (stages[i] != find_command || init->spec->is_gated)) {
            *ret_step = opening.step;
            return r;
        }
    }
    return opening.log_fd;
}
