/* SPDX-License-Identifier: MIT */
/* Objects that have a number each and, as far as their creator gave one, a name: tokens, reservations. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

struct numbered {
    const char *word;    // "token"
    const char *of_whom; // "you have" or "there is": the beginning of the sentence that none has the name
    const char *path, *member; // of the list in the API
    const char *list_command;  // "mgpu token list"
};

/* Looks up all words before the first object is deleted. Objects may share a name: they are then identified
 * by number. */
int numbered_delete(
    struct call *call, const struct numbered *kind, int count, char *const *words, struct error *err);
