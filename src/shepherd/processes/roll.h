/* SPDX-License-Identifier: MIT */
/* The number of processes in a group, and their names: "3 processes (bash, python3, tee)". */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ROLL_NAMES_MAX 120U
#define ROLL_TIDY      "mgpu-tidy" // its session is not counted: it cleans up after earlier jobs

struct roll {
    uint32_t count;
    char names[ROLL_NAMES_MAX]; // distinct names, separated by ", "; terminated
};

/* Counts the process unless it has ended or belongs to ROLL_TIDY, and stores its name as the kernel shows it;
 * characters other than printable ASCII become "?". Allocates nothing. */
void roll_add(struct roll *roll, pid_t pid);

/* "1 process (python3)". */
void roll_format(const struct roll *roll, char *text, size_t size);
