/* SPDX-License-Identifier: MIT */
#include "cli/submit/slurm_option.h"
#include "cli/submit/slurm_check.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "job/slurm.h"

#define LONG_BASE 0x1000 // values of options without a letter, higher than all letters

static bool has(const struct slurm_program *program, const struct slurm_option *option)
{
    return (option->programs & program->bit) != 0;
}

bool slurm_option_is_optional(const struct slurm_option *option)
{
    const char *end = option->argument != NULL ? strchr(option->argument, ']') : NULL;
    return option->argument != NULL && option->argument[0] == '[' && end != NULL && end[1] == '\0';
}

const char *slurm_effect_name(enum slurm_effect effect)
{
    static const char *const names[] = { [SLURM_DONE] = "done",
        [SLURM_RECORDED] = "recorded",
        [SLURM_ACCEPTED] = "accepted",
        [SLURM_REFUSED] = "refused" };
    return names[effect];
}

const struct slurm_option *slurm_option_find(const struct slurm_program *program, const char *name)
{
    for (const struct slurm_option *row = program->options; row != NULL && row->name != NULL; row++)
        if (has(program, row) && strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static int set(const struct slurm_reading *reading, const struct slurm_option *option, const char *value,
    struct error *err)
{
    int r = 0;
    if (reading->report != NULL) {
        struct error problem = { 0 };
        r = slurm_check_value(option, value, &problem);
        if (r == 0 && option->effect == SLURM_DONE)
            r = option->set(reading->target, option, value, &problem);
        reading->report(reading, option, value, r < 0 ? &problem : NULL);
        return 0;
    }
    r = slurm_check_value(option, value, err);
    if (r < 0)
        return reading->where != NULL ? error_wrap(err, "%s", reading->where) : r;
    switch (option->effect) {
    case SLURM_DONE: r = option->set(reading->target, option, value, err); break;
    case SLURM_RECORDED:
        if (reading->record != NULL)
            reading->record(reading, option, value);
        break;
    case SLURM_ACCEPTED:
        if (reading->ignore != NULL)
            reading->ignore(reading, option, value);
        break;
    case SLURM_REFUSED: r = error_set(err, -EINVAL, "--%s is not supported: %s", option->name, option->help);
    }
    if (r == 0 && reading->seen != NULL)
        reading->seen(reading, option, value);
    return r < 0 && reading->where != NULL ? error_wrap(err, "%s", reading->where) : r;
}

int slurm_bad_value(const struct slurm_option *option, struct error *err)
{
    return error_set(err, -EDOM, "Invalid --%s specification", option->name);
}

int slurm_bad_number(const struct slurm_option *option, const char *value, struct error *err)
{
    return error_set(err, -EINVAL, "Invalid numeric value \"%.60s\" for --%s.", value, option->name);
}

bool slurm_is_bad_value(const struct error *err)
{
    return err->code == -EDOM;
}

int slurm_keep_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    *(const char **)(void *)((char *)target + option->member) = value;
    return 0;
}

int slurm_keep_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    *((bool *)target + option->member) = true;
    return 0;
}

int slurm_set_nothing(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    return 0;
}

int slurm_set_clusters(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ", ")) != NULL;)
        if (name[0] != '\0' && strcmp(name, SLURM_CLUSTER) != 0 && strcasecmp(name, "all") != 0) {
            (void)error_set(err, -EINVAL, "No cluster '%.60s' known by database.", name);
            (void)error_hint(err,
                "'%.60s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list "
                "clusters' to see available clusters.",
                name);
            return error_mark(err, SLURM_BOTH, -EINVAL);
        }
    return 0;
}

/* The tables for getopt_long(), built from the same rows and valid while it runs. */
struct getopt_tables {
    struct option *names;
    const struct slurm_option **rows; // of names
    struct buffer letters;
};

static void make_tables(const struct slurm_reading *reading, bool stops, struct getopt_tables *ret)
{
    const struct slurm_program *program = reading->program;
    size_t count = 0, found = 0;
    while (program->options[count].name != NULL)
        count++;
    ret->names = xcalloc(count + 1, sizeof(*ret->names));
    ret->rows = xcalloc(count + 1, sizeof(*ret->rows));
    buffer_printf(&ret->letters, "%s%s", stops ? "+" : "", reading->is_strict ? ":" : "");
    for (size_t i = 0; i < count; i++) {
        const struct slurm_option *row = &program->options[i];
        int takes = row->argument == NULL           ? no_argument
                    : slurm_option_is_optional(row) ? optional_argument
                                                    : required_argument;
        if (!has(program, row))
            continue;
        ret->rows[found] = row;
        ret->names[found] = (struct option){ row->name, takes, NULL, LONG_BASE + (int)found };
        found++;
        if (row->letter != 0)
            buffer_printf(&ret->letters, "%c%s", row->letter,
                takes == no_argument         ? ""
                : takes == required_argument ? ":"
                                             : "::");
    }
}

