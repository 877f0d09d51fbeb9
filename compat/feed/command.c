/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of a job are only known when it starts, so their numbers are a variable of the text; everything
 * else is quoted. `screen -D -m` needs no terminal and runs until its window closes. It reports no exit
 * status: the command writes that to a file. Its log is appended to the job's own output.
 */
#include "compat/feed/command.h"

#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "compat/feed/llm.h"

#define OPTION "--cuda"

static const char *const numbers[] = {
    [FEED_INJECT_PHYSICAL] = "\"$MGPU_GPUS\"",
    [FEED_INJECT_LOCAL] = "\"$(seq -s, 0 $((MGPU_NUM_GPUS - 1)))\"",
};

static void add_word(struct buffer *out, const char *word)
{
    _cleanup_strings_ struct strings words = { 0 };
    strings_add(&words, word);
    _cleanup_free_ char *quoted = text_quote_command(&words);
    buffer_printf(out, " %s", quoted);
}

/* True if this word is the value of the preceding --cuda: not if it is an option, but also if it is a
 * negative number. */
static bool is_value(const char *word)
{
    return word != NULL && (word[0] != '-' || isdigit((unsigned char)word[1]));
}

static void add_arguments(struct buffer *out, const struct strings *arguments, enum feed_inject inject)
{
    bool is_given = inject == FEED_INJECT_NEVER;
    for (size_t i = 0; i < arguments->count; i++) {
        const char *word = arguments->items[i];
        bool is_cuda = strcmp(word, OPTION) == 0,
             is_joined = strncmp(word, OPTION "=", strlen(OPTION "=")) == 0;
        if (inject == FEED_INJECT_NEVER || (!is_cuda && !is_joined)) {
            add_word(out, word);
            continue;
        }
        buffer_printf(out, is_joined ? " " OPTION "=%s" : " " OPTION " %s", numbers[inject]);
        is_given = true;
        i += is_cuda && i + 1 < arguments->count && is_value(arguments->items[i + 1]);
    }
    if (!is_given)
        buffer_printf(out, " " OPTION " %s", numbers[inject]);
}

static void add_screen(struct buffer *out, const char *inner, const char *mode)
{
    _cleanup_buffer_ struct buffer window = { 0 };
    buffer_printf(&window, "screen -X logfile flush 1; %s; echo $? >\"$0\"", inner);
    buffer_printf(out,
        "status=$(mktemp) || exit 1; trap 'rm -f \"$status\"' EXIT; "
        "trap 'exit 143' TERM INT HUP; export TERM=\"${TERM:-xterm}\"; "
        "screen -D -m -S \"gpujob_${MGPU_GPUS}_%s_${MGPU_JOB_ID}\" -L -Logfile \"$(readlink /proc/$$/fd/1)\" "
        "sh -c",
        mode);
    add_word(out, buffer_text(&window));
    buffer_append_text(out, " \"$status\"; exit \"$(cat \"$status\" | grep . || echo 1)\"");
}

/* Adds the variables that hide GPUs from the vendors' libraries. */
static void add_unset(struct buffer *run)
{
    buffer_append_text(run, "unset");
    for (size_t i = 0; i < gpu_vendors_count; i++)
        for (const struct gpu_variable *variable = gpu_vendors[i].variables; variable->name != NULL;
             variable++)
            if (variable->kind != GPU_VARIABLE_FIXED)
                buffer_printf(run, " %s", variable->name);
    buffer_append_text(run, "; ");
}

char *feed_command_make(const char *python, const char *script, const struct strings *arguments,
    enum feed_inject inject, const char *mode)
{
    _cleanup_buffer_ struct buffer run = { 0 }, out = { 0 };
    if (inject == FEED_INJECT_PHYSICAL)
        add_unset(&run);
    buffer_printf(&run, "%s%s -u", mode == NULL ? "exec " : "", python);
    add_word(&run, script);
    add_arguments(&run, arguments, inject);
    if (mode == NULL)
        return buffer_take(&run);
    add_screen(&out, buffer_text(&run), mode);
    return buffer_take(&out);
}

char *feed_command_mode(const struct strings *arguments)
{
    const char *mode = feed_find_argument(arguments, "--mode");
    char *copy = xstrdup(mode != NULL && mode[0] != '\0' ? mode : "run");
    for (char *p = copy; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("_.-", *p) == NULL)
            *p = '-';
    return copy;
}
