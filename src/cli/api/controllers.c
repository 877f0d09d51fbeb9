/* SPDX-License-Identifier: MIT */
#include "cli/api/controllers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "wire/http_client.h"

#define SCHEME   "https://"
#define LIST_MAX 16U // addresses tried

/* ~/.cache/mgpu; -1 if there is no such directory. */
static int open_cache(bool is_made)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_set = cache != NULL && cache[0] == '/';
    if (!is_set && (home == NULL || home[0] != '/'))
        return -1;
    _cleanup_free_ char *above = is_set ? xstrdup(cache) : xasprintf("%s/.cache", home);
    _cleanup_free_ char *path = xasprintf("%s/mgpu", above);
    if (is_made &&
        ((mkdir(above, 0700) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST)))
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* One file for each pin, whose characters are all valid in file names. */
static char *file_of(const char *host)
{
    const char *hash = strchr(host, '#');
    return hash != NULL && strchr(hash, '/') == NULL ? xasprintf("controllers-%s", hash + 1) : NULL;
}

static bool is_list(const char *text)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]%,";
    return text[0] != '\0' && strspn(text, known) == strlen(text);
}

static char *load(const char *host)
{
    _cleanup_free_ char *file = file_of(host);
    _cleanup_close_ int dir = file != NULL ? open_cache(false) : -1;
    _cleanup_buffer_ struct buffer text = { 0 };
    if (dir < 0 || file_read(dir, file, HTTP_CONTROLLERS_MAX, &text) < 0)
        return NULL;
    char *line = buffer_text(&text);
    line[strcspn(line, "\n")] = '\0';
    return is_list(line) ? xstrdup(line) : NULL;
}

static bool is_in(const char *list, const char *address, size_t length)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, address, length) == 0)
            return true;
    return false;
}

static void add(struct buffer *list, unsigned *count, const char *addresses, size_t length)
{
    for (const char *at = addresses, *end = addresses + length; at < end; at += strcspn(at, ",#") + 1) {
        size_t part = strcspn(at, ",#");
        if (is_in(buffer_text(list), at, part) || *count == LIST_MAX)
            continue;
        buffer_printf(list, "%s%.*s", list->length > 0 ? "," : "", (int)part, at);
        (*count)++;
    }
}

char *controllers_complete(const char *host)
{
    _cleanup_free_ char *kept = load(host);
    _cleanup_buffer_ struct buffer list = { 0 };
    unsigned count = 0;
    const char *hash = strchr(host, '#');
    if (kept == NULL || hash == NULL || strncmp(host, SCHEME, strlen(SCHEME)) != 0)
        return xstrdup(host);
    const char *given = host + strlen(SCHEME);
    add(&list, &count, kept, strlen(kept));
    add(&list, &count, given, (size_t)(hash - given));
    return xasprintf(SCHEME "%s%s", buffer_text(&list), hash);
}

void controllers_keep(const char *host, const char *list)
{
    _cleanup_free_ char *file = file_of(host), *kept = load(host);
    if (file == NULL || !is_list(list) || (kept != NULL && strcmp(kept, list) == 0))
        return;
    _cleanup_close_ int dir = open_cache(true);
    _cleanup_free_ char *line = xasprintf("%s\n", list);
    if (dir >= 0)
        (void)file_write(dir, file, line, strlen(line), false);
}
