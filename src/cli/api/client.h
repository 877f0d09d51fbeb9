/* SPDX-License-Identifier: MIT */
/* The client's connection to mgpud: finds its socket, verifies who listens there, and sends JSON requests. */
#pragma once

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "wire/http_client.h"

#define API_PATH "/api/v1"

#define CLIENT_WAITS_FOR_EVER (-1)
#define CLIENT_PATIENT_MS                                                                                    \
    60000 // how long a waiting verb tolerates the absence of mgpud; others wait ABSENCE_RESTART_MS

struct client {
    const char *host;         // --server or MGPU_HOST: another machine; NULL: this one
    char *token;              // sent with each request; NULL: none, or that of remote_token() for a host
    struct munge_auth *munge; // or MUNGE, for each request; see munge_auth.h
    const char *asked_path;   // --socket or MGPU_SOCKET; NULL: search the default places
    char *path;               // the socket where mgpud was found
    uid_t server_uid;
    pid_t server_pid;         // of the process that began to listen there; 0: unknown
    struct http_client *http; // a connection to reuse, or NULL
    int connect_ms;           // timeout of connecting; 0: the default
    int answer_ms;            // timeout of an answer; 0: the default, or CLIENT_WAITS_FOR_EVER
    int64_t conflict_job;     // after -EEXIST: the job that was submitted with this key; 0: unknown
    const char *header;       // an additional header line of each request, or NULL
    int interrupt_fd;         // client_hold_interrupts(); 0: none
    char *leader;             // where a standby referred to; NULL: nowhere
    int64_t age_ms;           // of the last answer of a standby; -1: none has answered
    int64_t timeout_ms;       // after mgpud was reached: time for retries when it becomes unreachable
    bool is_dry;              // --dry-run: the caller only asks, and changes nothing
    bool is_impatient;        // an mgpud that may be restarting is not waited for
    bool is_short;            // the last attempt to connect lacked a descriptor
    bool has_printed_wait;    // the wait was reported
    bool is_quiet;            // no notes are printed
};

/* From now on, the client neither waits for an mgpud that is restarting nor repeats a request. */
void client_hurry(struct client *client);

/* Reports once, on standard error, that the command waits for mgpud; not in the first moments of its absence,
 * since `first_ms` of the boot clock. */
void client_report_absence(struct client *client, int64_t first_ms);

/* `socket` is the value of --socket or NULL, `host` that of --server. */
void client_init(struct client *client, const char *socket, const char *host);
void client_clear(struct client *client);

/* Sets the default timeout of answers for this program. */
void client_answer_within(int ms);

/* Adds a place to search for the socket, after the default ones. */
void client_add_socket(const char *path);

/* True if this user's programs may be sent requests with the caller's environment: root, the caller itself,
 * and the service's own user. */
bool client_trusts(uid_t uid);

/* The command that hints recommend for starting a server, "run_server". Borrowed. */
void client_name_server(const char *command);

/* The hint for the case that no mgpud answers. If the machine has an mgpud for all users that is not running,
 * it does not recommend starting a second one, which would allocate the same GPUs. */
const char *client_absence_hint(void);

/* The socket of another mgpud that answers at the default places, for example the machine's beside the user's
 * own. NULL: none, or the user specified the one to use. The caller frees it. */
char *client_other(const struct client *client);

/* On a terminal, reports which mgpud is used if another one answers too. Users at a terminal should know;
 * scripts have chosen. */
void client_report_other(const struct client *client);

/* Adds both sockets to the hint of an error about an object that does not exist. Returns the code. */
int client_hint_other(const struct client *client, struct error *err);

/* The places where a socket is searched for, in order. */
void client_places(const struct client *client, struct strings *places);

/*
 * Opens a new connection. The first one searches for the socket, and waits for an mgpud that is restarting;
 * later ones use the same, and do not wait. -EHOSTDOWN if nothing answers, -EPERM if the listener is a user
 * who must not get the caller's environment.
 */
int client_connect(struct client *client, struct http_client **ret, struct error *err);

/*
 * Sends one request with a JSON body (or NULL) and receives a JSON answer (`ret` may be NULL). An error
 * answer becomes its sentence, hint and errno. All requests of the API are idempotent (a submit has its key),
 * so a request lost with its connection is sent again within the client's timeouts.
 */
int client_call(struct client *client, const char *method, const char *path, const json_t *body, json_t **ret,
    struct error *err);

/*
 * Keeps the signals of leaving_signals.h pending from now on, for the code that follows the job submitted
 * next: before the answer arrives it is unknown which job to cancel. A request that is not answered soon
 * after a signal ends with -EINTR.
 */
int client_hold_interrupts(struct client *client, struct error *err);

int client_get(struct client *client, const char *path, json_t **ret, struct error *err);

/* Sets the environment so that a program executed next finds the same mgpud. -errno. */
int client_export(const struct client *client);

/* After an answer: if it is a standby's that names the leader, the next connection is one to the leader:
 * true, the request can be sent again at once. */
bool client_refer(struct client *client, const struct http_answer *answer);

/*
 * A new connection, upgraded by this request: 0, what was received after the answer is in `first`. A
 * standby's reference to the leader is followed only once, because two standbys may refer to each other.
 */
int client_upgrade(struct client *client, const struct http_request *request, struct http_client **ret,
    struct buffer *first, struct error *err);

/* Converts an unsuccessful answer to an error. */
int client_problem(const struct http_answer *answer, struct error *err);

/* True for failures that a restart of mgpud can explain. */
bool client_is_loss(int code);

/* True if the error means that mgpud does not answer. */
bool client_is_away(const struct error *err);

/* Sleeps before the next try: 20 ms at first, doubling up to a second. */
void client_back_off(int *delay_ms);

/* The same, but no longer than until `source` is ready; true: it is. NULL: none. */
bool client_back_off_until(struct pollfd *source, int *delay_ms);