static const struct slurm_option *find_value(const struct getopt_tables *tables, int value)
{
    if (value >= LONG_BASE)
        return tables->rows[value - LONG_BASE];
    for (size_t i = 0; tables->rows[i] != NULL; i++)
        if (tables->rows[i]->letter == value)
            return tables->rows[i];
    return NULL;
}

static int refuse(const struct slurm_reading *reading, int value, const char *word, struct error *err)
{
    if (!reading->is_strict)
        return error_set(err, -ENOENT, "Try \"%s --help\" for more information", reading->program->name);
    (void)error_set(
        err, -EINVAL, value == ':' ? "%.60s needs a value" : "'%.60s' is not an option of sbatch", word);
    return error_wrap(err, "%s", reading->where);
}

int slurm_options_read(
    const struct slurm_reading *reading, int argc, char **argv, bool stops, int *ret_first, struct error *err)
{
    struct getopt_tables tables = { 0 };
    int value, r = 0;
    make_tables(reading, stops, &tables);
    optind = 0; // glibc: restart
    while (
        r == 0 && (value = getopt_long(argc, argv, buffer_text(&tables.letters), tables.names, NULL)) != -1) {
        const struct slurm_option *option = value == '?' || value == ':' ? NULL : find_value(&tables, value);
        if (option != NULL)
            r = set(reading, option, optarg, err);
        else
            r = refuse(reading, value, argv[optind - 1], err);
    }
    *ret_first = optind;
    free(tables.names);
    free(tables.rows);
    buffer_clear(&tables.letters);
    return r;
}

static int set_from(const struct slurm_reading *reading, const char *variable, const struct slurm_option *row,
    struct error *err)
{
    const char *value = getenv(variable);
    struct slurm_reading from = *reading;
    from.where = variable;
    return value != NULL && (value[0] != '\0' || row->argument == NULL) ? set(&from, row, value, err) : 0;
}

int slurm_option_from_variable(
    const struct slurm_reading *reading, const char *variable, const char *option, struct error *err)
{
    return set_from(reading, variable, slurm_option_find(reading->program, option), err);
}

int slurm_options_from_environment(const struct slurm_reading *reading, const char *prefix, struct error *err)
{
    const struct slurm_program *program = reading->program;
    int r = 0;
    for (const struct slurm_option *row = program->options; r == 0 && row->name != NULL; row++) {
        if (!has(program, row) || row->variable == NULL)
            continue;
        _cleanup_free_ char *name = xasprintf("%s_%s", prefix, row->variable);
        r = set_from(reading, name, row, err);
    }
    const struct slurm_option *clusters = slurm_option_find(program, "clusters");
    if (r == 0 && clusters != NULL && (program->bit & SLURM_SUBMITS) == 0)
        r = set_from(reading, "SLURM_CLUSTERS", clusters, err);
    return r;
}

/* --- help --- */

#define USAGE_COLUMNS 79

/* "Usage: squeue [-A list] [-a] [--me] ...", without a line limit. */
static void print_usage(const struct slurm_program *program)
{
    int column = printf("Usage: %s", program->name), indent = column;
    for (const struct slurm_option *row = program->options; row != NULL && row->name != NULL; row++) {
        if (!has(program, row) || row->effect == SLURM_REFUSED)
            continue;
        const char *argument = row->argument != NULL ? row->argument : "";
        _cleanup_free_ char *text =
            row->letter != 0 ? xasprintf("[-%c%s%s]", row->letter, argument[0] != '\0' ? " " : "", argument)
                             : xasprintf("[--%s%s%s]", row->name, argument[0] != '\0' ? "=" : "", argument);
        if (column + 1 + (int)strlen(text) > USAGE_COLUMNS)
            column = printf("\n%*s", indent, "") - 1;
        column += printf(" %s", text);
    }
    const char *operands = program->usage + (strncmp(program->usage, "[OPTIONS] ", 10) == 0 ? 10 : 0);
    (void)printf(column + 10 > USAGE_COLUMNS ? "\n%*s [--usage]" : "%*s [--usage]",
        column + 10 > USAGE_COLUMNS ? indent : 0, "");
    bool has_operands = operands[0] != '\0' && strcmp(operands, "[OPTIONS]") != 0;
    if (has_operands)
        (void)printf("\n%*s %s", indent, "", operands);
    (void)putchar('\n');
}

