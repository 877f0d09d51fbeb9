/* SPDX-License-Identifier: MIT */
/*
 * Traces as CSV: columns are identified by their names in the first line; unknown ones are ignored. A table
 * defines the known names and how their values are stored in the job.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "lab/sim/workload.h"

#define COLUMNS_MAX 64U

struct csv_row { // one line as it is being read
    struct workload *workload;
    struct sim_job job;
    int64_t end_ms;    // of the openb lists, which contain the deletion time of a pod
    int64_t gpu_milli; // of each GPU
    bool has_end, has_command;
};

struct column {
    const char *name;
    int (*set)(struct csv_row *row, const char *text, struct error *err);
};

static int set_seconds(const char *text, const char *what, int64_t *ret_ms, struct error *err)
{
    int64_t ms = 0;
    int result = seconds_parse(text, what, &ms, err);
    if (result < 0)
        return result;
    if (ms < 0)
        return error_set(err, -EINVAL, "%s %.40s is negative", what, text);
    *ret_ms = ms;
    return 0;
}

static int set_submit(struct csv_row *row, const char *text, struct error *err)
{
    return set_seconds(text, "submit time", &row->job.submit_ms, err);
}

static int set_duration(struct csv_row *row, const char *text, struct error *err)
{
    return set_seconds(text, "duration", &row->job.duration_ms, err);
}

static int set_end(struct csv_row *row, const char *text, struct error *err)
{
    if (*text == '\0')
        return error_set(err, -EINVAL, "the end is unknown");
    row->has_end = true;
    return set_seconds(text, "end", &row->end_ms, err);
}

/* Unknown estimates are written as nothing, 0 or -1. */
static int set_optional(
    const char *text, const char *what, int64_t *ret_ms, bool *ret_is_there, struct error *err)
{
    int64_t ms = 0;
    int result = *text == '\0' ? 0 : seconds_parse(text, what, &ms, err);
    if (result < 0)
        return result;
    *ret_ms = ms > 0 ? ms : 0;
    *ret_is_there |= ms > 0;
    return 0;
}

static int set_pred(struct csv_row *row, const char *text, struct error *err)
{
    return set_optional(text, "predicted duration", &row->job.pred_ms, &row->workload->has_pred, err);
}

static int set_wall(struct csv_row *row, const char *text, struct error *err)
{
    return set_optional(text, "wall time", &row->job.wall_ms, &row->workload->has_wall, err);
}

static int set_gpus(struct csv_row *row, const char *text, struct error *err)
{
    int64_t gpus = 0;
    int result = parse_integer(text, "number of GPUs", 0, TRACE_GPUS_MAX, &gpus, err);
    if (result < 0)
        return result;
    row->job.gpus = (uint32_t)gpus;
    return 0;
}

static int set_milli(struct csv_row *row, const char *text, struct error *err)
{
    return parse_integer(text, "share of a GPU in thousandths", 0, 1000, &row->gpu_milli, err);
}

static int set_cpu(struct csv_row *row, const char *text, struct error *err)
{
    int64_t milli = 0;
    int result = parse_integer(text, "thousandths of a CPU", 0, INT32_MAX, &milli, err);
    if (result < 0)
        return result;
    row->job.cpu_milli = (uint32_t)milli;
    return 0;
}

static int set_memory(struct csv_row *row, const char *text, struct error *err)
{
    int64_t mib = 0;
    int result = parse_integer(text, "memory in MiB", 0, INT64_MAX >> 20, &mib, err);
    if (result < 0)
        return result;
    row->job.memory = (uint64_t)mib << 20;
    return 0;
}

static int set_model(struct csv_row *row, const char *text, struct error *err)
{
    row->job.model = names_number(&row->workload->models, text);
    return 0;
}

static int set_user(struct csv_row *row, const char *text, struct error *err)
{
    row->job.user = names_number(&row->workload->users, text);
    return 0;
}

static int set_group(struct csv_row *row, const char *text, struct error *err)
{
    row->job.group = names_number(&row->workload->groups, text);
    return 0;
}

static int set_command(struct csv_row *row, const char *text, struct error *err)
{
    row->job.command_hash = hash_bytes(HASH_START, text, strlen(text));
    row->has_command = true;
    return 0;
}

