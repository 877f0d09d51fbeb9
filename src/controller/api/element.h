/* SPDX-License-Identifier: MIT */
/* Elements in paths: "42.3" is element 3 of array 42. */
#pragma once

#include "controller/http/request.h"

/*
 * Sets request->job to the element's job and calls `next`. For a POST, an element that still waits in its
 * array first becomes a separate job, which only its owner may request; for a GET, the array is used.
 */
void element_find(struct request *request, void (*next)(struct request *request));

/* The same; calls `none` where there is no such element, in place of the answer. */
void element_find_or(
    struct request *request, void (*next)(struct request *request), void (*none)(struct request *request));
