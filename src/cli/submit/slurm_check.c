/* SPDX-License-Identifier: MIT */
/* Three tables: options whose values are numbers, times or sizes, those whose values are words, and those
 * with rules and sentences of their own. */
#include "cli/submit/slurm_check.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/slurm_distribution.h"
#include "cli/submit/slurm_values.h"

#define SLURM_NICE_MAX     2147483645
#define SLURM_PRIORITY_MAX 4294967294U // not a priority, but a special value

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

/* "2@10:00": the part behind the mark is a time, which Slurm does not check either. */
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

/* The message consists of `before`, the value and `after`; `second` is a second line in the same form. NULL
 * before: "Invalid --NAME specification". */
static const struct words {
    const char *name, *known; // known: separated by blanks; a number is accepted too if it begins with "#"
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
    { "no-kill", " no off set ", -EDOM, NULL, NULL, NULL, NULL },
    { "mem-bind", " help local map_mem mask_mem no none prefer q quiet rank sort v verbose ", -EDOM,
        "unrecognized --mem-bind argument \"", "\"", NULL, NULL },
    { "profile", " all energy filesystem lustre network none task ", -EDOM, "invalid --profile=", " option",
        NULL, NULL },
    { "propagate", " all as core cpu data fsize memlock nofile none nproc rss stack ", -EINVAL,
        "Bad rlimit name: ", "", "--propagate=", " is not valid." },
};

/* Checks the words of a list. Parts behind "=" and ":" are allowed only for some words, and for all in
 * --distribution. */
static bool has_words(const struct words *row, const char *value)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    bool is_nested = strcmp(row->name, "distribution") == 0 || strcmp(row->name, "cpu-freq") == 0;
    for (char *word = NULL; (word = strsep(&rest, is_nested ? ",:-" : ",")) != NULL;) {
        bool has_list = !is_nested && strchr(word, ':') != NULL; // its commas are part of the word
        word[strcspn(word, "=:")] = '\0';
        for (char *p = word; *p != '\0'; p++)
            *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
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

/* --- special rules --- */

/* "30", "task=30,energy=10". */
static int check_frequency(const struct slurm_option *option, const char *value, struct error *err)
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
            return error_set(err, -EDOM, "Invalid --acctg-freq specification: %.60s", value);
    }
    return 0;
}

/* "2:4-8:*": sockets, cores and threads, each a number, a range or an asterisk. */
static int check_topology(const struct slurm_option *option, const char *value, struct error *err)
{
    static const char *const places[] = { "first", "second", "third" };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy, *part = NULL;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && (part = strsep(&rest, ":")) != NULL; i++) {
        _cleanup_free_ char *least = xstrndup(part, strcspn(part, "-"));
        const char *most = strchr(part, '-');
        bool is_any = part[0] == '\0' || strcmp(part, "*") == 0;
        if (!is_any && (!is_number(least) || (most != NULL && !is_number(most + 1))))
            return error_set(err, -EINVAL, "Invalid numeric value \"%.60s\" for %s arg of -%c.", part,
                places[i], option->letter);
    }
    return 0;
}

/* "plane=4", or "plane" if a variable has the number; has_words() does not check this. */
static int check_plane(const struct slurm_option *option, const char *value, struct error *err)
{
    const char *size = strchr(value, '=');
    if (strncasecmp(value, "plane", 5) != 0)
        return 0;
    if ((size == NULL || is_number(size + 1)) && slurm_distribution_plane(value) > 0)
        return 0;
    (void)error_set(err, -EDOM, "Invalid plane size or size not specified");
    (void)error_hint(err, "Invalid --%s specification", option->name);
    return error_mark(err, SLURM_BOTH, -EDOM);
}

/* A value that is not a number is refused where it is used. */
static int check_nice(const struct slurm_option *option, const char *value, struct error *err)
{
    int64_t number = 0;
    int r = parse_integer(value, option->name, -SLURM_NICE_MAX, SLURM_NICE_MAX, &number, NULL);
    if (r != -ERANGE)
        return 0;
    return error_set(err, -EDOM, "Invalid --nice value, out of range (+/- %d)", SLURM_NICE_MAX);
}

