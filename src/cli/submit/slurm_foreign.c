/* SPDX-License-Identifier: MIT */
/*
 * Each kind is a table: a letter, and the option of sbatch that it means or none. Some values are converted;
 * resources of #PBS -l are a separate table.
 */
#include "cli/submit/slurm_foreign.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/term/words.h"

#define CODE_LINES_MAX 100 // lines other than comments, after which no options are read

/* Adds "--NAME=VALUE"; a NULL value is a flag. */
static void add(struct strings *words, const char *name, const char *value)
{
    strings_take(words, value != NULL ? xasprintf("--%s=%s", name, value) : xasprintf("--%s", name));
}

typedef int convert_fn(const char *value, struct strings *words, struct error *err);

/* --- values of #BSUB --- */

/* "n1 n2". */
static int add_hosts(const char *value, struct strings *words, struct error *err)
{
    _cleanup_free_ char *list = xstrdup(value);
    for (char *p = list; *p != '\0'; p++)
        *p = *p == ' ' ? ',' : *p;
    add(words, "nodelist", list);
    return 0;
}

/* Of a number without a unit, in KiB; "4MB" becomes "4M". */
static void add_size(const char *name, const char *value, const char *unit, struct strings *words)
{
    size_t length = strlen(value);
    bool is_number = length > 0 && isdigit((unsigned char)value[length - 1]);
    bool has_byte = length > 1 && toupper((unsigned char)value[length - 1]) == 'B';
    _cleanup_free_ char *size = xasprintf("%.*s%s", (int)(length - has_byte), value, is_number ? unit : "");
    add(words, name, size);
}

static int add_memory_of_cpu(const char *value, struct strings *words, struct error *err)
{
    add_size("mem-per-cpu", value, "K", words);
    return 0;
}

/* "2,4": from 2 to 4 tasks. */
static int add_tasks(const char *value, struct strings *words, struct error *err)
{
    const char *comma = strchr(value, ',');
    if (comma != NULL && comma[1] == '\0')
        return error_set(err, -EINVAL, "#BSUB -n format not correct given: '%.60s'", value);
    add(words, "ntasks", comma != NULL ? comma + 1 : value);
    return 0;
}

/* --- values of #PBS --- */

/* "abe", or "n". */
static int add_mail(const char *value, struct strings *words, struct error *err)
{
    static const struct {
        const char *letters, *type;
    } types[] = { { "bB", "BEGIN" }, { "eE", "END" }, { "aA", "FAIL" } };
    _cleanup_buffer_ struct buffer list = { 0 };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strpbrk(value, types[i].letters) != NULL)
            buffer_printf(&list, "%s%s", list.length > 0 ? "," : "", types[i].type);
    if (strpbrk(value, "nN") != NULL)
        add(words, "mail-type", "NONE");
    else if (list.length > 0)
        add(words, "mail-type", buffer_text(&list));
    return 0;
}

/* "depend=afterok:12"; other attributes are unknown here. */
static int add_attribute(const char *value, struct strings *words, struct error *err)
{
    if (strncasecmp(value, "depend=", 7) == 0)
        add(words, "dependency", value + 7);
    return 0;
}

/* "2:ppn=4", "n1+n2:ppn=2", "1:gpus=2": nodes, and processors and GPUs of each. */
static void add_nodes(const char *value, struct strings *words)
{
    _cleanup_free_ char *copy = xstrdup(value);
    _cleanup_buffer_ struct buffer names = { 0 };
    char *rest = copy;
    long count = 0, processors = 0;
    for (char *part = NULL; (part = strsep(&rest, "+:")) != NULL;) {
        if (strncmp(part, "gpus=", 5) == 0)
            add(words, "gpus-per-node", part + 5);
        else if (strncmp(part, "ppn=", 4) == 0)
            processors += strtol(part + 4, NULL, 10);
        else if (isdigit((unsigned char)part[0]))
            count += strtol(part, NULL, 10);
        else if (isalpha((unsigned char)part[0]))
            buffer_printf(&names, "%s%s", names.length > 0 ? "," : "", part);
    }
    _cleanup_free_ char *nodes = xasprintf("%ld", count);
    _cleanup_free_ char *tasks = xasprintf("%ld", processors * (count > 0 ? count : 1));
    if (count > 0)
        add(words, "nodes", nodes);
    if (processors > 0)
        add(words, "ntasks", tasks);
    if (names.length > 0)
        add(words, "nodelist", buffer_text(&names));
}

