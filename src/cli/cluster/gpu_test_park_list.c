/* SPDX-License-Identifier: MIT */
/* The table printed by mgpu gpu test --park: a row for each job that was parked. */
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/cluster/gpu_test_park.h"

#define GIGABYTES 1e9

static char *render_size(const struct view *view, const json_t *row, enum color *color)
{
    char text[32];
    format_size((uint64_t)field_number(row, "memory_bytes", 0), text, sizeof(text));
    return xstrdup(text);
}

static char *rate_text(const struct view *view, const json_t *row, const char *member)
{
    double rate = 0;
    return field_measured(row, member, &rate) ? xasprintf("%.1f", rate / GIGABYTES) : xstrdup("-");
}

static const struct list_column columns[] = {
    { .name = "gpu", .header = "GPU", .help = "node and number", .field = "gpu" },
    { .name = "model", .header = "MODEL", .help = "model", .field = "model", .shrink = 1 },
    { .name = "memory",
        .header = "MEMORY",
        .help = "memory of the job",
        .field = "memory_bytes",
        .is_right = true,
        .render = render_size },
    { .name = "save",
        .header = "SAVE GB/s",
        .help = "speed of the save",
        .field = "save_bytes_per_s",
        .is_right = true,
        .form = rate_text },
    { .name = "load",
        .header = "LOAD GB/s",
        .help = "speed of the return",
        .field = "load_bytes_per_s",
        .is_right = true,
        .form = rate_text },
    { .name = "return", .header = "RETURN", .help = "to its own GPU, or to another one", .field = "return" },
    { .name = "job", .header = "JOB", .help = "the job that was parked", .field = "job", .is_right = true },
    { .name = "result", .header = "RESULT", .help = "passed, refused or failed", .field = "result" },
    { .name = "text", .header = "", .help = "why", .field = "text", .shrink = 2 },
    { 0 },
};

const struct list_kind gpu_test_park_list = {
    .member = "tests",
    .columns = columns,
    .normal = "gpu,model,memory,save,load,return,result,text",
    .wide = "gpu,model,memory,save,load,return,job,result,text",
};
