/* SPDX-License-Identifier: MIT */
/* The way to mgpud: finding its socket, making sure who listens there, and JSON requests with their errors.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "wire/http_client.h"

#define API_PATH          "/api/v1"
#define CLIENT_PATIENT_MS 60000 // how long a verb that waits lives through the absence of mgpud

struct client {
    const char *host;         // --server or MGPU_HOST: another machine; NULL: this one
    char *token;              // for it
    struct munge_auth *vouch; // or MUNGE, for each request; see vouch.h
    const char *asked_path;   // --socket or MGPU_SOCKET; NULL: look in the usual places
    char *path;               // where mgpud was found
    uid_t server_uid;
    struct http_client *http; // a connection to use again, or NULL
    int connect_ms;           // how long connecting may take; 0: the usual
    int answer_ms;            // how long an answer may take; 0: the usual
    int64_t conflict_job;     // of the latest -EEXIST: the job that its submit key made; 0: not said
    const char *header;       // one more line of each request, or NULL
    int interrupt_fd;         // client_hold_interrupts(); 0: none
    int64_t timeout_ms;       // once mgpud has been reached: try again for this long when it goes away
};

/* `socket` is the value of --socket or NULL, `host` that of --server. */
void client_init(struct client *client, const char *socket, const char *host);
void client_clear(struct client *client);

/* One more place to look for the socket, after the usual ones. */
void client_look_also(const char *path);

/* What hints name as the way to start a server, "run_server". The text must stay. */
void client_name_server(const char *command);

/* What to do when nobody answers at the usual places. Where the machine has an mgpud for all users that is
 * away just now, a second one would give the same GPUs away. */
const char *client_absence_hint(void);

/* The socket of another mgpud that answers at the usual places, for example that of the machine beside the
 * user's own. NULL: there is none, or the user named the one to talk to. The caller frees it. */
char *client_other(const struct client *client);

/* Adds both sockets to the hint of an error about something that does not exist. Returns the code. */
int client_hint_other(const struct client *client, struct error *err);

/* The places a socket is looked for, in order. */
void client_places(const struct client *client, struct strings *places);

/*
 * A new connection. The first one looks for the socket; later ones go to the same place. -EHOSTDOWN when
 * nobody answers, -EPERM when the listener is somebody we have no reason to trust with our environment.
 */
int client_connect(struct client *client, struct http_client **ret, struct error *err);

/*
 * One request with a JSON body (or NULL) and a JSON answer (`ret` may be NULL). An error answer becomes its
 * sentence, hint and errno. Every request of the API may be repeated safely (a submission carries its key),
 * so one that is lost with its connection is sent again within the client's timeouts.
 */
int client_call(struct client *client, const char *method, const char *path, const json_t *body, json_t **ret,
    struct error *err);

/*
 * SIGINT, SIGTERM and SIGHUP stay pending from now on, for whoever follows the job that the next request
 * makes: before the answer nobody knows which job to cancel. A request that is not answered soon after a
 * signal ends with -EINTR.
 */
int client_hold_interrupts(struct client *client, struct error *err);

/* Those signals. */
void client_interrupts(sigset_t *ret);

int client_get(struct client *client, const char *path, json_t **ret, struct error *err);

/* Lets what is executed next find the same mgpud. -errno. */
int client_export(const struct client *client);

/* Turns an answer that is no success into an error. */
int client_problem(const struct http_answer *answer, struct error *err);

/* True for failures that a restart of mgpud explains. */
bool client_is_loss(int code);

/* Passes time until the next try: 20 ms first, doubling to a second. */
void client_back_off(int *delay_ms);
