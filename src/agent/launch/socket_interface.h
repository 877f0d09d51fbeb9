/* SPDX-License-Identifier: MIT */
/* The network interface by which the ranks of a job on several nodes reach this node. */
#pragma once

/* The name of the interface with this address (numeric), if programs that choose one by themselves could
 * choose another: there are others that are up. NULL: there is no choice, or no such address. The caller
 * frees it. */
char *socket_interface_find(const char *address);
