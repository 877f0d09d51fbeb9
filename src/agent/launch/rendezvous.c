/* SPDX-License-Identifier: MIT */
/*
 * MGPU_ variables are for all programs. MASTER_ADDR and MASTER_PORT are read by torch.distributed and others;
 * PET_ variables are defaults of torchrun's options, so that `torchrun train.py` alone works on each node.
 * RANK, LOCAL_RANK and WORLD_SIZE are not set: they identify processes, whose number on a node the launcher
 * decides. The port is the first one that the shepherd of rank 0 tries (shepherd/meeting.c); at the gate it
 * is replaced in these variables by the port that was found.
 */
#include "agent/launch/rendezvous.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

static void set_number(struct strings *env, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    strings_set_env(env, name, text);
}

/* "n1,n2"; with `slots` "n1:2,n2:2", as for mpirun --host. */
static char *list_nodes(const struct record_list *list, bool has_slots)
{
    struct buffer text = { 0 };
    const struct launch_peer *peers = list->items;
    for (size_t i = 0; i < list->count; i++) {
        const char *named = has_slots ? peers[i].address : peers[i].name;
        const char *word = named != NULL ? named : "";         // a faulty mgpud may send none
        bool is_ipv6 = has_slots && strchr(word, ':') != NULL; // fd77::2:1 is an address itself
        buffer_printf(&text, "%s%s%s%s", i > 0 ? "," : "", is_ipv6 ? "[" : "", word, is_ipv6 ? "]" : "");
        if (has_slots)
            buffer_printf(&text, ":%u", peers[i].gpus > 0 ? peers[i].gpus : 1);
    }
    return buffer_take(&text);
}

void rendezvous_set(struct strings *env, const struct message_launch *launch, const char *hostfile)
{
    const struct launch_peer *peers = launch->peers.items;
    if (launch->id.rank >= launch->peers.count)
        return;
    _cleanup_free_ char *names = list_nodes(&launch->peers, false);
    _cleanup_free_ char *hosts = list_nodes(&launch->peers, true);
    uint32_t processes = peers[launch->id.rank].gpus > 0 ? peers[launch->id.rank].gpus : 1;
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        { "MGPU_NNODES", launch->peers.count },
        { "MGPU_NODE_RANK", launch->id.rank },
        { "NNODES", launch->peers.count },
        { "NODE_RANK", launch->id.rank },
        { "MASTER_PORT", launch->port },
        { "PET_NNODES", launch->peers.count },
        { "PET_NODE_RANK", launch->id.rank },
        { "PET_NPROC_PER_NODE", processes },
        { "PET_MASTER_PORT", launch->port },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        set_number(env, numbers[i].name, numbers[i].value);
    strings_set_env(env, "MGPU_NODELIST", names);
    strings_set_env(env, "MGPU_HOSTS", hosts);
    strings_set_env(env, "MGPU_HOSTFILE", hostfile);
    strings_set_env(env, "MASTER_ADDR", peers[0].address);
    strings_set_env(env, "PET_MASTER_ADDR", peers[0].address);
}
