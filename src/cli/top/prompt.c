/* SPDX-License-Identifier: MIT */
/* The prompt in the bottom line. A question is answered by one key; any key other than y means no. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "cli/top/keys.h"

#define CTRL(letter) ((letter)&0x1f)

void top_ask_text(struct top *top, const char *label, const char *text, bool is_live, prompt_done_fn *done)
{
    struct prompt *prompt = &top->view.prompt;
    *prompt = (struct prompt){ .done = done, .is_live = is_live };
    (void)snprintf(prompt->label, sizeof(prompt->label), "%s", label);
    (void)snprintf(prompt->text, sizeof(prompt->text), "%s", text);
    (void)snprintf(prompt->before, sizeof(prompt->before), "%s", text);
}

void top_ask_yes(struct top *top, const char *question, prompt_done_fn *done)
{
    struct prompt *prompt = &top->view.prompt;
    *prompt = (struct prompt){ .done = done, .is_question = true };
    (void)snprintf(prompt->label, sizeof(prompt->label), "%s", question);
}

static void append(struct prompt *prompt, int code)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = { 0 };
    size_t n = wcrtomb(bytes, (wchar_t)code, &state), length = strlen(prompt->text);
    if (n > sizeof(bytes) || length + n > PROMPT_BYTES_MAX)
        return;
    memcpy(prompt->text + length, bytes, n);
    prompt->text[length + n] = '\0';
}

/* Removes one character, whatever its length in bytes. */
static void remove_last(struct prompt *prompt)
{
    size_t length = strlen(prompt->text);
    while (length > 0 && ((unsigned char)prompt->text[length - 1] & 0xc0) == 0x80)
        length--;
    prompt->text[length > 0 ? length - 1 : 0] = '\0';
}

static void finish(struct top *top, const char *text)
{
    char copy[PROMPT_BYTES_MAX + 1];
    prompt_done_fn *done = top->view.prompt.done;
    (void)snprintf(copy, sizeof(copy), "%s", text);
    top->view.prompt.done = NULL;
    if (done != NULL)
        done(top, copy);
}

static void complete(struct prompt *prompt)
{
    const char *word = prompt->complete == NULL ? NULL : prompt->complete(prompt->text);
    if (word != NULL)
        (void)snprintf(prompt->text, sizeof(prompt->text), "%s", word);
}

static void edit(struct top *top, int code)
{
    struct prompt *prompt = &top->view.prompt;
    if (code == TOP_KEY_TAB)
        complete(prompt);
    else if (code == TOP_KEY_BACKSPACE)
        remove_last(prompt);
    else if (code == CTRL('u'))
        prompt->text[0] = '\0';
    else if (code >= ' ' && code < TOP_KEY_UP && code != 0x7f)
        append(prompt, code);
    if (prompt->is_live)
        prompt->done(top, prompt->text);
}

bool top_prompt_press(struct top *top, int code)
{
    struct prompt *prompt = &top->view.prompt;
    if (prompt->done == NULL)
        return false;
    if (prompt->is_question) {
        bool is_yes = code == 'y' || code == 'Y';
        if (is_yes)
            finish(top, "y");
        else
            top_say(top, false, "nothing changed");
        prompt->done = NULL;
    } else if (code == TOP_KEY_ENTER || code == '\r') {
        finish(top, prompt->text);
    } else if (code == TOP_KEY_ESCAPE) {
        if (prompt->is_live)
            finish(top, prompt->before);
        prompt->done = NULL;
    } else {
        edit(top, code);
    }
    return true;
}