static const struct column columns[] = {
    { "submit", set_submit },
    { "submit_time", set_submit },
    { "timestamp", set_submit },
    { "creation_time", set_submit },
    { "duration", set_duration },
    { "run_time", set_duration },
    { "deletion_time", set_end },
    { "gpus", set_gpus },
    { "num_gpus", set_gpus },
    { "num_gpu", set_gpus },
    { "procs", set_gpus },
    { "gpu_milli", set_milli },
    { "cpu_milli", set_cpu },
    { "memory_mib", set_memory },
    { "gpu_spec", set_model },
    { "user", set_user },
    { "vc", set_group },
    { "group", set_group },
    { "group_or_queue", set_group },
    { "cluster", set_group },
    { "command", set_command },
    { "job_name", set_command },
    { "pred_duration", set_pred },
    { "walltime_req", set_wall },
    { "walltime", set_wall },
    { 0 },
};

struct csv_header {
    const struct column *columns[COLUMNS_MAX]; // by position; NULL: left aside
    size_t count;
    size_t user; // position of --users-from, COLUMNS_MAX: none
};

static const struct column *find_column(const char *name)
{
    for (const struct column *column = columns; column->name != NULL; column++)
        if (strcmp(column->name, name) == 0)
            return column;
    return NULL;
}

static bool has_column(
    const struct csv_header *header, int (*set)(struct csv_row *, const char *, struct error *))
{
    for (size_t i = 0; i < header->count; i++)
        if (header->columns[i] != NULL && header->columns[i]->set == set)
            return true;
    return false;
}

static int read_header(struct line_reader *reader, char *line, struct error *err)
{
    struct csv_header *header = reader->state;
    char *names[COLUMNS_MAX];
    reader->is_lost = true; // until it proves good
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3;
    header->count = csv_split(line, names, COLUMNS_MAX);
    if (header->count > COLUMNS_MAX)
        return error_set(
            err, -EINVAL, "has %zu columns; at most %u are supported", header->count, COLUMNS_MAX);
    const char *users_from = reader->options->users_from;
    header->user = COLUMNS_MAX;
    for (size_t i = 0; i < header->count; i++) {
        header->columns[i] = find_column(names[i]);
        if (users_from != NULL && strcmp(names[i], users_from) == 0)
            header->user = i;
    }
    if (users_from != NULL && header->user == COLUMNS_MAX)
        return error_set(err, -EINVAL, "has no column '%.40s' (--users-from)", users_from);
    bool is_untimed = reader->options->is_untimed;
    if (!is_untimed && !has_column(header, set_submit))
        return error_set(err, -EINVAL, "has no column of submit times (submit, submit_time, timestamp)");
    if (!is_untimed && !has_column(header, set_duration) && !has_column(header, set_end))
        return error_set(err, -EINVAL, "has no column of durations (duration, run_time, deletion_time)");
    if (!has_column(header, set_gpus))
        return error_set(err, -EINVAL, "has no column of GPU counts (gpus, num_gpus, procs)");
    reader->is_lost = false;
    return 0;
}

/* Combines the values of several columns. */
static int finish_row(struct csv_row *row, struct error *err)
{
    struct sim_job *job = &row->job;
    if (row->has_end && row->end_ms < job->submit_ms)
        return error_set(err, -EINVAL, "ends before it is submitted");
    if (row->has_end)
        job->duration_ms = row->end_ms - job->submit_ms;
    if (job->gpus == 1 && row->gpu_milli > 0 && row->gpu_milli < 1000)
        job->share = (uint32_t)row->gpu_milli;
    if (job->gpus == 0 && job->cpu_milli == 0 && job->memory == 0)
        return error_set(err, -EINVAL, "requests no GPU, no CPU and no memory");
    if (!row->has_command)
        job->command_hash = HASH_START;
    return 0;
}

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    struct csv_header *header = reader->state;
    if (header->count == 0)
        return read_header(reader, line, err);
    if (*line == '\0')
        return 0;
    char *fields[COLUMNS_MAX];
    size_t count = csv_split(line, fields, COLUMNS_MAX);
    if (count != header->count)
        return error_set(err, -EINVAL, "has %zu fields; the first line names %zu", count, header->count);
    struct csv_row row = { .workload = reader->workload };
    if (reader->workload->users.count == 0) {
        (void)names_number(&reader->workload->users, "-");
        (void)names_number(&reader->workload->groups, "-");
    }
    for (size_t i = 0; i < count; i++) {
        const struct column *column = header->columns[i];
        int result = column == NULL ? 0 : column->set(&row, fields[i], err);
        if (result < 0)
            return result;
    }
    if (header->user < COLUMNS_MAX)
        row.job.user = names_number(&reader->workload->users, fields[header->user]);
    int result = finish_row(&row, err);
    if (result < 0)
        return result;
    workload_add(reader->workload, &row.job);
    return 0;
}

int read_csv(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err)
{
    struct csv_header header = { 0 };
    struct line_reader reader = {
        .path = path, .workload = workload, .options = options, .state = &header, .read = read_line
    };
    return lines_read(&reader, err);
}
