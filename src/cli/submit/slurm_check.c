/* SPDX-License-Identifier: MIT */
/* Two tables: options whose values are numbers, times or sizes, and those whose values are words. */
#include "cli/submit/slurm_check.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/submit/slurm_values.h"

static bool is_number(const char *value)
{
    return value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
}

/* --- numbers, times and sizes --- */

static bool is_minutes(const char *value)
{
    int64_t seconds = 0;
    return slurm_parse_time("", value, &seconds, NULL) == 0;
}

static bool is_size(const char *value)
{
    uint64_t bytes = 0;
    return slurm_parse_memory("", value, &bytes, NULL) == 0;
}

/* "2@10:00": what is behind the mark is a time, which Slurm does not check either. */
static bool is_number_at(const char *value)
{
    _cleanup_free_ char *number = xstrndup(value, strcspn(value, "@"));
    return is_number(number);
}

/* "10", "10L": seconds, and the kind of login. */
static bool is_login_time(const char *value)
{
    size_t digits = strspn(value, "0123456789");
    return strspn(value + digits, "SL") == strlen(value + digits);
}

/* "30", "task=30,energy=10". */
static bool is_frequency(const char *value)
{
    static const char *const kinds[] = { "energy", "filesystem", "network", "task" };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(word, '=');
        bool is_kind = equals == NULL;
        if (equals != NULL)
            *equals = '\0';
        for (size_t i = 0; equals != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
            is_kind |= strcasecmp(word, kinds[i]) == 0;
        if (!is_kind || !is_number(equals != NULL ? equals + 1 : word))
            return false;
    }
    return true;
}

static const struct {
    const char *name;
    bool (*is_valid)(const char *value);
    bool is_number; // refused as one
} measures[] = {
    { "core-spec", is_number, true },
    { "cores-per-socket", is_number, true },
    { "delay-boot", is_minutes, false },
    { "get-user-env", is_login_time, false },
    { "msg-timeout", is_number, true },
    { "ntasks-per-core", is_number, true },
    { "ntasks-per-socket", is_number, true },
    { "switches", is_number_at, true },
    { "thread-spec", is_number, true },
    { "threads", is_number, true },
    { "threads-per-core", is_number, true },
    { "tmp", is_size, false },
    { "wait-all-nodes", is_number, true },
};

/* --- words --- */

/* What is said is `before`, the value and `after`; with `second` a second line, the same way. NULL before:
 * "Invalid
 * --NAME specification". */
static const struct words {
    const char *name, *known; // known: between blanks; a number is taken too if it begins with "#"
    int code;
    const char *before, *after, *second, *second_after;
} words[] = {
    { "accel-bind", " g m n v ", -EDOM, NULL, NULL, NULL, NULL },
    { "cpu-freq", "# low medium high highm1 conservative ondemand performance powersave schedutil userspace ",
        -EDOM, "unrecognized --cpu-freq argument \"", "\"", "Invalid --cpu-freq argument", "" },
    { "distribution", " * arbitrary block cyclic fcyclic nopack pack plane ", -EDOM, NULL, NULL, NULL, NULL },
    { "gpu-bind", " closest map_gpu mask_gpu none per_task single verbose ", -EDOM,
        "Invalid --gpu-bind argument: gpu:", "", NULL, NULL },
    { "gpu-freq", "# low medium high highm1 memory verbose ", -EDOM, "Invalid --gpu-freq argument: gpu:", "",
        NULL, NULL },
    { "gres-flags", " disable-binding enforce-binding ", -EDOM, NULL, NULL, NULL, NULL },
    { "hint", " compute_bound help memory_bound multithread nomultithread ", -EINVAL,
        "unrecognized --hint argument \"", "\", see --hint=help", NULL, NULL },
    { "mem-bind", " help local map_mem mask_mem no none prefer q quiet rank sort v verbose ", -EDOM,
        "unrecognized --mem-bind argument \"", "\"", NULL, NULL },
    { "profile", " all energy filesystem lustre network none task ", -EDOM, "invalid --profile=", " option",
        NULL, NULL },
    { "propagate", " all as core cpu data fsize memlock nofile none nproc rss stack ", -EINVAL,
        "Bad rlimit name: ", "", "--propagate=", " is not valid." },
};

/* The words of a list; behind "=" and ":" of one is what only some have, except for --distribution. */
static bool has_words(const struct words *row, const char *value)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    bool is_nested = strcmp(row->name, "distribution") == 0 || strcmp(row->name, "cpu-freq") == 0;
    for (char *word = NULL; (word = strsep(&rest, is_nested ? ",:-" : ",")) != NULL;) {
        bool has_list = !is_nested && strchr(word, ':') != NULL; // whose commas are its own
        word[strcspn(word, "=:")] = '\0';
        for (char *p = word; *p >= 'A' && *p <= 'Z'; p++)
            *p = (char)(*p - 'A' + 'a');
        _cleanup_free_ char *key = xasprintf(" %s ", word);
        bool is_counted = row->known[0] == '#' && is_number(word);
        if (word[0] == '\0' || (!is_counted && strstr(row->known, key) == NULL))
            return false;
        if (has_list)
            return true;
    }
    return true;
}

static int refuse(
    const struct words *row, const struct slurm_option *option, const char *value, struct error *err)
{
    if (row->before == NULL)
        return slurm_bad_value(option, err);
    (void)error_set(err, row->code, "%s%.60s%s", row->before, value, row->after);
    if (row->second == NULL)
        return row->code;
    (void)error_hint(
        err, "%s%.60s%s", row->second, row->second_after[0] != '\0' ? value : "", row->second_after);
    return error_mark(err, SLURM_BOTH, row->code);
}

int slurm_check_value(const struct slurm_option *option, const char *value, struct error *err)
{
    if (value == NULL || (option->programs & SLURM_SUBMITS) == 0)
        return 0;
    for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
        if (strcmp(measures[i].name, option->name) == 0 && !measures[i].is_valid(value))
            return measures[i].is_number ? slurm_bad_number(option, value, err)
                                         : slurm_bad_value(option, err);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].name, option->name) == 0 && !has_words(&words[i], value))
            return refuse(&words[i], option, value, err);
    if (strcmp(option->name, "acctg-freq") == 0 && !is_frequency(value))
        return error_set(err, -EDOM, "Invalid --acctg-freq specification: %.60s", value);
    return 0;
}
