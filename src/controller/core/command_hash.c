/* SPDX-License-Identifier: MIT */
/*
 * The hash by which similar commands are recognised: that of the program's name, and for interpreters also of
 * the script's (`python train.py --lr 0.1` and `/usr/bin/python ./train.py` are "python train.py"). A job
 * without a recognisable script (`bash`, `sh -c '...'`) is identified by its name. Derived from the summary
 * in the job record, so that a restart gives the same result.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/core.h"

#define WORD_MAX  128U
#define DEPTH_MAX 2U // nesting of commands within `sh -c`

/* Wrappers that run another command: their own names are ignored. */
static const char *const wrappers[] = { "env", "nice", "nohup", "time", "exec", "stdbuf", "taskset",
    "numactl", NULL };
static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", NULL };
static const char *const interpreters[] = { "python", "python2", "python3", "perl", "ruby", "Rscript",
    "julia", "node", "java", "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "uv", "poetry",
    "conda", NULL };

static bool is_one_of(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* The next word of a command line written by text_quote_command() or by a user; false at the end. */
static bool next_word(const char **at, char word[WORD_MAX])
{
    const char *p = *at + strspn(*at, " \t");
    size_t length = 0;
    char quote = '\0';
    if (*p == '\0')
        return false;
    for (; *p != '\0' && (quote != '\0' || strchr(" \t;&|", *p) == NULL); p++) {
        if (*p == quote)
            quote = '\0';
        else if (quote == '\0' && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (length < WORD_MAX - 1)
            word[length++] = *p;
    }
    word[length] = '\0';
    *at = p + strspn(p, ";&|");
    return true;
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_assignment(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals != NULL && strchr(word, '/') == NULL && equals > word;
}

static bool read_identity(const char *command, unsigned depth, char *text, size_t size);

/* The script of an interpreter, or the command within a shell's -c. */
static bool read_script(const char *program, const char *at, unsigned depth, char *text, size_t size)
{
    char word[WORD_MAX];
    bool is_shell = is_one_of(shells, program);
    while (next_word(&at, word)) {
        if (is_shell && word[0] == '-' && strchr(word, 'c') != NULL)
            return depth < DEPTH_MAX && next_word(&at, word) && read_identity(word, depth + 1, text, size);
        if (word[0] == '-' && strcmp(word, "-m") != 0)
            continue;
        if (strcmp(word, "-m") == 0 && !next_word(&at, word))
            return false;
        (void)snprintf(text, size, "%s %s", program, last_component(word));
        return true;
    }
    return false;
}

static bool read_identity(const char *command, unsigned depth, char *text, size_t size)
{
    char word[WORD_MAX];
    const char *at = command;
    while (next_word(&at, word)) {
        const char *program = last_component(word);
        if (is_assignment(word) || is_one_of(wrappers, program))
            continue;
        if (is_one_of(shells, program) || is_one_of(interpreters, program)) {
            char copy[WORD_MAX];
            (void)snprintf(copy, sizeof(copy), "%s", program);
            return read_script(copy, at, depth, text, size);
        }
        (void)snprintf(text, size, "%s", program);
        return true;
    }
    return false;
}

uint64_t core_command_hash(const struct job *job)
{
    char text[2 * WORD_MAX + 2];
    if (job->summary == NULL || !read_identity(job->summary, 0, text, sizeof(text)))
        (void)snprintf(text, sizeof(text), "%s", job->name != NULL ? job->name : "");
    uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
    for (const char *p = text; *p != '\0'; p++)
        hash = (hash ^ (uint8_t)*p) * 0x100000001b3ULL;
    return hash >> 1; // all readers of the journal can hold 63 bits
}
