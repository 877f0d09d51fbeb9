/* SPDX-License-Identifier: MIT */
/*
 * "block:cyclic:*,pack": the layout of tasks on nodes, on sockets and on cores, and whether nodes are filled.
 * The first is applied; the others are only displayed. With "arbitrary", -w or the file of SLURM_HOSTFILE
 * names the node of each task in turn.
 */
#include "cli/submit/slurm_distribution.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/memory.h"

#define LEVELS       3         // nodes, sockets, cores
#define HOSTFILE_MAX (1 << 20) // bytes of names
#define OF_JOB       "SLURM_ARBITRARY_NODELIST"

static const struct {
    const char *word;
    enum slurm_layout layout;
} layouts[] = { { "cyclic", SLURM_LAYOUT_CYCLIC }, { "plane", SLURM_LAYOUT_PLANE },
    { "arbitrary", SLURM_LAYOUT_ARBITRARY } };

enum slurm_layout slurm_distribution_layout(const char *value)
{
    size_t length = value != NULL ? strcspn(value, ":,=") : 0;
    for (size_t i = 0; length > 0 && i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (strlen(layouts[i].word) == length && strncasecmp(value, layouts[i].word, length) == 0)
            return layouts[i].layout;
    return SLURM_LAYOUT_BLOCK;
}

uint32_t slurm_distribution_plane(const char *value)
{
    const char *equals = value != NULL ? strchr(value, '=') : NULL;
    const char *text = equals != NULL ? equals + 1 : getenv("SLURM_DIST_PLANESIZE");
    unsigned long size = text != NULL ? strtoul(text, NULL, 10) : 0;
    return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

char *slurm_distribution_text(const char *value)
{
    static const char *const defaults[LEVELS] = { "block", "cyclic", NULL }; // cores: as sockets
    _cleanup_free_ char *copy = xstrdup(value);
    _cleanup_buffer_ struct buffer out = { 0 };
    for (char *p = copy; *p != '\0'; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    char *pack = strchr(copy, ','), *rest = copy;
    if (pack != NULL)
        *pack = '\0';
    if (slurm_distribution_layout(copy) == SLURM_LAYOUT_PLANE)
        return xstrdup("plane");
    const char *before = NULL;
    for (size_t i = 0; i < LEVELS && rest != NULL; i++) {
        const char *word = strsep(&rest, ":");
        if (strcmp(word, "*") == 0)
            word = defaults[i] != NULL ? defaults[i] : before;
        buffer_printf(&out, "%s%s", i > 0 ? ":" : "", word);
        before = word;
    }
    if (pack != NULL)
        buffer_printf(&out, ",%s", pack + 1);
    return buffer_take(&out);
}

/* --- the nodes of tasks --- */

/* Text that the options of the job keep. */
static const char *keep(struct slurm_job *job, const char *text)
{
    strings_add(&job->kept, text);
    return job->kept.items[job->kept.count - 1];
}

/* Reads lists of nodes from a file, one or several per line, and joins them with commas in *ret. */
static int read_nodes(const char *path, struct buffer *ret, struct error *err)
{
    FILE *file = fopen(path, "re");
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    if (file == NULL)
        return error_set(
            err, -errno, "slurm_allocate_resources error opening file %.200s, %s", path, strerror(errno));
    while (getline(&line, &size, file) >= 0 && ret->length <= HOSTFILE_MAX) {
        line[strcspn(line, "#")] = '\0';
        char *rest = line;
        for (char *one = NULL; (one = strsep(&rest, " \t\r\n,")) != NULL;)
            if (one[0] != '\0')
                buffer_printf(ret, "%s%s", ret->length > 0 ? "," : "", one);
    }
    (void)fclose(file);
    if (ret->length > HOSTFILE_MAX)
        return error_set(err, -E2BIG, "%.200s has more than %d bytes of names of nodes", path, HOSTFILE_MAX);
    return ret->length > 0 ? 0 : error_set(err, -EINVAL, "%.200s names no node", path);
}

/* Reports the message of `code`, and a second one for SLURM_HOSTFILE. */
static int refuse(bool is_variable, struct error *err, int code)
{
    if (is_variable)
        (void)error_hint(err, "Failure getting NodeNames from hostfile");
    return error_mark(err, SLURM_BOTH, code);
}

/* Sets *ret_is_file if the list comes from a file. */
static int read_file(struct slurm_job *job, bool *ret_is_file, struct error *err)
{
    bool is_asked = text_equal(job->program, "srun") ||
                    slurm_distribution_layout(job->distribution) == SLURM_LAYOUT_ARBITRARY;
    const char *variable = is_asked && job->nodelist == NULL ? getenv("SLURM_HOSTFILE") : NULL;
    bool is_variable = variable != NULL && variable[0] != '\0';
    const char *name = is_variable ? variable : job->nodelist;
    _cleanup_buffer_ struct buffer list = { 0 };
    *ret_is_file = is_variable || (name != NULL && strchr(name, '/') != NULL);
    if (!*ret_is_file)
        return 0;
    _cleanup_free_ char *path = xasprintf("%s%s", strchr(name, '/') == NULL ? "./" : "", name);
    int r = read_nodes(path, &list, err);
    if (r < 0)
        return refuse(is_variable, err, r);
    job->nodelist = keep(job, buffer_text(&list));
    if (is_variable) {
        job->distribution = "arbitrary";
        strings_set_env(&job->submit.env, "SLURM_DISTRIBUTION", job->distribution);
    }
    return 0;
}

/* A node for each task. */
static int check_count(const struct slurm_job *job, bool is_file, bool is_variable, struct error *err)
{
    bool is_step = getenv("SLURM_JOB_ID") != NULL;
    if (job->tasks <= 0 || (size_t)job->tasks <= job->task_nodes.count)
        return 0;
    if (is_file)
        return refuse(is_variable, err, error_set(err, -EINVAL, "Too few NodeNames in Slurm Hostfile"));
    if (!is_step)
        return error_set(err, -EINVAL, "Requested node configuration is not available");
    return refuse(false, err,
        error_set(err, -EINVAL, "You asked for %" PRId64 " tasks but hostlist specified %zu nodes",
            job->tasks, job->task_nodes.count));
}

int slurm_distribution_settle(struct slurm_job *job, struct error *err)
{
    _cleanup_buffer_ struct buffer used = { 0 };
    bool is_listed = job->nodelist != NULL, is_file = false;
    int r = read_file(job, &is_file, err);
    if (r < 0 || slurm_distribution_layout(job->distribution) != SLURM_LAYOUT_ARBITRARY)
        return r;
    if (job->nodelist == NULL && getenv(OF_JOB) != NULL) // a step of a job with this distribution
        job->nodelist = keep(job, getenv(OF_JOB));
    if (job->nodelist == NULL && job->tasks <= 0 && text_equal(job->program, "srun"))
        return refuse(false, err, error_set(err, -EINVAL, "invalid number of tasks (-n 0)"));
    if (job->nodelist == NULL)
        return refuse(false, err,
            error_set(err, -EINVAL,
                "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"));
    strings_clear(&job->task_nodes);
    r = hostlist_expand(job->nodelist, &job->task_nodes, err);
    if (r == 0)
        r = check_count(job, is_file, !is_listed, err);
    if (r < 0)
        return r;
    if (job->tasks <= 0)
        job->tasks = (int64_t)job->task_nodes.count;
    while (job->task_nodes.count > (size_t)job->tasks) {
        char **last = &job->task_nodes.items[--job->task_nodes.count];
        free(*last);
        *last = NULL;
    }
    for (size_t i = 0; i < job->task_nodes.count; i++)
        buffer_printf(&used, "%s%s", i > 0 ? "," : "", job->task_nodes.items[i]);
    job->nodelist = keep(job, buffer_text(&used)); // of the nodes that have tasks
    strings_set_env(&job->submit.env, OF_JOB, job->nodelist);
    return 0;
}
