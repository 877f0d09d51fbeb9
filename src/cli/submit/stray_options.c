/* SPDX-License-Identifier: MIT */
/*
 * `mgpu submit python3 train.py -g 2` passes "-g 2" to train.py and runs a job with one GPU. Most letters and
 * many names are also options of other programs, so only some rows are checked: those whose name is
 * unambiguous, and those whose value is, such as the unit in 4h or 64G. The value must be one that the option
 * accepts.
 */
#include "cli/submit/stray_options.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"
#include "cli/submit/submit.h"

#define SHOWN_MAX 300

enum sign {
    SIGN_NAME,  // no other program has this name
    SIGN_VALUE, // the value has a unit
};

static const struct {
    const char *name; // name of the row; its letter counts as well
    enum sign sign;
} signs[] = {
    { "gpus", SIGN_NAME },
    { "gpu-ids", SIGN_NAME },
    { "gpu-allow", SIGN_NAME },
    { "gpus-per-node", SIGN_NAME },
    { "node-gpu-ids", SIGN_NAME },
    { "partition", SIGN_NAME },
    { "nodelist", SIGN_NAME },
    { "exclusive", SIGN_NAME },
    { "no-time-limit", SIGN_NAME },
    { "time-limit", SIGN_NAME },
    { "on-timeout", SIGN_NAME },
    { "on-preempt", SIGN_NAME },
    { "park-anywhere", SIGN_NAME },
    { "no-early", SIGN_NAME },
    { "no-park", SIGN_NAME },
    { "requeue-on", SIGN_NAME },
    { "max-requeues", SIGN_NAME },
    { "retry-on", SIGN_NAME },
    { "retry-oom", SIGN_NAME },
    { "notify-on", SIGN_NAME },
    { "cancel-if-never", SIGN_NAME },
    { "preemptible", SIGN_NAME },
    { "idle-timeout", SIGN_NAME },
    { "idle-ok", SIGN_NAME },
    { "log-max", SIGN_NAME },
    { "private-tmp", SIGN_NAME },
    { "tty-idle", SIGN_NAME },
    { "time", SIGN_VALUE },
    { "ram", SIGN_VALUE },
    { "mem", SIGN_VALUE },
    { "gpu-mem", SIGN_VALUE },
    { "grace", SIGN_VALUE },
};

/* A word of the command, read as an option. */
struct word {
    const struct option_row *row;
    const char *value;
    bool is_letter;
    int count; // number of words: 2 if the value is the next one
};

static bool has_unit(const char *value)
{
    size_t digits = strspn(value, "0123456789.");
    return digits > 0 && strchr("smhdkKMGT", value[digits]) != NULL && value[digits] != '\0' &&
           !isalpha((unsigned char)value[digits + 1]);
}

static bool has_sign(const struct word *word)
{
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (strcmp(signs[i].name, word->row->name) != 0)
            continue;
        bool is_named = signs[i].sign == SIGN_NAME && (!word->is_letter || strchr("gG", word->row->letter));
        return is_named || (word->value != NULL && has_unit(word->value));
    }
    return false;
}

static bool is_accepted(const struct call *call, const struct word *word)
{
    _cleanup_(submit_options_clear) struct submit_options scratch = { 0 };
    struct call trial = { .options = &scratch, .command = call->command };
    struct error err = { 0 };
    int r = options_set(&trial, word->row, word->value, &err);
    return r == 0;
}

/* `next`: the word after it, or NULL. */
static bool read_word(const char *text, const char *next, struct word *ret)
{
    static const struct option_row *const tables[] = { submit_rows, NULL };
    *ret = (struct word){ .is_letter = text[0] == '-' && text[1] != '-', .count = 1 };
    if (text[0] != '-' || text[1] == '\0')
        return false;
    const char *name = text + 2;
    size_t length = strcspn(name, "=");
    if (ret->is_letter)
        ret->row = options_find_letter(tables, text[1]);
    else
        ret->row = options_find(tables, name, length);
    if (ret->row == NULL || (!ret->is_letter && strlen(ret->row->name) != length))
        return false;
    const char *joined = ret->is_letter ? (name[0] != '\0' ? name : NULL) : strchr(name, '=');
    ret->value = joined != NULL ? joined + (joined[0] == '=') : NULL;
    if (ret->row->argument == NULL)
        return joined == NULL;
    if (ret->value == NULL) {
        ret->value = next;
        ret->count = 2;
    }
    return ret->value != NULL;
}

/* True if it is one of mgpu's options, which takes `count` words. */
static bool is_stray(const struct call *call, int argc, char *const *argv, int at, int *ret_count)
{
    struct word word;
    bool is = read_word(argv[at], at + 1 < argc ? argv[at + 1] : NULL, &word) && has_sign(&word) &&
              is_accepted(call, &word);
    *ret_count = is ? word.count : 1;
    return is;
}

static bool is_marked_off(const struct call *call)
{
    return call->n_words > 1 && strcmp(call->words[call->n_words - 1], "--") == 0;
}

void stray_options_warn(const struct call *call, int argc, char *const *argv)
{
    _cleanup_strings_ struct strings strays = { 0 }, line = { 0 }, rest = { 0 };
    if (call->is_quiet || !call->command->makes_jobs || is_marked_off(call))
        return;
    if (argc > 0)
        strings_add(&rest, argv[0]);
    for (int i = 1, count = 1; i < argc; i += count) {
        struct strings *side = is_stray(call, argc, argv, i, &count) ? &strays : &rest;
        for (int k = i; k < i + count; k++)
            strings_add(side, argv[k]);
    }
    if (strays.count == 0)
        return;
    for (int i = 1; i < call->n_words; i++)
        strings_add(&line, call->words[i]);
    for (size_t i = 0; i < strays.count; i++)
        strings_add(&line, strays.items[i]);
    strings_add(&line, "--");
    for (size_t i = 0; i < rest.count; i++)
        strings_add(&line, rest.items[i]);
    _cleanup_free_ char *all = text_quote_command(&strays), *typed = text_quote_command(&line);
    _cleanup_free_ char *name = text_escape(argv[0], SHOWN_MAX), *shown = text_escape(all, SHOWN_MAX);
    _cleanup_free_ char *whole = text_escape(typed, SHOWN_MAX);
    talk_line("warning: %s after the command is passed to %s; for mgpu: mgpu %s %s", shown, name,
        call->command->name, whole);
}
