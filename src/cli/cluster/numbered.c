/* SPDX-License-Identifier: MIT */
#include "cli/cluster/numbered.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"

#define NAME_SHOWN 60

static int find_named(
    const struct numbered *kind, const json_t *objects, const char *name, int64_t *ret, struct error *err)
{
    _cleanup_buffer_ struct buffer numbers = { 0 };
    _cleanup_free_ char *shown = text_escape(name, NAME_SHOWN);
    int64_t found = 0;
    size_t index = 0, count = 0;
    json_t *object = NULL;
    json_array_foreach(objects, index, object)
    {
        if (!field_is(object, "name", name))
            continue;
        found = field_integer(object, "id", 0);
        buffer_printf(&numbers, "%s%" PRId64, count++ > 0 ? ", " : "", found);
    }
    if (count == 0) {
        (void)error_set(err, -ENOENT, "%s no %s named %s", kind->of_whom, kind->word, shown);
        return error_hint(err, "list them with `%s`", kind->list_command);
    }
    if (count > 1) {
        (void)error_set(
            err, -EINVAL, "%zu %ss are named %s: %s", count, kind->word, shown, buffer_text(&numbers));
        return error_hint(err, "give the number instead");
    }
    *ret = found;
    return 0;
}

static int find_all(struct call *call, const struct numbered *kind, int count, char *const *words,
    int64_t *ids, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    for (int i = 0; i < count; i++) {
        bool is_number = words[i][0] != '\0' && words[i][strspn(words[i], "0123456789")] == '\0';
        int r = 0;
        if (!is_number && answer == NULL)
            r = client_get(&call->client, kind->path, &answer, err);
        if (r == 0)
            r = is_number ? parse_integer(words[i], kind->word, 1, INT64_MAX, &ids[i], err)
                          : find_named(kind, json_object_get(answer, kind->member), words[i], &ids[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

int numbered_delete(
    struct call *call, const struct numbered *kind, int count, char *const *words, struct error *err)
{
    if (count == 0) {
        (void)error_set(err, -EINVAL, "no %s given", kind->word);
        return error_hint(err, "%s shows their names and numbers", kind->list_command);
    }
    _cleanup_free_ int64_t *ids = xcalloc((size_t)count, sizeof(*ids));
    int r = find_all(call, kind, count, words, ids, err);
    for (int i = 0; r == 0 && i < count; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%" PRId64, kind->path, ids[i]);
        r = client_call(&call->client, "DELETE", path, NULL, NULL, err);
    }
    return r;
}
