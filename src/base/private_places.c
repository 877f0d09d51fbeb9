/* SPDX-License-Identifier: MIT */
#include "base/private_places.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct private_place private_places[] = {
    { "/tmp", PRIVATE_TMP_FILES },
    { "/var/tmp", PRIVATE_TMP_FILES },
    { "/dev/shm", PRIVATE_TMP_ALL },
    { NULL, PRIVATE_TMP_ALL },
};

/* Skips slashes, and components that are ".". */
static const char *next_name(const char *path)
{
    for (;;) {
        while (*path == '/')
            path++;
        if (path[0] != '.' || (path[1] != '/' && path[1] != '\0'))
            return path;
        path++;
    }
}

static bool is_below(const char *path, const char *place)
{
    for (path = next_name(path), place = next_name(place); *place != '\0'; place = next_name(place)) {
        size_t length = strcspn(place, "/");
        if (strncmp(path, place, length) != 0 || (path[length] != '/' && path[length] != '\0'))
            return false;
        path = next_name(path + length);
        place += length;
    }
    return *path != '\0';
}

const char *private_place_of(const char *path)
{
    for (const struct private_place *place = private_places; place->path != NULL; place++)
        if (is_below(path, place->path))
            return place->path;
    return NULL;
}
