/* SPDX-License-Identifier: MIT */
#include "controller/libraries.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/memory.h"

void libraries_end_without_memory(void)
{
    json_set_alloc_funcs(xmalloc, free);
    event_set_mem_functions(xmalloc, xrealloc, free);
}
