/* SPDX-License-Identifier: MIT */
#include "compat/stepd/mpi.h"

#include <string.h>

#include "base/buffer.h"

const struct mpi_kind *mpi_kind_find(const char *name)
{
    static const struct {
        const char *name;
        const struct mpi_kind *kind;
    } names[] = { { "pmi2", &mpi_pmi2 }, { "pmix", &mpi_pmix }, { "pmix_v3", &mpi_pmix },
        { "pmix_v4", &mpi_pmix } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].kind;
    return NULL;
}

uint32_t mpi_node_of(const struct mpi_setup *setup, uint32_t task)
{
    uint32_t node = 0;
    while (node + 1 < setup->nodes.count && task >= setup->first[node + 1])
        node++;
    return node;
}

char *mpi_process_mapping(const struct mpi_setup *setup)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    buffer_append_text(&out, "(vector");
    for (uint32_t i = 0, same = 0; i < setup->nodes.count; i += same) {
        uint32_t each = setup->first[i + 1] - setup->first[i];
        same = 1;
        while (i + same < setup->nodes.count && setup->first[i + same + 1] - setup->first[i + same] == each)
            same++;
        buffer_printf(&out, ",(%u,%u,%u)", i, same, each);
    }
    buffer_append_text(&out, ")");
    return buffer_take(&out);
}
