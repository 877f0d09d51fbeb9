/* SPDX-License-Identifier: MIT */
/*
 * A finding is a JSON object, under a key made of everything that its nodes have in common: jansson keeps the
 * order in which keys were added.
 */
#include "cli/cluster/findings.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/term/wrapped.h"

#define TEXT_MAX    1024
#define NODES_NAMED 3 // in a line
#define NAME_COLUMN 5
#define NAME_WIDTH  14
#define TEXT_COLUMN (NAME_COLUMN + NAME_WIDTH + 1)
#define FIX_COLUMN  (TEXT_COLUMN + 5) // after "fix: "

struct findings {
    json_t *by_key[VERDICT_BAD + 1]; // objects: name, nodes, count, text, fix
};

static const struct {
    const char *word, *name;
    enum color color;
} looks[] = {
    [VERDICT_ON] = { "on  ", "on", COLOR_GREEN },
    [VERDICT_OFF] = { "off ", "off", COLOR_YELLOW },
    [VERDICT_BAD] = { "BAD ", "bad", COLOR_RED },
};

struct findings *findings_new(void)
{
    struct findings *findings = xcalloc(1, sizeof(*findings));
    for (enum verdict verdict = VERDICT_ON; verdict <= VERDICT_BAD; verdict++)
        findings->by_key[verdict] = json_object();
    return findings;
}

void findings_freep(struct findings **findings)
{
    if (*findings == NULL)
        return;
    for (enum verdict verdict = VERDICT_ON; verdict <= VERDICT_BAD; verdict++)
        json_decref((*findings)->by_key[verdict]);
    free(*findings);
}

void findings_add(struct findings *findings, enum verdict verdict, const char *name, const char *node,
    const char *text, const char *fix)
{
    _cleanup_free_ char *shown_name = text_escape(name, TEXT_MAX);
    _cleanup_free_ char *shown = text_escape(text == NULL ? "" : text, TEXT_MAX);
    _cleanup_free_ char *shown_fix = text_escape(fix == NULL ? "" : fix, TEXT_MAX);
    _cleanup_free_ char *key =
        xasprintf("%s\n%s\n%s\n%s", node != NULL ? "node" : "all", shown_name, shown, shown_fix);
    json_t *finding = json_object_get(findings->by_key[verdict], key);
    if (finding == NULL) {
        finding = json_object();
        (void)json_object_set_new(finding, "verdict", json_string(looks[verdict].name));
        (void)json_object_set_new(finding, "name", json_string(shown_name));
        (void)json_object_set_new(finding, "text", json_string(shown));
        (void)json_object_set_new(finding, "fix", json_string(shown_fix));
        (void)json_object_set_new(finding, "nodes", json_array());
        (void)json_object_set_new(findings->by_key[verdict], key, finding);
    }
    if (node != NULL) {
        _cleanup_free_ char *shown_node = text_escape(node, TEXT_MAX);
        (void)json_array_append_new(json_object_get(finding, "nodes"), json_string(shown_node));
    }
}

static void print_line(const struct screen *screen, FILE *out, enum verdict verdict, const char *name,
    const char *text, const char *fix)
{
    (void)fprintf(out, "%s%s%s %-*s ", screen_color(screen, looks[verdict].color), looks[verdict].word,
        screen_color(screen, COLOR_NONE), NAME_WIDTH, name);
    size_t name_width = screen_text_width(name);
    wrapped_print(screen, text, NAME_COLUMN + (name_width > NAME_WIDTH ? name_width : NAME_WIDTH) + 1,
        TEXT_COLUMN, out);
    if (verdict == VERDICT_ON || fix == NULL || *fix == '\0')
        return;
    (void)fprintf(out, "%*sfix: ", TEXT_COLUMN, "");
    wrapped_print(screen, fix, FIX_COLUMN, FIX_COLUMN, out);
}

void finding_print(const struct screen *screen, FILE *out, enum verdict verdict, const char *name,
    const char *text, const char *fix)
{
    _cleanup_free_ char *shown_name = text_escape(name, TEXT_MAX);
    _cleanup_free_ char *shown = text_escape(text == NULL ? "" : text, TEXT_MAX);
    _cleanup_free_ char *shown_fix = text_escape(fix == NULL ? "" : fix, TEXT_MAX);
    print_line(screen, out, verdict, shown_name, shown, shown_fix);
}

/* "all 1000 nodes: ", "n1, n2, n3 and 14 more: "; empty if it concerns no node or the only one. */
static void append_nodes(struct buffer *line, const json_t *nodes, size_t n_nodes)
{
    size_t count = json_array_size(nodes);
    if (count == 0 || n_nodes <= 1)
        return;
    if (count == n_nodes) {
        buffer_printf(line, "all %zu nodes: ", count);
        return;
    }
    for (size_t i = 0; i < count && i < NODES_NAMED; i++)
        buffer_printf(line, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(nodes, i)));
    if (count > NODES_NAMED)
        buffer_printf(line, " and %zu more", count - NODES_NAMED);
    buffer_append_text(line, ": ");
}

/* The number of findings with that name so far, including this one. */
static size_t count_finding(json_t *counts, const char *name)
{
    json_int_t count = field_integer(counts, name, 0) + 1;
    (void)json_object_set_new(counts, name, json_integer(count));
    return (size_t)count;
}

static void print_omitted(
    json_t *counts, enum verdict verdict, const struct screen *screen, size_t lines_max, FILE *out)
{
    const char *name = NULL;
    json_t *count = NULL;
    json_object_foreach(counts, name, count)
    {
        json_int_t more = json_integer_value(count) - (json_int_t)lines_max;
        _cleanup_free_ char *text = xasprintf("%" JSON_INTEGER_FORMAT " more: mgpu doctor --all", more);
        if (lines_max != 0 && more > 0)
            print_line(screen, out, verdict, name, text, NULL);
    }
}

static void print_verdict(json_t *by_key, enum verdict verdict, const struct screen *screen, size_t n_nodes,
    size_t lines_max, FILE *out)
{
    _cleanup_json_ json_t *counts = json_object();
    const char *key = NULL;
    json_t *finding = NULL;
    json_object_foreach(by_key, key, finding)
    {
        _cleanup_buffer_ struct buffer line = { 0 };
        const char *name = field_text(finding, "name");
        if (count_finding(counts, name) > lines_max && lines_max != 0)
            continue;
        append_nodes(&line, json_object_get(finding, "nodes"), n_nodes);
        buffer_append_text(&line, field_text(finding, "text"));
        print_line(screen, out, verdict, name, buffer_text(&line), field_text(finding, "fix"));
    }
    print_omitted(counts, verdict, screen, lines_max, out);
}

json_t *findings_json(const struct findings *findings)
{
    json_t *all = json_array();
    for (enum verdict verdict = VERDICT_BAD + 1; verdict-- > VERDICT_ON;) {
        const char *key = NULL;
        json_t *finding = NULL;
        json_object_foreach(findings->by_key[verdict], key, finding)(void) json_array_append(all, finding);
    }
    return all;
}

void findings_print(
    struct findings *findings, const struct screen *screen, size_t n_nodes, size_t lines_max, FILE *out)
{
    for (enum verdict verdict = VERDICT_BAD + 1; verdict-- > VERDICT_ON;) {
        print_verdict(findings->by_key[verdict], verdict, screen, n_nodes, lines_max, out);
        (void)json_object_clear(findings->by_key[verdict]);
    }
}
