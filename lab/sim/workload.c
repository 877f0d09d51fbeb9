/* SPDX-License-Identifier: MIT */
/* Shared by all readers: lines with their numbers, counting or rejecting invalid ones, and the order of
 * jobs. */
#include "lab/sim/workload.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void workload_add(struct workload *workload, const struct sim_job *job)
{
    size_t n = workload->n_jobs;
    if ((n & (n - 1)) == 0) // a power of two: full
        workload->jobs = xreallocarray(workload->jobs, n == 0 ? 1 : 2 * n, sizeof(*workload->jobs));
    workload->jobs[workload->n_jobs++] = *job;
}

/* A stable merge sort: the order of the file decides between equal times, on every libc. */
static void sort_jobs(struct sim_job *jobs, struct sim_job *spare, size_t count)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half;
    sort_jobs(jobs, spare, half);
    sort_jobs(jobs + half, spare, count - half);
    if (jobs[half - 1].submit_ms <= jobs[half].submit_ms)
        return;
    memcpy(spare, jobs, half * sizeof(*jobs));
    for (size_t at = 0; left < half; at++)
        jobs[at] =
            right < count && jobs[right].submit_ms < spare[left].submit_ms ? jobs[right++] : spare[left++];
}

void workload_sort(struct workload *workload)
{
    struct sim_job *spare = xcalloc(workload->n_jobs / 2 + 1, sizeof(*spare));
    sort_jobs(workload->jobs, spare, workload->n_jobs);
    free(spare);
    int64_t first_ms = workload->n_jobs > 0 ? workload->jobs[0].submit_ms : 0;
    for (size_t i = 0; i < workload->n_jobs; i++)
        workload->jobs[i].submit_ms -= first_ms;
}

void workload_clear(struct workload *workload)
{
    free(workload->jobs);
    names_clear(&workload->users);
    names_clear(&workload->groups);
    names_clear(&workload->models);
    strings_clear(&workload->bad);
    *workload = (struct workload){ 0 };
}

int seconds_parse(const char *text, const char *what, int64_t *ret_ms, struct error *err)
{
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(seconds))
        return error_set(err, -EINVAL, "%s '%.40s' is not a number", what, text);
    if (fabs(seconds) > TRACE_TIME_MAX)
        return error_set(err, -EINVAL, "%s %.40s is out of range", what, text);
    *ret_ms = llround(seconds * 1000);
    return 0;
}

size_t csv_split(char *line, char **fields, size_t max)
{
    size_t count = 0;
    for (char *at = line, *to = line;; at++, to++) {
        if (count < max)
            fields[count] = to;
        count++;
        if (*at == '"') {
            for (at++; *at != '\0' && (*at != '"' || at[1] == '"'); at++, to++) {
                at += *at == '"';
                *to = *at;
            }
            at += *at == '"';
        }
        for (; *at != '\0' && *at != ','; at++, to++)
            *to = *at;
        bool is_last = *at == '\0';
        *to = '\0';
        if (is_last)
            return count;
    }
}

static int note_bad(struct line_reader *reader, const struct error *reason, struct error *err)
{
    struct workload *workload = reader->workload;
    if (!reader->options->skip_bad || reader->is_lost) {
        (void)error_set(err, reason->code, "%.300s:%llu: %.180s", reader->path,
            (unsigned long long)reader->number, reason->message);
        if (!reader->is_lost)
            (void)error_hint(err, "use --skip-bad to skip such lines");
        return err->code;
    }
    workload->n_bad++;
    if (workload->bad.count < BAD_LINES_SHOWN)
        strings_take(&workload->bad,
            xasprintf("%s:%llu: %s", reader->path, (unsigned long long)reader->number, reason->message));
    return 0;
}

static void close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file);
}

int lines_read(struct line_reader *reader, struct error *err)
{
    _cleanup_(close_file) FILE *file = fopen(reader->path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %.300s", reader->path);
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    ssize_t length;
    while ((length = getline(&line, &size, file)) >= 0) {
        reader->number++;
        if (reader->options->max_jobs != 0 && reader->workload->n_jobs >= reader->options->max_jobs)
            return 0;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        struct error reason = { 0 };
        int result = strlen(line) != (size_t)length ? error_set(&reason, -EINVAL, "has a zero byte")
                                                    : reader->read(reader, line, &reason);
        if (result < 0)
            result = note_bad(reader, &reason, err);
        if (result < 0)
            return result;
    }
    if (ferror(file))
        return error_set_errno(err, -EIO, "cannot read %.300s", reader->path);
    return 0;
}

static int read_beginning(const char *path, char *text, size_t size, struct error *err)
{
    _cleanup_(close_file) FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %.300s", path);
    size_t length = fread(text, 1, size - 1, file);
    if (ferror(file))
        return error_set_errno(err, -errno, "cannot read %.300s", path);
    text[length] = '\0';
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

int workload_read_as_is(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err)
{
    char begin[256];
    int result = read_beginning(path, begin, sizeof(begin), err);
    if (result < 0)
        return result;
    const char *first = begin + strspn(begin, " \t\r\n");
    if (*first == '\0')
        return error_set(err, -EINVAL, "%.300s is empty", path);
    (void)names_number(&workload->models, "");
    workload->is_journal = *first == '{';
    if (workload->is_journal)
        result = read_journal(workload, path, options, err);
    else if (*first == ';' || ends_with(path, ".swf") || (*first >= '0' && *first <= '9'))
        result = read_swf(workload, path, options, err);
    else
        result = read_csv(workload, path, options, err);
    if (result < 0)
        return result;
    if (workload->n_jobs == 0)
        return error_set(err, -EINVAL, "%.300s has no jobs", path);
    return 0;
}

int workload_read(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err)
{
    int result = workload_read_as_is(workload, path, options, err);
    if (result == 0)
        workload_sort(workload);
    return result;
}