/* "nodes=2:ppn=2,mem=1gb,walltime=10:00"; "select=2:ncpus=2:mpiprocs=1" of PBS Pro. */
static int add_resources(const char *value, struct strings *words, struct error *err)
{
    static const struct {
        const char *name, *option;
    } resources[] = { { "cput", "time" }, { "pcput", "time" }, { "walltime", "time" },
        { "mpiprocs", "ntasks-per-node" }, { "ncpus", "mincpus" }, { "nice", "nice" },
        { "proc", "constraint" }, { "select", "nodes" } };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    while (rest != NULL && *rest != '\0') {
        bool is_pro = strncasecmp(rest, "select=", 7) == 0 || strncasecmp(rest, "ncpus=", 6) == 0 ||
                      strncasecmp(rest, "mpiprocs=", 9) == 0; // the next one may follow a colon
        char *one = strsep(&rest, is_pro ? ",:" : ","), *equals = strchr(one, '=');
        if (equals == NULL)
            continue;
        *equals++ = '\0';
        _cleanup_free_ char *each = xasprintf("gpu:%s", strcasecmp(one, "accelerator") == 0 ? "1" : equals);
        if (strcmp(one, "nodes") == 0)
            add_nodes(equals, words);
        else if (strcmp(one, "mem") == 0 || strcmp(one, "file") == 0)
            add_size(one[0] == 'm' ? "mem" : "tmp", equals, "", words);
        else if (strcasecmp(one, "naccelerators") == 0 ||
                 (strcasecmp(one, "accelerator") == 0 && strncasecmp(equals, "true", 4) == 0))
            add(words, "gres", each);
        for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
            if (strcasecmp(one, resources[i].name) == 0)
                add(words, resources[i].option, equals);
    }
    return 0;
}

/* --- kinds --- */

struct rule {
    int letter;
    const char *option;  // NULL: it has no effect, or is converted
    convert_fn *convert; // or NULL
};

static const struct kind {
    const char *mark, *letters; // in the form of getopt(3)
    const struct option *names;
    const struct rule *rules;
} kinds[] = {
    { "#BSUB", "+c:e:J:m:M:n:o:q:W:x",
        (const struct option[]){ { "cwd", 1, NULL, 'c' }, { "error_file", 1, NULL, 'e' },
            { "job_name", 1, NULL, 'J' }, { "hostname", 1, NULL, 'm' }, { "memory_limit", 1, NULL, 'M' },
            { "output_file", 1, NULL, 'o' }, { "queue_name", 1, NULL, 'q' }, { "time", 1, NULL, 'W' },
            { "exclusive", 0, NULL, 'x' }, { 0 } },
        (const struct rule[]){ { 'c', "chdir", NULL }, { 'e', "error", NULL }, { 'J', "job-name", NULL },
            { 'm', NULL, add_hosts }, { 'M', NULL, add_memory_of_cpu }, { 'n', NULL, add_tasks },
            { 'o', "output", NULL }, { 'q', "partition", NULL }, { 'W', "time", NULL },
            { 'x', "exclusive", NULL }, { 0 } } },
    { "#PBS", "+a:A:c:C:e:hIj:J:k:l:m:M:N:o:p:q:r:S:t:u:v:VW:z",
        (const struct option[]){ { "start_time", 1, NULL, 'a' }, { "account", 1, NULL, 'A' },
            { "error", 1, NULL, 'e' }, { "hold", 0, NULL, 'h' }, { "job_array", 1, NULL, 'J' },
            { "resource_list", 1, NULL, 'l' }, { "mail_options", 1, NULL, 'm' },
            { "mail_user_list", 1, NULL, 'M' }, { "job_name", 1, NULL, 'N' }, { "out", 1, NULL, 'o' },
            { "priority", 1, NULL, 'p' }, { "destination", 1, NULL, 'q' }, { "array", 1, NULL, 't' },
            { "variable_list", 1, NULL, 'v' }, { "attributes", 1, NULL, 'W' }, { 0 } },
        (const struct rule[]){ { 'a', "begin", NULL }, { 'A', "account", NULL }, { 'e', "error", NULL },
            { 'o', "output", NULL }, { 'h', "hold", NULL }, { 'J', "array", NULL }, { 't', "array", NULL },
            { 'l', NULL, add_resources }, { 'm', NULL, add_mail }, { 'M', "mail-user", NULL },
            { 'N', "job-name", NULL }, { 'p', "nice", NULL }, { 'q', "partition", NULL },
            { 'v', "export", NULL }, { 'W', NULL, add_attribute }, { 0 } } },
};

