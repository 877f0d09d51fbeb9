/* SPDX-License-Identifier: MIT */
/* Of several controllers: a standby refers to the leader, and every one tells where the others are. */
#pragma once

struct request;

/* Answers 503 `standby` with the leader's address, as a header and as the member `leader`, which mgpu
 * follows. `what`: why this controller does not answer. */
void refer_to_leader(struct request *request, const char *what);

/* The same for a browser that requests the page: redirects it to the leader's. */
void refer_to_page(struct request *request);

/* For clients on other machines, which keep the list: X-Mgpu-Controllers. */
void refer_to_all(struct request *request);