static int check_priority(const struct slurm_option *option, const char *value, struct error *err)
{
    int64_t number = 0;
    int r = parse_integer(value, option->name, 0, SLURM_PRIORITY_MAX - 1, &number, NULL);
    if (r != -ERANGE)
        return 0;
    return value[0] == '-' ? error_set(err, -EDOM, "Priority must be >= 0")
                           : error_set(err, -EDOM, "Priority must be < %u", SLURM_PRIORITY_MAX);
}

/* Values that only root may request are refused for other reasons. */
static int check_root(const struct slurm_option *option, const char *value, struct error *err)
{
    return geteuid() == 0 ? 0 : error_set(err, -EDOM, "--%s only permitted by root user", option->name);
}

static int refuse_binding(struct error *err, int code)
{
    (void)error_hint(err, "Failed to parse --cpu-bind= values.");
    return error_mark(err, SLURM_DOOMED, code);
}

/* A number in "map_cpu:0,1" or, in hexadecimal, in "mask_cpu:0x3,c". */
static int check_bound(const char *number, bool is_mask, struct error *err)
{
    const char *digits = is_mask && strncasecmp(number, "0x", 2) == 0 ? number + 2 : number;
    size_t good = strspn(digits, is_mask ? "0123456789abcdefABCDEF" : "0123456789");
    if (digits[good] == '\0')
        return 0;
    return refuse_binding(
        err, error_set(err, -EINVAL, "Failed to validate number: %.60s, the offending character is %c",
                 number, digits[good]));
}

/* "verbose,map_cpu:0,1": words, some of which are followed by a list of numbers. */
static int check_binding(const struct slurm_option *option, const char *value, struct error *err)
{
    static const char known[] =
        " boards cores help ldoms mask_ldom map_ldom mask_cpu map_cpu no none q quiet "
        "rank rank_ldom sockets threads v verbose ";
    static const char *const digits[] = { "0123456789", "0123456789abcdefABCDEF" };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    bool is_in_list = false, is_mask = false;
    int r = 0;
    for (char *word = NULL; r == 0 && (word = strsep(&rest, ",;")) != NULL;) {
        if (is_in_list && word[0] != '\0' && strchr(digits[is_mask], word[0]) != NULL) {
            r = check_bound(word, is_mask, err);
            continue;
        }
        char *list = strpbrk(word, ":=");
        if (list != NULL)
            *list++ = '\0';
        _cleanup_free_ char *key = xasprintf(" %s ", word);
        is_mask = strncasecmp(word, "mask_", 5) == 0;
        is_in_list = is_mask || strncasecmp(word, "map_", 4) == 0;
        if (word[0] == '\0' || strcasestr(known, key) == NULL)
            r = error_set(
                err, -EINVAL, "unrecognized --cpu-bind argument \"%.60s\"", word[0] != '\0' ? word : value);
        else if (is_in_list && (list == NULL || list[0] == '\0'))
            r = error_set(err, -EINVAL, "missing list for \"--cpu-bind=%.60s:<list>\"", word);
        else if (is_in_list)
            r = check_bound(list, is_mask, err);
        if (r < 0)
            return refuse_binding(err, r);
    }
    return r;
}

static const struct {
    const char *name;
    int (*check)(const struct slurm_option *option, const char *value, struct error *err);
} rules[] = {
    { "acctg-freq", check_frequency },
    { "cpu-bind", check_binding },
    { "cpu_bind", check_binding },
    { "distribution", check_plane },
    { "extra-node-info", check_topology },
    { "gid", check_root },
    { "nice", check_nice },
    { "priority", check_priority },
    { "uid", check_root },
};

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
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i].name, option->name) == 0)
            r = rules[i].check(option, value, err);
    return r;
}
