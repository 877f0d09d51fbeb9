/* SPDX-License-Identifier: MIT */
/*
 * The peaks are those that mgpud stores with ended jobs. The command is compared in the shortened form shown
 * by lists, so commands that differ only beyond that count as the same. If no job had the same command, jobs
 * with the same program or script and other arguments are used.
 */
#include "cli/submit/gpu_peak.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/client.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "job/job.h"

#define JOBS_LOOKED_AT 200
#define MIB            (UINT64_C(1) << 20)

/* What is compared with earlier jobs. */
struct likeness {
    char *command; // the whole command, in the form of lists
    char *script;  // its beginning, up to the program or script; NULL: unknown
};

static void likeness_clear(struct likeness *likeness)
{
    free(likeness->command);
    free(likeness->script);
}

static void add_words(struct strings *words, const json_t *command, size_t count)
{
    size_t index = 0;
    json_t *word = NULL;
    json_array_foreach(command, index, word) if (index < count) strings_add(words, json_string_value(word));
}

/* The first `count` words in the form of lists; the caller frees it. */
static char *show(const json_t *command, size_t count)
{
    _cleanup_strings_ struct strings words = { 0 };
    add_words(&words, command, count);
    _cleanup_free_ char *line = text_quote_command(&words);
    return text_escape(line, JOB_SUMMARY_MAX);
}

static bool is_script(const char *word)
{
    static const char *const ends[] = { ".py", ".sh", ".jl", ".R", ".pl", ".lua" };
    size_t length = strlen(word);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (length > strlen(ends[i]) && strcmp(word + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* True for programs that run others, and whose own name means nothing. */
static bool runs_others(const char *program)
{
    static const char *const names[] = { "python", "torchrun", "accelerate", "deepspeed", "bash", "sh", "env",
        "uv", "julia", "Rscript", "perl", "srun", "mpirun", "nice", "time" };
    const char *name = strrchr(program, '/') != NULL ? strrchr(program, '/') + 1 : program;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 &&
            strspn(name + strlen(names[i]), "0123456789.") == strlen(name + strlen(names[i])))
            return true;
    return false;
}

/* The number of words that identify the program: "python3 train.py" of "python3 train.py --lr 1", "python3 -m
 * pkg.train", "./train". 0: the command names no program of its own, such as text that a shell runs. */
static size_t count_to_script(const json_t *command)
{
    size_t index = 0;
    json_t *word = NULL;
    bool is_module = false;
    const char *program = json_string_value(json_array_get(command, 0));
    if (program == NULL || !runs_others(program))
        return program != NULL ? 1 : 0;
    json_array_foreach(command, index, word)
    {
        const char *text = json_string_value(word);
        if (index == 0 || text == NULL)
            continue;
        if (is_module || is_script(text))
            return index + 1;
        is_module = strcmp(text, "-m") == 0;
        if (strcmp(text, "-c") == 0)
            return 0;
    }
    return 0;
}

static bool find_likeness(const json_t *command, struct likeness *ret)
{
    size_t count = json_array_size(command), script = count_to_script(command);
    if (count == 0)
        return false;
    *ret = (struct likeness){ .command = show(command, count),
        .script = script > 0 ? show(command, script) : NULL };
    return true;
}

static bool begins_with(const char *command, const char *script)
{
    size_t length = strlen(script);
    return strncmp(command, script, length) == 0 && (command[length] == '\0' || command[length] == ' ');
}

/* The peak of jobs with the same command or, if there are none, with the same script. */
struct peak {
    uint64_t bytes; // 0: there was no such job, or none was measured
    size_t jobs;
    bool is_exact;
};

static void add_job(struct peak *peak, uint64_t used)
{
    peak->jobs++;
    peak->bytes = used > peak->bytes ? used : peak->bytes;
}

static struct peak highest(const json_t *jobs, const struct likeness *likeness)
{
    struct peak exact = { .is_exact = true }, similar = { 0 };
    size_t index = 0;
    const json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        const char *other = field_text(job, "command");
        double used = 0;
        if (other == NULL || !field_measured(json_object_get(job, "usage"), "gpu_memory_peak_bytes", &used))
            continue;
        if (strcmp(other, likeness->command) == 0)
            add_job(&exact, (uint64_t)used);
        else if (likeness->script != NULL && begins_with(other, likeness->script))
            add_job(&similar, (uint64_t)used);
    }
    return exact.jobs > 0 ? exact : similar;
}

static int find_peak(struct call *call, const struct likeness *likeness, struct peak *ret, struct error *err)
{
    _cleanup_free_ char *user = selector_own_user();
    _cleanup_json_ json_t *answer = NULL;
    if (user == NULL)
        return 0;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/history?user=%s&state=done&limit=%d", user, JOBS_LOOKED_AT);
    int r = client_get(&call->client, path, &answer, err);
    if (r == 0)
        *ret = highest(json_object_get(answer, "jobs"), likeness);
    return r;
}

/* "3 earlier jobs with this command used at most 31 GiB of GPU memory"; the caller frees it. */
static char *describe(const struct peak *peak)
{
    char used[32];
    format_size(peak->bytes, used, sizeof(used));
    return xasprintf("%zu earlier job%s %s used at most %s of GPU memory", peak->jobs,
        peak->jobs == 1 ? "" : "s",
        peak->is_exact ? "with this command" : "of this program with other arguments", used);
}

static void print_peak(const struct call *call, const struct peak *peak, uint64_t asked)
{
    char size[32];
    if (call->is_quiet || call->is_json || peak->bytes == 0 || asked <= peak->bytes + peak->bytes / 2)
        return;
    format_size(asked, size, sizeof(size));
    _cleanup_free_ char *text = describe(peak);
    talk_line("%s; this one requests %s", text, size);
}

static int apply_peak(struct call *call, const struct likeness *likeness, json_t *request, struct error *err)
{
    const json_t *asked = json_object_get(request, "gpu_mem");
    bool is_auto = json_is_string(asked);
    struct peak peak = { 0 };
    char size[32];
    int r = find_peak(call, likeness, &peak, err);
    if (!is_auto) {
        print_peak(call, &peak, (uint64_t)json_integer_value(asked));
        return 0; // missing advice is not a failure
    }
    if (r < 0)
        return error_wrap(err, "-m auto");
    if (peak.bytes == 0) {
        (void)error_set(err, -ENODATA, "-m auto: no earlier job of yours with this command has a known peak");
        return error_hint(err, "request a size this time: -m 8G");
    }
    uint64_t bytes = (peak.bytes + peak.bytes / 10 + MIB - 1) / MIB * MIB;
    format_size(bytes, size, sizeof(size));
    _cleanup_free_ char *text = describe(&peak);
    if (!call->is_quiet && !call->is_json)
        talk_line("-m auto: requests %s of GPU memory: %s", size, text);
    return json_object_set_new(request, "gpu_mem", json_integer((json_int_t)bytes));
}

int gpu_peak_settle(struct call *call, const json_t *command, json_t *request, struct error *err)
{
    const json_t *asked = json_object_get(request, "gpu_mem");
    bool is_auto = json_is_string(asked) && strcmp(json_string_value(asked), GPU_PEAK_AUTO) == 0;
    struct likeness likeness = { 0 };
    if (!is_auto && (!json_is_integer(asked) || call->is_quiet || call->is_json))
        return 0;
    bool is_known = find_likeness(command, &likeness);
    int r = is_known || is_auto ? apply_peak(call, &likeness, request, err) : 0;
    likeness_clear(&likeness);
    return r;
}
