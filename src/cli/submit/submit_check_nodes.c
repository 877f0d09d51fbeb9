/* SPDX-License-Identifier: MIT */
#include "cli/submit/submit_check_nodes.h"

#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"

#define NAME_SHOWN 60

static bool has_node(const json_t *nodes, const char *name)
{
    size_t index = 0;
    json_t *node = NULL;
    json_array_foreach(nodes, index, node) if (field_is(node, "name", name)) return true;
    return false;
}

static void check_names(const json_t *nodes, const char *option, const char *list)
{
    _cleanup_free_ char *copy = xstrdup(list);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;) {
        if (name[0] == '\0' || has_node(nodes, name))
            continue;
        _cleanup_free_ char *shown = text_escape(name, NAME_SHOWN);
        talk_line("warning: %s: there is no node %s now; mgpu nodes lists them", option, shown);
    }
}

void submit_check_nodes(struct call *call, const json_t *ask)
{
    static const char *const members[][2] = { { "nodelist", "--nodelist" }, { "exclude", "--exclude" } };
    _cleanup_json_ json_t *answer = NULL;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *list = field_text(ask, members[i][0]);
        if (list == NULL)
            continue;
        if (answer == NULL && client_get(&call->client, API_PATH "/nodes", &answer, NULL) < 0)
            return; // the request itself will fail, and say why
        check_names(json_object_get(answer, "nodes"), members[i][1], list);
    }
}
