/* SPDX-License-Identifier: MIT */
/* sinfo: the partitions and their nodes. Nodes in the same state share a line, unless -N requests one
 * each. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/slurm_verbose.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/json_form.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/sinfo_columns.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/table.h"

#define FORMAT_USUAL      "%9P %.5a %.10l %.6D %.6t %N"
#define FORMAT_SUMMARY    "%9P %.5a %.10l %.16F %N"
#define FORMAT_NODES      "%N %.6D %.9P %6t"
#define FORMAT_NODES_LONG "%N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
#define NODE_WIDTH_MIN    9 // of the names with -N; longer names widen the column
#define FORMAT_LONG       "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
#define FORMAT_REASONS    "%20E %9u %19H %N"

struct sinfo {
    const char *format, *long_format, *nodes, *partitions, *states, *sort;
    bool is_headless, is_each_node, is_reasons, is_summary, is_long, is_json, is_dead, is_responding,
        is_reservations;
    int64_t repeat_s;
    struct strings given; // options, for --verbose
};

static int set_repeat(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    return parse_integer(value, "--iterate", 1, INT32_MAX, &((struct sinfo *)target)->repeat_s, NULL) < 0
               ? error_set(err, -EINVAL, "Error: invalid entry for --iterate=%.60s", value)
               : 0;
}

#define TEXT(member) SLURM_TEXT_OF(struct sinfo, member)
#define FLAG(member) SLURM_FLAG_OF(struct sinfo, member)

const struct slurm_option slurm_sinfo_options[] = {
    SLURM_NO_EFFECT(SLURM_SINFO, "all", 'a', NULL, NULL, "all partitions"),
    SLURM_ROW(SLURM_SINFO, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SINFO, "cluster", 0, "list", slurm_set_clusters, NULL, "the same"),
    SLURM_ROW(SLURM_SINFO, "dead", 'd', NULL, FLAG(is_dead), NULL, "nodes that do not answer"),
    SLURM_NO_EFFECT(SLURM_SINFO, "exact", 'e', NULL, NULL, "only identical nodes share a line"),
    SLURM_NO_EFFECT(SLURM_SINFO, "federation", 0, NULL, "FEDERATION", "of the federation"),
    SLURM_ROW(
        SLURM_SINFO, "format", 'o', "format", TEXT(format), "FORMAT", "what is printed, as letters: '%P %t'"),
    SLURM_ROW(SLURM_SINFO, "Format", 'O', "names", TEXT(long_format), NULL,
        "what is printed, as names: Partition,Nodes"),
    SLURM_NO_EFFECT(SLURM_SINFO, "future", 'F', NULL, NULL, "nodes of the future"),
    SLURM_NO_EFFECT(SLURM_SINFO, "hide", 0, NULL, NULL, "no hidden partitions"),
    SLURM_ROW(SLURM_SINFO, "iterate", 'i', "seconds", set_repeat, NULL, "print again after this time"),
    SLURM_ROW(SLURM_SINFO, "json", 0, NULL, FLAG(is_json), NULL, "print JSON, as openapi v0.0.38 of Slurm"),
    SLURM_ROW(SLURM_SINFO, "list-reasons", 'R', NULL, FLAG(is_reasons), NULL, "why nodes are out of service"),
    SLURM_NO_EFFECT(SLURM_SINFO, "local", 0, NULL, "LOCAL", "of this cluster"),
    SLURM_ROW(SLURM_SINFO, "long", 'l', NULL, FLAG(is_long), NULL, "more columns"),
    SLURM_ROW(SLURM_SINFO, "Node", 'N', NULL, FLAG(is_each_node), NULL, "one line for each node"),
    SLURM_ROW(SLURM_SINFO, "nodes", 'n', "list", TEXT(nodes), NULL, "these nodes"),
    SLURM_NO_EFFECT(SLURM_SINFO, "noconvert", 0, NULL, NULL, "sizes as they are stored"),
    SLURM_ROW(SLURM_SINFO, "noheader", 'h', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_ROW(SLURM_SINFO, "partition", 'p', "partition", TEXT(partitions), "PARTITION", "these partitions"),
    SLURM_ROW(SLURM_SINFO, "responding", 'r', NULL, FLAG(is_responding), NULL, "nodes that answer"),
    SLURM_ROW(SLURM_SINFO, "sort", 'S', "letters", TEXT(sort), "SORT",
        "order: by letters of -o, '-' for descending"),
    SLURM_ROW(SLURM_SINFO, "states", 't', "list", TEXT(states), NULL, "nodes in these states"),
    SLURM_ROW(SLURM_SINFO, "summarize", 's', NULL, FLAG(is_summary), NULL, "one line for each partition"),
    SLURM_ROW(SLURM_SINFO, "reservation", 'T', NULL, FLAG(is_reservations), NULL,
        "reservations, of which there are none"),
    SLURM_ROW(SLURM_SINFO, "verbose", 'v', NULL, slurm_set_nothing, NULL, "print the options first"),
    SLURM_REFUSE(SLURM_SINFO, "yaml", 0, NULL, SLURM_NO_YAML),
    { 0 },
};

/* States of Slurm, whether or not nodes of mgpu can be in them. */
static int check_states(const struct sinfo *sinfo, struct error *err)
{
    static const char known[] =
        "all,alloc,allocated,comp,completing,down,drain,drained,draining,drng,fail,failing,"
        "future,idle,maint,mix,mixed,no_respond,npc,perfctrs,planned,power_down,"
        "powering_down,powering_up,reboot,resv,reserved,unk,unknown";
    static const char valid[] =
        "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,"
        "cloud,completing,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,"
        "unknown";
    _cleanup_free_ char *copy = sinfo->states != NULL ? xstrdup(sinfo->states) : NULL;
    char *rest = copy;
    for (char *word = NULL; rest != NULL && (word = strsep(&rest, ",&")) != NULL;) {
        for (char *p = word; *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
        if (slurm_list_has(known, word))
            continue;
        (void)fprintf(stderr, "sinfo: error: Bad state string: \"%.60s\"\n", word);
        return error_set(err, -EINVAL, "valid states: %s", valid);
    }
    return 0;
}

static bool is_wanted(const struct sinfo *sinfo, const json_t *node)
{
    bool is_state = sinfo->states == NULL || slurm_list_has(sinfo->states, slurm_node_state(node)) ||
                    slurm_list_has(sinfo->states, slurm_node_state_compact(node));
    bool is_reason = !sinfo->is_reasons || field_text(node, "reason") != NULL;
    _cleanup_strings_ struct strings names = { 0 };
    bool is_node = sinfo->nodes == NULL, is_up = !field_is(node, "state", "down");
    if ((sinfo->is_dead && is_up) || (sinfo->is_responding && !is_up))
        return false;
    if (sinfo->nodes != NULL)
        (void)hostlist_expand(sinfo->nodes, &names, NULL);
    for (size_t i = 0; i < names.count; i++)
        is_node |= strcmp(names.items[i], field_text(node, "name")) == 0;
    return is_state && is_reason && is_node;
}

static json_t *add_group(json_t *groups, json_t *partition)
{
    json_t *group = json_object();
    (void)json_object_set(group, "partition", partition);
    (void)json_object_set_new(group, "nodes", json_array());
    (void)json_array_append_new(groups, group);
    return group;
}

/* Adds a node to the line of nodes like it, or to a new one. */
static void place_node(const struct sinfo *sinfo, const struct slurm_table *table, json_t *partition,
    json_t *node, json_t *groups)
{
    json_t *into = NULL;
    for (size_t k = 0; k < json_array_size(groups) && into == NULL; k++) {
        json_t *group = json_array_get(groups, k);
        const json_t *first = json_array_get(json_object_get(group, "nodes"), 0);
        if (sinfo->is_each_node && (json_object_get(group, "partition") != partition ||
                                       !field_is(first, "name", field_text(node, "name"))))
            continue;
        if (sinfo_is_alike(table, group, partition, node))
            into = group;
    }
    if (into == NULL)
        into = add_group(groups, partition);
    size_t index = 0;
    json_t *other = NULL, *nodes = json_object_get(into, "nodes");
    json_array_foreach(nodes, index, other) if (other == node) return;
    (void)json_array_append(nodes, node);
}

/* The order of lines without --sort, as in Slurm: nodes out of service first, then by free resources. */
static int state_rank(const json_t *node)
{
    static const char *const order[] = { "down", "drained", "draining", "mixed", "allocated", "idle" };
    int rank = 0;
    while (rank < (int)(sizeof(order) / sizeof(order[0])) && strcmp(slurm_node_state(node), order[rank]) != 0)
        rank++;
    return rank;
}

static int by_state(const void *a, const void *b)
{
    const json_t *first = *(json_t *const *)a, *second = *(json_t *const *)b;
    int difference = state_rank(first) - state_rank(second);
    return difference != 0 ? difference : strverscmp(field_text(first, "name"), field_text(second, "name"));
}

/* The caller releases the array. */
static json_t *sort_nodes(const json_t *nodes)
{
    size_t count = json_array_size(nodes);
    _cleanup_free_ json_t **sorted = xcalloc(count + 1, sizeof(json_t *));
    json_t *ret = json_array();
    for (size_t i = 0; i < count; i++)
        sorted[i] = json_array_get(nodes, i);
    qsort(sorted, count, sizeof(json_t *), by_state);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(ret, sorted[i]);
    return ret;
}

static bool has_partition(const json_t *groups, const json_t *partition)
{
    size_t index = 0;
    json_t *group = NULL;
    json_array_foreach(
        groups, index, group) if (json_object_get(group, "partition") == partition) return true;
    return false;
}

/* Nodes in several partitions are counted once, unless the lines show a value of the partition. */
static json_t *group_nodes(
    const struct sinfo *sinfo, const struct slurm_table *table, const json_t *partitions, const json_t *nodes)
{
    json_t *groups = json_array(), *partition = NULL, *node = NULL;
    _cleanup_json_ json_t *sorted = sort_nodes(nodes);
    size_t index = 0, place = 0;
    json_array_foreach(partitions, index, partition)
    {
        if (sinfo->partitions != NULL && !slurm_list_has(sinfo->partitions, field_text(partition, "name")))
            continue;
        json_array_foreach(sorted, place,
            node) if (slurm_partition_has(partition, field_text(node, "name")) && is_wanted(sinfo, node))
            place_node(sinfo, table, partition, node, groups);
        if (!sinfo->is_each_node && !sinfo->is_reasons && !has_partition(groups, partition) &&
            slurm_table_has(table, "Partition"))
            (void)add_group(groups, partition);
    }
    return groups;
}

static int read_format(const struct sinfo *sinfo, struct slurm_table *table, struct error *err)
{
    const char *format = sinfo->format != NULL && strcasecmp(sinfo->format, "%all") == 0 ? sinfo_format_all
                         : sinfo->format != NULL                                         ? sinfo->format
                         : sinfo->is_reasons                                             ? FORMAT_REASONS
                         : sinfo->is_each_node ? (sinfo->is_long ? FORMAT_NODES_LONG : FORMAT_NODES)
                         : sinfo->is_summary   ? FORMAT_SUMMARY
                         : sinfo->is_long      ? FORMAT_LONG
                                               : FORMAT_USUAL;
    return sinfo->long_format != NULL ? slurm_table_read_names(table, sinfo->long_format, err)
                                      : slurm_table_read_letters(table, format, err);
}

/* With -N and the default format, the column of node names is as wide as the longest. */
static void fit_names(const struct sinfo *sinfo, const json_t *nodes, struct slurm_table *table)
{
    size_t index = 0;
    json_t *node = NULL;
    if (!sinfo->is_each_node || sinfo->format != NULL || sinfo->long_format != NULL || sinfo->is_reasons)
        return;
    table->cells[0].width = NODE_WIDTH_MIN;
    json_array_foreach(nodes, index, node)
    {
        int width = (int)strlen(field_text(node, "name"));
        table->cells[0].width = width > table->cells[0].width ? width : table->cells[0].width;
    }
}

static void print_json(const struct sinfo *sinfo, const json_t *partitions, const json_t *nodes)
{
    json_t *list = json_array(), *node = NULL;
    size_t index = 0;
    json_array_foreach(nodes, index, node)
    {
        _cleanup_free_ char *in = slurm_partitions_of(partitions, field_text(node, "name"));
        bool is_in = sinfo->partitions == NULL || slurm_lists_meet(sinfo->partitions, in);
        if (is_in && is_wanted(sinfo, node))
            (void)json_array_append_new(list, slurm_json_node(node, partitions));
    }
    slurm_json_print("nodes", list, false);
}

static int print(const struct sinfo *sinfo, struct error *err)
{
    struct client client;
    _cleanup_(slurm_table_clear) struct slurm_table table = { .columns = sinfo_columns,
        .is_headless = sinfo->is_headless,
        .sort = sinfo->sort != NULL   ? sinfo->sort
                : sinfo->is_each_node ? "N"
                                      : NULL };
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL, *groups = NULL;
    client_init(&client, NULL, NULL);
    int r = slurm_nodes_get(&client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(&client, &partitions, err);
    client_clear(&client);
    if (r == 0)
        r = read_format(sinfo, &table, err);
    if (r == 0 && sinfo->is_json) {
        print_json(sinfo, partitions, nodes);
    } else if (r == 0) {
        groups = group_nodes(sinfo, &table, partitions, nodes);
        fit_names(sinfo, nodes, &table);
        if (!sinfo->is_headless &&
            (sinfo->is_long || sinfo->repeat_s > 0 || slurm_verbose_level(&sinfo->given) > 0))
            slurm_print_date();
        slurm_table_print(&table, groups);
    }
    return r;
}

static void note_option(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value)
{
    slurm_verbose_note(&((struct sinfo *)reading->target)->given, option, value);
}

/* --verbose, including consequences of several options. */
static void print_options(struct sinfo *sinfo)
{
    bool is_filter = sinfo->nodes != NULL || sinfo->partitions != NULL || sinfo->states != NULL ||
                     sinfo->is_dead || sinfo->is_responding || sinfo->is_reasons;
    bool has_partition = sinfo->long_format != NULL ? strcasestr(sinfo->long_format, "part") != NULL
                         : sinfo->format != NULL    ? strpbrk(sinfo->format, "PR") != NULL
                                                    : !sinfo->is_reasons;
    if (sinfo->is_dead && sinfo->states == NULL)
        strings_set_env(&sinfo->given, "states", "down");
    if (is_filter)
        strings_set_env(&sinfo->given, "filtering", "1");
    if (has_partition)
        strings_set_env(&sinfo->given, "part_field", "1");
    if (slurm_verbose_print(slurm_verbose_sinfo, &sinfo->given))
        (void)puts("");
}

int slurm_run_sinfo(const struct slurm_program *program, int argc, char **argv)
{
    struct sinfo sinfo = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sinfo, .seen = note_option };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_from_environment(&reading, "SINFO", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0)
        r = check_states(&sinfo, &err);
    if (r == 0)
        print_options(&sinfo);
    if (r < 0 || sinfo.is_reservations) {
        strings_clear(&sinfo.given);
        return r < 0 ? slurm_fail(program, &err) : puts("No reservations in the system") < 0;
    }
    do {
        r = print(&sinfo, &err);
        (void)fflush(stdout);
        if (r == 0 && sinfo.repeat_s > 0)
            (void)sleep((unsigned)sinfo.repeat_s);
    } while (r == 0 && sinfo.repeat_s > 0);
    strings_clear(&sinfo.given);
    return r < 0 ? slurm_fail_load("slurm_load_partitions", &err) : 0;
}