static void print_row(int letter, const char *name, const char *help, const char *remark)
{
    (void)printf("  %c%c%s %-26s %s%s\n", letter != 0 ? '-' : ' ', letter != 0 ? letter : ' ',
        letter != 0 ? "," : " ", name, help, remark);
}

/* "-h" is help for commands in which it is not another option. */
static bool has_help_letter(const struct slurm_program *program)
{
    for (const struct slurm_option *row = program->options; row != NULL && row->name != NULL; row++)
        if (has(program, row) && row->letter == 'h')
            return false;
    return true;
}

/* The headings of the submitting commands, and their options; options without a heading come first. */
static const struct heading {
    const char *title, *names; // names: between blanks
} headings[] = {
    { NULL, NULL },
    { "Constraint options",
        " cluster-constraint constraint contiguous exclude mem mincpus nodefile nodelist reservation tmp " },
    { "Consumable resources related options", " exclusive mem-per-cpu " },
    { "GPU scheduling options", " cpus-per-gpu gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket "
                                "gpus-per-task mem-per-gpu " },
};
#define HEADINGS (sizeof(headings) / sizeof(headings[0]))

static size_t heading_of(const struct slurm_program *program, const struct slurm_option *row)
{
    _cleanup_free_ char *word = xasprintf(" %s ", row->name);
    for (size_t i = 1; (program->bit & SLURM_SUBMITS) != 0 && i < HEADINGS; i++)
        if (strstr(headings[i].names, word) != NULL)
            return i;
    return 0;
}

static void print_rows(const struct slurm_program *program, size_t heading)
{
    for (const struct slurm_option *row = program->options; row != NULL && row->name != NULL; row++) {
        if (!has(program, row) || row->effect == SLURM_REFUSED || heading_of(program, row) != heading)
            continue;
        const char *argument = row->argument != NULL ? row->argument : "";
        _cleanup_free_ char *name =
            slurm_option_is_optional(row)
                ? xasprintf("--%s[=%s", row->name, argument + 1)
                : xasprintf("--%s%s%s", row->name, argument[0] != '\0' ? "=" : "", argument);
        print_row(row->letter, name, row->help,
            row->effect == SLURM_DONE       ? ""
            : row->effect == SLURM_RECORDED ? " (recorded)"
                                            : " (no effect)");
    }
}

static void print_help(const struct slurm_program *program)
{
    static const struct {
        unsigned programs;
        const char *heading; // Slurm's heading, which scripts and users know
    } titles[] = { { SLURM_SACCT | SLURM_SCONTROL | SLURM_SSTAT | SLURM_SREPORT,
                       "Valid <OPTION> values are" },
        { SLURM_SRUN | SLURM_SALLOC, "Parallel run options" }, { SLURM_SSHARE, "Valid OPTIONs are" } };
    const char *heading = "Options";
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        if ((titles[i].programs & program->bit) != 0)
            heading = titles[i].heading;
    (void)printf("Usage: %s %s\n\n%s.\n\n%s:\n", program->name, program->usage, program->help, heading);
    print_rows(program, 0);
    for (size_t i = 1; (program->bit & SLURM_SUBMITS) != 0 && i < HEADINGS; i++) {
        (void)printf("\n%s:\n", headings[i].title);
        print_rows(program, i);
    }
    (void)puts("\nHelp options:");
    print_row(has_help_letter(program) ? 'h' : 0, "--help", "show this help message", "");
    print_row(0, "--usage", "display brief usage message", "");
    (void)puts("\nOther options:");
    print_row('V', "--version", "output version information and exit", "");
    (void)printf("\nThis is mgpu with the commands of Slurm: man mgpu-slurm\n");
}

bool slurm_options_answer(const struct slurm_program *program, int argc, char **argv)
{
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        bool is_letter = strcmp(argv[i], "-h") == 0 && has_help_letter(program);
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0)
            (void)puts("slurm " SLURM_VERSION);
        else if (strcmp(argv[i], "--help") == 0 || is_letter)
            print_help(program);
        else if (strcmp(argv[i], "--usage") == 0)
            print_usage(program);
        else if ((program->bit & SLURM_SUBMITS) != 0 && strcmp(argv[i], "--gres=help") == 0)
            (void)puts("Valid gres options are:\ngpu[[:type]:count]");
        else
            continue;
        return true;
    }
    return false;
}
