/* SPDX-License-Identifier: MIT */
#include "lab/kit/figures.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "lab/kit/instance.h"

#define FILE_MAX ((size_t)64 << 10)
#define UNKNOWN  (-1.0)

const struct figure_row figure_rows[FIGURES] = {
    [FIGURE_MGPUD_KIB] = { "mgpud_kib", "KiB of memory of mgpud", 1024, false },
    [FIGURE_AGENT_KIB] = { "agent_kib", "KiB of memory of the agent", 1024, false },
    [FIGURE_MGPUD_FILES] = { "mgpud_files", "descriptors of mgpud", 1, true },
    [FIGURE_AGENT_FILES] = { "agent_files", "descriptors of the agent", 4, true },
    [FIGURE_PROCESSES] = { "processes", "processes", 2, true },
    [FIGURE_SPOOL] = { "spool", "entries of the spool", 2, true },
    [FIGURE_CGROUPS] = { "cgroups", "control groups of the machine", 2, false },
};

/* The number after `label` in a file; UNKNOWN: there is none. */
static double read_number(const char *path, const char *label)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0)
        return UNKNOWN;
    const char *at = strstr(buffer_text(&text), label);
    return at != NULL ? strtod(at + strlen(label), NULL) : UNKNOWN;
}

/* UNKNOWN: the folder cannot be read. */
static double count_entries(const char *path)
{
    DIR *dir = opendir(path);
    double count = 0;
    if (dir == NULL)
        return UNKNOWN;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

/* One that is unknown makes the sum unknown. */
static void add(double *sum, double value)
{
    *sum = *sum < 0 || value < 0 ? UNKNOWN : *sum + value;
}

static void add_process(pid_t pid, int pidfd, const char *program, void *arg)
{
    double *values = arg;
    bool is_mgpud = strcmp(program, "mgpud") == 0;
    bool is_agent = strncmp(program, "mgpu-agent", strlen("mgpu-agent")) == 0;
    _cleanup_free_ char *status = xasprintf("/proc/%d/status", (int)pid),
                        *files = xasprintf("/proc/%d/fd", (int)pid);
    values[FIGURE_PROCESSES]++;
    if (!is_mgpud && !is_agent)
        return;
    add(&values[is_mgpud ? FIGURE_MGPUD_KIB : FIGURE_AGENT_KIB], read_number(status, "VmRSS:"));
    add(&values[is_mgpud ? FIGURE_MGPUD_FILES : FIGURE_AGENT_FILES], count_entries(files));
}

void figures_read(const struct kit *kit, double values[FIGURES])
{
    _cleanup_free_ char *spool =
        xasprintf("%s/%s/spool", kit->work, instance_is_root(kit->instance) ? "run" : "run-user");
    for (size_t i = 0; i < FIGURES; i++)
        values[i] = 0;
    instance_each(kit, add_process, values);
    values[FIGURE_SPOOL] = count_entries(spool);
    values[FIGURE_CGROUPS] = read_number("/sys/fs/cgroup/cgroup.stat", "nr_descendants ");
    if (values[FIGURE_CGROUPS] < 0)
        values[FIGURE_CGROUPS] = read_number("/sys/fs/cgroup/unified/cgroup.stat", "nr_descendants ");
}
