/* SPDX-License-Identifier: MIT */
#include "cli/options/commands.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/foreign_words.h"

static bool is_called(const struct command *command, const char *name)
{
    if (strcmp(command->name, name) == 0)
        return true;
    for (size_t i = 0; command->aliases[i] != NULL; i++)
        if (strcmp(command->aliases[i], name) == 0)
            return true;
    return false;
}

const struct command *commands_find(const char *name)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (is_called(commands[i], name))
            return commands[i];
        for (size_t a = 0; commands[i]->actions != NULL && commands[i]->actions[a] != NULL; a++)
            if (is_called(commands[i]->actions[a], name))
                return commands[i]->actions[a];
    }
    return NULL;
}

int commands_refuse(const char *name, struct error *err)
{
    _cleanup_free_ const char **names = NULL;
    size_t count = 0;
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (commands[i]->is_hidden)
            continue;
        names = xreallocarray(names, count + COMMAND_ALIASES + 2, sizeof(char *));
        names[count++] = commands[i]->name;
        for (size_t a = 0; commands[i]->aliases[a] != NULL; a++)
            names[count++] = commands[i]->aliases[a];
        names[count] = NULL;
    }
    _cleanup_free_ char *shown = text_escape(name, 60);
    const char *here = foreign_command_here(name);
    if (here != NULL) {
        (void)error_set(err, -EINVAL, "unknown command '%s'", shown);
        return error_hint(err, "here: %s", here);
    }
    const char *near = text_nearest(name, names);
    if (near != NULL)
        return error_set(err, -EINVAL, "unknown command '%s'. Did you mean '%s'?", shown, near);
    (void)error_set(err, -EINVAL, "unknown command '%s'", shown);
    return error_hint(err, "all commands: mgpu help");
}
