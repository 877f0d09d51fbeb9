/* SPDX-License-Identifier: MIT */
/* Shared by the files of the HTTP server: the root struct and its lists. */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/allowance.h"
#include "controller/controller.h"
#include "controller/http/server.h"
#include "controller/http/users.h"
#include "controller/turns.h"
#include "wire/usernames.h"

#define SERVE_LISTENERS_MAX 8U
#define SERVE_SCHEMA        "mgpu/v1"

struct connection;      // http/connection.h
struct departures;      // http/departures.h
struct fair_queue;      // http/fair_queue.h
struct listening;       // wire/listening.h
struct event_client;    // api/events.c
struct step_client;     // api/steps.c
struct terminal_client; // api/terminal.c
struct why_question;    // api/why.c

struct serve_listener {
    struct serve *serve;
    struct listening *listening;
    enum turns_place place;
    bool is_unix;
};

/* The last answer to "why", valid until something changes. */
struct kept_why {
    uint64_t job;
    int64_t version, until_ms;
    char *text;
};

struct serve {
    struct controller *controller;
    const struct serve_hooks *hooks;
    struct serve_listener listeners[SERVE_LISTENERS_MAX];
    size_t n_listeners;
    struct allowance accepting; // time that this may use before the rest
    struct connection *connections;
    bool is_closing;          // mgpud is shutting down: clients lose their connections, and may return
    size_t n_job_connections; // of commands in jobs on joined machines
    struct departures *departures;
    struct fair_queue *queue;
    struct kept_why why;
    struct why_question *why_questions; // api/why.c
    struct listing *listings;           // api/gpus.c: in progress
    struct users *users;
    struct usernames *names;
    struct event_client *event_clients;
    struct terminal_client *terminals;
    struct step_client *step_clients;
    struct event *heartbeat;
    char *openapi;      // api/openapi.c: its answer, once it was asked for
    int64_t started_ms; // boot clock
    uint64_t published; // seq of the last event passed to events_publish()
};