/* Collects the words of all lines with the mark. */
static int collect(const struct kind *kind, const char *text, struct strings *words, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    unsigned code = 0;
    int r = 0;
    for (char *line = NULL; r == 0 && code <= CODE_LINES_MAX && (line = strsep(&rest, "\n")) != NULL;) {
        if (strncmp(line, kind->mark, strlen(kind->mark)) == 0)
            r = words_split(line + strlen(kind->mark), words, err);
        else
            code += line[0] != '#';
    }
    for (size_t i = 0; i < words->count; i++) // a long name with one dash
        if (strcmp(words->items[i], "-cwd") == 0)
            words->items[i][2] = '\0';
    return r;
}

/* The options of sbatch that these words mean. */
static int translate(const struct kind *kind, const struct strings *given, const char *program,
    struct strings *words, struct error *err)
{
    _cleanup_free_ char **argv = xcalloc(given->count + 2, sizeof(char *));
    int letter = 0, r = 0;
    argv[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < given->count; i++)
        argv[i + 1] = given->items[i];
    optind = 0;
    while (r == 0 &&
           (letter = getopt_long((int)given->count + 1, argv, kind->letters, kind->names, NULL)) != -1) {
        const struct rule *rule = kind->rules;
        while (rule->letter != 0 && rule->letter != letter)
            rule++;
        if (letter == '?')
            return error_set(err, -EINVAL, "Unrecognized command line parameter ?");
        if (rule->convert != NULL)
            r = rule->convert(optarg, words, err);
        else if (rule->option != NULL)
            add(words, rule->option, optarg);
    }
    if (r == 0 && optind < (int)given->count + 1)
        return error_set(err, -EINVAL, "Invalid argument: %.60s", argv[optind]);
    return r;
}

int slurm_foreign_read(
    const char *text, const struct slurm_reading *reading, struct strings *kept, struct error *err)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        _cleanup_strings_ struct strings given = { 0 }, words = { 0 };
        struct slurm_reading here = *reading;
        int first = 0, r = collect(&kinds[i], text, &given, err);
        if (r == 0 && given.count == 0)
            continue;
        if (r == 0)
            r = translate(&kinds[i], &given, reading->program->name, &words, err);
        _cleanup_free_ char **argv = xcalloc(words.count + 2, sizeof(char *));
        argv[0] = (char *)(uintptr_t)reading->program->name;
        for (size_t k = 0; k < words.count; k++) {
            strings_add(kept, words.items[k]);
            argv[k + 1] = kept->items[kept->count - 1];
        }
        return r < 0 ? r : slurm_options_read(&here, (int)words.count + 1, argv, true, &first, err);
    }
    return 0;
}
