/* SPDX-License-Identifier: MIT */
/* The standard descriptors at the beginning and the end of a program. */
#pragma once

/* A standard descriptor that is closed would become a file or a connection of ours, and writing to it a
 * success: it is opened so that it fails instead. */
void standard_descriptors_hold(void);

/* Output that did not arrive, on a full disk or a closed pipe, must not look like success: the exit status to
 * leave with instead of `status`. */
int standard_output_end(int status);
