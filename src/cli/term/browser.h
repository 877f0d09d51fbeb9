/* SPDX-License-Identifier: MIT */
/* The caller's web browser. */
#pragma once

#include <stdbool.h>

/* True if a browser can be opened on this desktop. */
bool browser_is_here(void);

/* True if the caller is connected by ssh, so that the browser is on another machine. */
bool browser_is_over_ssh(void);

/* Prints on standard error the command to type on the machine with the browser, which makes this port of
 * 127.0.0.1 one there. Not of localhost: sshd would try ::1 first, where another user may listen. */
void browser_print_tunnel(unsigned port);

/*
 * Becomes the program that opens the address; returns only when there is none. The browser is given a file
 * that leads to the address, `file` in XDG_RUNTIME_DIR, not the address itself: every user can read the words
 * of a command.
 */
void browser_open(const char *file, const char *address);

/* The same in another process. */
void browser_start(const char *file, const char *address);
