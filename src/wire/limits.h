/* SPDX-License-Identifier: MIT */
/* All hard limits of the API. The constants, `GET /api/v1/limits` and the table in docs/api.md are generated
 * from these rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* constant, name, value, unit, meaning */
#define LIMIT_ROWS(X)                                                                                        \
    X(LIMIT_TARGET_BYTES, "target_bytes", 8192, "bytes", "path and query of a request; more is 414")         \
    X(LIMIT_HEADER_BYTES, "header_bytes", 32768, "bytes", "request line and headers together; more is 431")  \
    X(LIMIT_HEADERS, "headers", 100, "lines", "header lines of a request; more is 431")                      \
    X(LIMIT_BODY_BYTES, "body_bytes", 2097152, "bytes", "body of a request; more is 413")                    \
    X(LIMIT_JSON_DEPTH, "json_depth", 16, "levels", "nesting of arrays and objects in a body")               \
    X(LIMIT_JSON_VALUES, "json_values", 65536, "values", "values in a body, all levels together")            \
    X(LIMIT_QUERY_PARAMETERS, "query_parameters", 32, "parameters", "name=value pairs in a query")           \
    X(LIMIT_CONNECTIONS, "connections", 8192, "connections",                                                 \
        "open connections of all users (fewer if RLIMIT_NOFILE is lower); more are closed with 503")         \
    X(LIMIT_USER_CONNECTIONS, "user_connections", 512, "connections",                                        \
        "open connections of one user; at most 1/16 of `connections`, or 64 if that is less; more are "      \
        "closed with 503")                                                                                   \
    X(LIMIT_RESERVED_CONNECTIONS, "reserved_connections", 256, "connections",                                \
        "of `connections`, reserved for administrators when the others are in use; at most 1/16")            \
    X(LIMIT_UNKNOWN_CONNECTIONS, "unknown_connections", 256, "connections",                                  \
        "of `connections`, those without a known user or a token yet; at most 1/16; more are closed with "   \
        "503")                                                                                               \
    X(LIMIT_JOB_CONNECTIONS, "job_connections", 64, "connections",                                           \
        "open connections of the commands in one job on machines that have joined; more are closed with "    \
        "503")                                                                                               \
    X(LIMIT_USER_REQUESTS, "user_requests_per_second", 5000, "requests/s", "requests of one user; 429")      \
    X(LIMIT_USER_BURST, "user_request_burst", 5000, "requests", "requests of one user at once; 429")         \
    X(LIMIT_BODIES_BYTES, "bodies_bytes", 268435456, "bytes",                                                \
        "bodies being received, all users together; more is 429")                                            \
    X(LIMIT_USER_BODIES_BYTES, "user_bodies_bytes", 67108864, "bytes",                                       \
        "bodies being received from one user; more is 429")                                                  \
    X(LIMIT_LISTS, "lists", 512, "lists", "long lists being sent, all users; more is 429")                   \
    X(LIMIT_USER_LISTS, "user_lists", 64, "lists", "long lists being sent to one user; more is 429")         \
    X(LIMIT_FOLLOWS, "log_streams", 1024, "streams", "logs being read, all users; more is 429")              \
    X(LIMIT_USER_FOLLOWS, "user_log_streams", 64, "streams", "logs being read by one user; more is 429")     \
    X(LIMIT_TERMINALS, "terminals", 1024, "terminals", "terminals and execs open, all users; more is 429")   \
    X(LIMIT_USER_TERMINALS, "user_terminals", 64, "terminals", "terminals and execs of one user; 429")       \
    X(LIMIT_INPUTS, "inputs", 2048, "connections",                                                           \
        "standard inputs of jobs being sent, all users; more is 429")                                        \
    X(LIMIT_USER_INPUTS, "user_inputs", 256, "connections",                                                  \
        "standard inputs of jobs being sent by one user; 429")                                               \
    X(LIMIT_PORTS, "port_connections", 2048, "connections",                                                  \
        "connections to ports of jobs, all users; more is 429")                                              \
    X(LIMIT_USER_PORTS, "user_port_connections", 256, "connections",                                         \
        "connections to ports of jobs of one user; 429")                                                     \
    X(LIMIT_EVENT_CLIENTS, "event_streams", 512, "streams", "open /events, all users; more is 429")          \
    X(LIMIT_USER_EVENT_CLIENTS, "user_event_streams", 64, "streams", "open /events of one user; 429")        \
    X(LIMIT_EVENT_BUFFER_BYTES, "event_buffer_bytes", 1048576, "bytes",                                      \
        "unread events of a slow reader of /events before it is disconnected")                               \
    X(LIMIT_EVENT_REPLAY, "event_replay", 256, "events", "old events read from the store at a time")         \
    X(LIMIT_STREAM_BUFFER_BYTES, "stream_buffer_bytes", 262144, "bytes",                                     \
        "log or list text buffered for a slow reader; beyond it the source waits")                           \
    X(LIMIT_LIST_JOBS, "list_jobs", 200000, "jobs", "jobs in one list: the newest that match")               \
    X(LIMIT_LIST_IDS, "list_ids", 1000, "ids", "ids named in `ids=` of a list")                              \
    X(LIMIT_LIST_TOP, "list_top", 10000, "jobs", "jobs or GPUs of each state in a list with `top=`")         \
    X(LIMIT_LIST_POSITIONS, "list_positions", 1000, "jobs",                                                  \
        "queued jobs in one list shown with their position, which is null for later ones")                   \
    X(LIMIT_JOB_EVENTS, "job_events", 1000, "events",                                                        \
        "events shown with one job, the oldest first; fewer if they take 1 MiB in the store")                \
    X(LIMIT_GPU_JOBS, "gpu_jobs", 64, "jobs", "jobs shown with one GPU")                                     \
    X(LIMIT_HISTORY_POINTS, "history_points", 25000, "points",                                               \
        "points in one GPU history response, all GPUs together")                                             \
    X(LIMIT_PIPELINE_BYTES, "pipeline_bytes", 65536, "bytes",                                                \
        "read-ahead during a request; more closes the connection if the request waits, follows or streams "  \
        "events")                                                                                            \
    X(LIMIT_IDLE_S, "idle_s", 120, "s", "a connection without a request is closed after this time")          \
    X(LIMIT_REQUEST_S, "request_s", 30, "s", "from the first to the last byte of a request")                 \
    X(LIMIT_WRITE_S, "write_s", 60, "s", "a response of which the client reads no byte; not for logs")       \
    X(LIMIT_LINGER_S, "linger_s", 2, "s", "time in which input is read and discarded after a refusal")       \
    X(LIMIT_LINGER_BYTES, "linger_bytes", 8388608, "bytes", "input read and discarded after a refusal")      \
    X(LIMIT_HEARTBEAT_S, "heartbeat_s", 15, "s", "interval of comment lines on /events")                     \
    X(LIMIT_STREAM_OPEN_S, "stream_open_s", 10, "s", "time for a node to open a log before 503 node_away")   \
    X(LIMIT_WAIT_S, "wait_s", 2592000, "s", "longest `timeout=` of a wait; unlimited if omitted")            \
    X(LIMIT_PARK_S, "park_for_s", 31536000, "s", "longest `for_s` of a park")                                \
    X(LIMIT_GRACE_S, "grace_s", 86400, "s", "longest `grace_s` of a cancel")                                 \
    X(LIMIT_TOKEN_S, "token_s", 31622400, "s", "longest `expires_s` of a token")                             \
    X(LIMIT_GUEST_ACQUIRES, "guest_acquires", 64, "requests",                                                \
        "waiting and granted requests of one user at a mgpud without root of another user; more is 429")     \
    X(LIMIT_USER_TOKENS, "user_tokens", 256, "tokens",                                                       \
        "valid tokens of one user, logins of the web page included; more is 429")                            \
    X(LIMIT_TOKEN_REQUESTS, "token_requests", 250, "requests",                                               \
        "requests that creating, using up or revoking a token or login counts as")                           \
    X(LIMIT_TOKEN_NAME_BYTES, "token_name_bytes", 64, "bytes", "name of a token")                            \
    X(LIMIT_TOKEN_CACHE_S, "token_cache_s", 5, "s",                                                          \
        "how long a token is trusted on a connection without checking the store")                            \
    X(LIMIT_LOGIN_S, "login_s", 60, "s", "validity of a one-time address of the web page")                   \
    X(LIMIT_SESSION_S, "session_s", 43200, "s", "validity of a login of the web page")                       \
    X(LIMIT_LIST_TOKENS, "list_tokens", 1000, "tokens", "tokens in one list: the newest")                    \
    X(LIMIT_REASON_BYTES, "reason_bytes", 512, "bytes", "reason for a paused GPU or drained node")           \
    X(LIMIT_MARK_GPUS_BYTES, "pause_gpus_bytes", 65536, "bytes", "names of GPUs in one pause or resume")     \
    X(LIMIT_RESERVE_USERS_BYTES, "reservation_users_bytes", 32768, "bytes", "users of one reservation")      \
    X(LIMIT_RESERVE_S, "reservation_s", 31622400, "s", "longest `for_s` of a reservation")                   \
    X(LIMIT_METRICS_USERS, "metrics_users", 100, "users",                                                    \
        "users with separate metrics; later ones are combined as the user `(other)`")                        \
    X(LIMIT_JOURNAL_PAGE, "journal_page", 256, "events",                                                     \
        "events of a journal read from the store at a time")                                                 \
    X(LIMIT_USER_NAMES, "user_names", 4096, "users",                                                         \
        "user names cached in memory; the oldest are dropped first")                                         \
    X(LIMIT_USER_NAMES_S, "user_names_s", 300, "s", "a cached user name is looked up again after this time")

#define LIMIT_CONSTANT(constant, name, value, unit, meaning) constant = (value),
enum limit_value { LIMIT_ROWS(LIMIT_CONSTANT) };
#undef LIMIT_CONSTANT

struct limit {
    const char *name;
    uint64_t value;
    const char *unit;
    const char *meaning;
};

/* All rows in the order above. */
const struct limit *limits_all(size_t *ret_count);
