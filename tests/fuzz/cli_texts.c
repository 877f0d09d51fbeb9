/* SPDX-License-Identifier: MIT */
/*
 * Texts of others that commands read or show, by the first byte of the input: 'h' a list of hosts and 'n' the
 * names for one, which are the same names again when they are expanded; 'e' output with control sequences, of
 * which none is left wherever it was cut; 'm' a file of srun --multi-prog, in which each task has a program
 * or the error says why not.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hostlist.h"
#include "cli/term/escapes.h"
#include "compat/step/multi_prog.h"
#include "fuzz.h"

#define TASKS     5U
#define NAMES_MAX 512U // compressing compares each with each

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order, each once. */
static void sort(struct strings *names)
{
    size_t kept = 0;
    if (names->count == 0)
        return;
    qsort(names->items, names->count, sizeof(char *), by_text);
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    }
    names->count = kept;
    names->items[kept] = NULL;
}

static void try_names(struct strings *names)
{
    struct strings again = { 0 };
    struct error err = { 0 };
    if (names->count > NAMES_MAX)
        return;
    char *list = hostlist_compress(names);
    must_be(hostlist_expand(list, &again, &err) == 0);
    size_t count = again.count;
    sort(names);
    sort(&again);
    must_be(count == again.count && again.count == names->count); // each once
    for (size_t i = 0; i < names->count; i++)
        must_be(strcmp(names->items[i], again.items[i]) == 0);
    strings_clear(&again);
    free(list);
}

static void try_list(const char *text)
{
    struct strings names = { 0 };
    struct error err = { 0 };
    if (hostlist_expand(text, &names, &err) < 0)
        must_be(err.message[0] != '\0');
    else
        try_names(&names);
    strings_clear(&names);
}

/* Words without what a list is made of. */
static void try_words(char *text)
{
    struct strings names = { 0 };
    for (char *name; (name = strsep(&text, " ,[]\t\r\n\v\f")) != NULL;)
        if (*name != '\0')
            strings_add(&names, name);
    try_names(&names);
    strings_clear(&names);
}

static void strip(const uint8_t *bytes, size_t length, size_t piece, struct buffer *out)
{
    struct escapes escapes = { 0 };
    for (size_t at = 0; at < length; at += piece)
        escapes_strip(&escapes, bytes + at, length - at < piece ? length - at : piece, out);
}

static void try_escapes(const uint8_t *bytes, size_t length)
{
    if (length < 2)
        return;
    size_t piece = (size_t)bytes[0] + 1;
    struct buffer whole = { 0 }, parts = { 0 };
    strip(bytes + 1, length - 1, length, &whole);
    strip(bytes + 1, length - 1, piece, &parts);
    must_be(whole.length == parts.length && whole.length < length);
    must_be(whole.length == 0 || memcmp(whole.bytes, parts.bytes, whole.length) == 0);
    for (size_t i = 0; i < whole.length; i++) {
        uint8_t byte = whole.bytes[i];
        must_be((byte >= 0x20 && byte != 0x7f) || byte == '\t' || byte == '\n' || byte == '\r');
    }
    buffer_clear(&whole);
    buffer_clear(&parts);
}

static void try_programs(const uint8_t *bytes, size_t length)
{
    struct step_task tasks[TASKS] = { 0 };
    struct step step = { .tasks = tasks, .count = TASKS };
    struct multi_prog programs = { 0 };
    struct error err = { 0 };
    char path[64];
    int fd = memfd_create("multi-prog", MFD_CLOEXEC);
    must_be(fd >= 0 && write_all(fd, bytes, length) == 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int r = multi_prog_read(path, &step, &programs, &err);
    must_be(r == 0 || err.message[0] != '\0');
    for (uint32_t i = 0; r == 0 && i < TASKS; i++)
        must_be(tasks[i].command != NULL && tasks[i].command[0] != NULL);
    multi_prog_clear(&programs);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    char *text = xstrndup((const char *)bytes + 1, length - 1);
    if (bytes[0] == 'h')
        try_list(text);
    else if (bytes[0] == 'n')
        try_words(text);
    else if (bytes[0] == 'e')
        try_escapes(bytes + 1, length - 1);
    else if (bytes[0] == 'm')
        try_programs(bytes + 1, length - 1);
    free(text);
    return 0;
}
