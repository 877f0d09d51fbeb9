/* SPDX-License-Identifier: MIT */
/*
 * The peaks are those that mgpud keeps with ended jobs. The command is compared as lists show it, which is
 * cut: beyond that, commands count as the same.
 */
#include "cli/submit/gpu_peak.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/client.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/term/field.h"
#include "job/job.h"

#define JOBS_LOOKED_AT 200
#define MIB            (UINT64_C(1) << 20)

/* As a list shows it; NULL for text that a shell runs. The caller frees it. */
static char *shown_command(const json_t *command)
{
    _cleanup_strings_ struct strings words = { 0 };
    size_t index = 0;
    json_t *word = NULL;
    json_array_foreach(command, index, word) strings_add(&words, json_string_value(word));
    if (words.count == 0)
        return NULL;
    _cleanup_free_ char *line = text_quote_command(&words);
    return text_escape(line, JOB_SUMMARY_MAX);
}

/* The highest peak; 0: no such job, or none that was measured. *ret_count: of how many jobs. */
static uint64_t highest(const json_t *jobs, const char *command, size_t *ret_count)
{
    uint64_t peak = 0;
    size_t index = 0;
    const json_t *job = NULL;
    *ret_count = 0;
    json_array_foreach(jobs, index, job)
    {
        const char *other = field_text(job, "command");
        int64_t used = field_integer(json_object_get(job, "usage"), "gpu_memory_peak_bytes", 0);
        if (used <= 0 || other == NULL || strcmp(other, command) != 0)
            continue;
        (*ret_count)++;
        peak = (uint64_t)used > peak ? (uint64_t)used : peak;
    }
    return peak;
}

static int find_peak(
    struct call *call, const json_t *command, uint64_t *ret, size_t *ret_count, struct error *err)
{
    _cleanup_free_ char *shown = shown_command(command), *user = selector_own_user();
    _cleanup_json_ json_t *answer = NULL;
    *ret = 0;
    if (shown == NULL || user == NULL)
        return 0;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/history?user=%s&state=done&limit=%d", user, JOBS_LOOKED_AT);
    int r = client_get(&call->client, path, &answer, err);
    if (r == 0)
        *ret = highest(json_object_get(answer, "jobs"), shown, ret_count);
    return r;
}

static void tell_peak(const struct call *call, uint64_t peak, uint64_t asked, size_t count)
{
    char used[32], size[32];
    if (call->is_quiet || call->is_json || peak == 0 || asked <= peak + peak / 2)
        return;
    format_size(peak, used, sizeof(used));
    format_size(asked, size, sizeof(size));
    talk_line("%zu earlier job%s with this command used at most %s of GPU memory; this one requests %s",
        count, count == 1 ? "" : "s", used, size);
}

int gpu_peak_settle(struct call *call, const json_t *command, json_t *request, struct error *err)
{
    const json_t *asked = json_object_get(request, "gpu_mem");
    bool is_auto = json_is_string(asked) && strcmp(json_string_value(asked), GPU_PEAK_AUTO) == 0;
    uint64_t peak = 0;
    size_t count = 0;
    if (!is_auto && (!json_is_integer(asked) || call->is_quiet || call->is_json))
        return 0;
    int r = find_peak(call, command, &peak, &count, err);
    if (!is_auto) {
        tell_peak(call, peak, (uint64_t)json_integer_value(asked), count);
        return 0; // the advice is worth no failure
    }
    if (r < 0)
        return error_wrap(err, "-m auto");
    if (peak == 0) {
        (void)error_set(err, -ENODATA, "-m auto: no earlier job of yours with this command has a known peak");
        return error_hint(err, "request a size this time: -m 8G");
    }
    uint64_t bytes = (peak + peak / 10 + MIB - 1) / MIB * MIB;
    char size[32];
    format_size(bytes, size, sizeof(size));
    if (!call->is_quiet && !call->is_json)
        talk_line("-m auto: requests %s of GPU memory", size);
    return json_object_set_new(request, "gpu_mem", json_integer((json_int_t)bytes));
}
