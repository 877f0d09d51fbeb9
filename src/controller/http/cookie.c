/* SPDX-License-Identifier: MIT */
#include "controller/http/cookie.h"

#include <string.h>

#include "base/memory.h"

char *cookie_value(const char *cookies, const char *name)
{
    size_t length = strlen(name);
    while (cookies != NULL && *cookies != '\0') {
        cookies += strspn(cookies, "; ");
        size_t whole = strcspn(cookies, ";");
        if (whole > length && strncmp(cookies, name, length) == 0 && cookies[length] == '=')
            return xstrndup(cookies + length + 1, whole - length - 1);
        cookies += whole;
    }
    return NULL;
}
