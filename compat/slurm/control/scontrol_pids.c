/* SPDX-License-Identifier: MIT */
/*
 * Processes of a job have its variables. A process is the first one of a task if its parent does not belong
 * to the same task; other processes of the task have no number in the list.
 */
#include "compat/slurm/control/scontrol_pids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"

#define ENVIRON_MAX (1U << 20)
#define VALUE_MAX   32
#define BATCH       "batch"

struct process {
    int64_t pid, parent;
    char job[VALUE_MAX], step[VALUE_MAX], local[VALUE_MAX], global[VALUE_MAX]; // "" if it has none
};

/* A complete file of /proc, NUL-terminated; NULL if it may not be read. The caller frees it. */
static char *read_whole(const char *path, size_t *ret_length)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *text = xmalloc(ENVIRON_MAX + 1);
    size_t length = 0;
    ssize_t n = 0;
    if (fd < 0)
        return NULL;
    while (length < ENVIRON_MAX && (n = read(fd, text + length, ENVIRON_MAX - length)) > 0)
        length += (size_t)n;
    if (n < 0)
        return NULL;
    text[length] = '\0';
    *ret_length = length;
    return take_ptr(text);
}

static void take_variable(struct process *process, const char *entry)
{
    const struct {
        const char *name;
        char *value;
    } variables[] = { { "MGPU_JOB_ID=", process->job }, { "SLURM_STEP_ID=", process->step },
        { "SLURM_LOCALID=", process->local }, { "SLURM_PROCID=", process->global } };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        size_t length = strlen(variables[i].name);
        if (strncmp(entry, variables[i].name, length) == 0)
            (void)snprintf(variables[i].value, VALUE_MAX, "%.*s", VALUE_MAX - 1, entry + length);
    }
}

/* False for a process that is in no job, or belongs to another user. */
static bool read_process(int64_t pid, struct process *ret)
{
    _cleanup_free_ char *path = xasprintf("/proc/%" PRId64 "/environ", pid);
    _cleanup_free_ char *stat_path = xasprintf("/proc/%" PRId64 "/stat", pid);
    size_t length = 0, stat_length = 0;
    *ret = (struct process){ .pid = pid };
    _cleanup_free_ char *environment = read_whole(path, &length);
    _cleanup_free_ char *stat = read_whole(stat_path, &stat_length);
    const char *name_end = stat != NULL ? strrchr(stat, ')') : NULL;
    if (environment == NULL || name_end == NULL || strlen(name_end) < 4)
        return false;
    ret->parent = strtoll(name_end + 4, NULL, 10);
    for (const char *entry = environment; entry < environment + length; entry += strlen(entry) + 1)
        take_variable(ret, entry);
    if (ret->step[0] == '\0')
        (void)snprintf(ret->step, sizeof(ret->step), BATCH);
    return ret->job[0] != '\0';
}

static bool is_same_task(const struct process *process, const struct process *parent)
{
    return strcmp(process->job, parent->job) == 0 && strcmp(process->step, parent->step) == 0 &&
           strcmp(process->global, parent->global) == 0;
}

static void print_process(const struct process *process)
{
    struct process parent;
    bool is_task = !read_process(process->parent, &parent) || !is_same_task(process, &parent);
    bool is_batch = strcmp(process->step, BATCH) == 0;
    (void)printf("%-8" PRId64 " %-8s %-8s %-7s %-8s\n", process->pid, process->job, process->step,
        !is_task   ? "-"
        : is_batch ? "0"
                   : process->local,
        !is_task   ? "-"
        : is_batch ? "0"
                   : process->global);
}

/* "12" and "12.0"; NULL: all. */
static bool is_wanted(const struct process *process, const char *name)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;
    size_t length = name == NULL ? 0 : dot != NULL ? (size_t)(dot - name) : strlen(name);
    return name == NULL || (strlen(process->job) == length && strncmp(process->job, name, length) == 0 &&
                               (dot == NULL || strcmp(process->step, dot + 1) == 0));
}

int scontrol_list_pids(int argc, char **argv, struct error *err)
{
    const char *name = argc > 0 ? argv[0] : NULL, *node = argc > 1 ? argv[1] : "(null)";
    DIR *folder = opendir("/proc");
    size_t shown = 0;
    if (folder == NULL)
        return error_set_errno(err, -errno, "cannot list /proc");
    (void)printf("%-8s %-8s %-8s %-7s %-8s\n", "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID");
    for (struct dirent *entry = NULL; (entry = readdir(folder)) != NULL;) {
        struct process process;
        int64_t pid = 0;
        if (parse_integer(entry->d_name, "pid", 1, INT32_MAX, &pid, NULL) < 0 ||
            !read_process(pid, &process) || !is_wanted(&process, name))
            continue;
        shown++;
        print_process(&process);
    }
    (void)closedir(folder);
    if (shown > 0)
        return 0;
    (void)fflush(stdout);
    if (name == NULL)
        (void)fprintf(stderr, "No job steps exist on this node.\n");
    else
        (void)fprintf(stderr, "%s=%s does not exist on node %s.\n",
            strchr(name, '.') != NULL ? "StepId" : "JobId", name, node);
    return 1;
}

int scontrol_pid_info(struct client *client, const char *text, struct error *err)
{
    struct process process;
    int64_t pid = 0;
    _cleanup_json_ json_t *job = NULL;
    int r = parse_integer(text, "pidinfo", 1, INT32_MAX, &pid, err);
    if (r < 0)
        return r;
    if (!read_process(pid, &process)) {
        (void)fprintf(stderr, "Failed to locate job for requested pid\n");
        return 1;
    }
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", process.job);
    r = client_get(client, path, &job, err);
    if (r < 0)
        return r;
    const char *started = field_text(job, "started_at");
    double limit_s = field_number(job, "time_limit", 0);
    /* mgpud may not have recorded its start yet. */
    int64_t started_ms = started != NULL ? time_parse(started) : clock_wall_ms();
    int64_t end_ms = limit_s > 0 ? started_ms + (int64_t)(limit_s * 1000) : 0;
    _cleanup_free_ char *when = slurm_date_text(end_ms);
    int64_t left = end_ms != 0 ? (end_ms - clock_wall_ms()) / 1000 : INT32_MAX;
    (void)printf("Slurm JobId=%s ends at %s\nJob remaining time is %" PRId64 " seconds\n", process.job, when,
        left > 0 ? left : 0);
    return 0;
}
