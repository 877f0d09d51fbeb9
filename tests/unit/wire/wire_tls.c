/* SPDX-License-Identifier: MIT */
/* Keys, the peers that a session accepts, and the pump: bytes, ends and back-pressure, over a real port. */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"
#include "wire/name_trouble.h"
#include "wire/tls/authority.h"
#include "wire/tls/context.h"
#include "wire/tls/dial.h"
#include "wire/tls/gate.h"
#include "wire/tls/sessions.h"
#include "wire/tls/trouble.h"

#define WAIT_MS 20000

struct world {
    char dir[64];
    struct tls_authority *authority;
    struct event_base *base;
    struct tls_gate *gate;
    struct tls_sessions *sessions;
    struct address address;
    int plain; // the server's end of the last session
    bool is_for_stream;
    uint8_t peer_pin[TLS_PIN_SIZE];
    bool has_peer_pin;
    unsigned ended, broken;
};

static void on_end(void *arg, const char *label, const struct error *err)
{
    struct world *world = arg;
    world->ended++;
    world->broken += err->code != 0;
}

static void on_open(void *arg, SSL *ssl, int fd)
{
    struct world *world = arg;
    world->is_for_stream = tls_is_for(ssl, TLS_FOR_STREAM);
    world->has_peer_pin = tls_peer_pin(ssl, world->peer_pin);
    assert_int_equal(tls_sessions_open(world->sessions, ssl, fd, "x", &world->plain), 0);
}

static const struct strings no_hosts;

static int start(void **state)
{
    static const char *const purposes[] = { TLS_FOR_LINK, TLS_FOR_STREAM, NULL };
    struct world *world = xcalloc(1, sizeof(*world));
    _cleanup_context_ SSL_CTX *context = NULL;
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t length = sizeof(here);
    struct error err = { 0 };
    world->plain = -1;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/mgpu-tls-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    assert_int_equal(tls_authority_open(world->dir, &no_hosts, &world->authority, &err), 0);
    assert_int_equal(tls_context_server(world->authority, purposes, &context, &err), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &length), 0);
    world->address =
        (struct address){ .host = xstrdup("127.0.0.1"), .port = xasprintf("%u", ntohs(here.sin_port)) };
    world->base = event_base_new();
    world->sessions = tls_sessions_new(world->base, on_end, world);
    world->gate = tls_gate_new(world->base, context, fd, on_open, world);
    *state = world;
    return 0;
}

static int stop(void **state)
{
    static const char *const files[] = { "authority.key", "authority.crt", "server.key", "server.crt",
        "node.key" };
    struct world *world = *state;
    tls_gate_free(world->gate);
    tls_sessions_free(world->sessions);
    event_base_free(world->base);
    tls_authority_free(world->authority);
    address_clear(&world->address);
    closep(&world->plain);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", world->dir, files[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
    return 0;
}

#define CASE(name, world) TEST_ON(name, struct world *world, start, stop)

/* --- a client on a thread of its own, since it waits --- */

struct client {
    struct world *world;
    const uint8_t *pin;
    const char *purpose;
    EVP_PKEY *key;
    X509 *certificate;
    SSL *ssl;
    int fd, result;
    struct error err;
    bool is_done;
};

static void *dial(void *arg)
{
    struct client *client = arg;
    _cleanup_context_ SSL_CTX *context = NULL;
    client->result =
        tls_context_client(client->pin, client->key, client->certificate, &context, &client->err);
    if (client->result == 0)
        client->result = tls_dial(context, &client->world->address, client->purpose,
            clock_boot_ms() + WAIT_MS, &client->ssl, &client->fd, &client->err);
    __atomic_store_n(&client->is_done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void turn(struct world *world)
{
    struct timeval wait = { .tv_usec = 5000 };
    (void)event_base_loopexit(world->base, &wait);
    (void)event_base_dispatch(world->base);
}

static void run(struct client *client)
{
    pthread_t thread;
    int64_t end_ms = clock_boot_ms() + WAIT_MS;
    client->fd = -1;
    assert_int_equal(pthread_create(&thread, NULL, dial, client), 0);
    while (!__atomic_load_n(&client->is_done, __ATOMIC_ACQUIRE) && clock_boot_ms() < end_ms)
        turn(client->world);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (client->result == 0 && client->world->plain < 0 && clock_boot_ms() < end_ms)
        turn(client->world);
}

static void hang_up(struct client *client)
{
    SSL_free(client->ssl);
    closep(&client->fd);
    client->ssl = NULL;
    client->fd = -1;
}

/* --- keys --- */

CASE(a_key_is_made_once_and_nobody_elses, world)
{
    struct error err = { 0 };
    struct stat status;
    uint8_t pin[TLS_PIN_SIZE];
    struct tls_authority *again = NULL;
    _cleanup_free_ char *path = xasprintf("%s/authority.key", world->dir);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    memcpy(pin, tls_authority_pin(world->authority), sizeof(pin));
    assert_int_equal(tls_authority_open(world->dir, &no_hosts, &again, &err), 0);
    assert_memory_equal(tls_authority_pin(again), pin, sizeof(pin));
    tls_authority_free(again);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(tls_authority_open(world->dir, &no_hosts, &again, &err), -EPERM);
    assert_non_null(strstr(err.message, "can read the key"));
}

/* A browser that trusts the authority has nothing to warn about; the pin does not change. */
CASE(the_server_s_certificate_gets_the_names_of_its_machine, world)
{
    static const char *const names[] = { "gpubox", "gpubox.example.org", "10.1.2.3", "2001:db8::7",
        "evil,DNS:other" };
    _cleanup_strings_ struct strings hosts = { 0 };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        strings_add(&hosts, names[i]);
    struct error err = { 0 };
    struct tls_authority *named = NULL, *again = NULL;
    X509 *before = tls_authority_server_certificate(world->authority);
    assert_int_equal(X509_check_host(before, "gpubox", 0, 0, NULL), 0);
    assert_int_equal(tls_authority_open(world->dir, &hosts, &named, &err), 0);
    X509 *certificate = tls_authority_server_certificate(named);
    assert_int_equal(X509_check_host(certificate, "gpubox", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(certificate, "gpubox.example.org", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(certificate, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(certificate, "other", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(certificate, "10.1.2.3", 0), 1);
    assert_int_equal(X509_check_ip_asc(certificate, "2001:db8::7", 0), 1);
    assert_memory_equal(tls_authority_pin(named), tls_authority_pin(world->authority), TLS_PIN_SIZE);
    assert_int_equal(tls_authority_open(world->dir, &hosts, &again, &err), 0);
    assert_int_equal(X509_cmp(tls_authority_server_certificate(again), certificate), 0); // kept
    tls_authority_free(named);
    tls_authority_free(again);
}

CASE(a_damaged_key_is_refused_and_a_lost_certificate_made_anew, world)
{
    struct error err = { 0 };
    struct tls_authority *again = NULL;
    _cleanup_close_ int dirfd = open(world->dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(unlinkat(dirfd, "server.crt", 0), 0);
    assert_int_equal(file_write(dirfd, "authority.crt", "junk", 4, false), 0);
    assert_int_equal(tls_authority_open(world->dir, &no_hosts, &again, &err), 0);
    tls_authority_free(again);
    assert_int_equal(file_write(dirfd, "authority.key", "junk", 4, false), 0);
    assert_int_equal(tls_authority_open(world->dir, &no_hosts, &again, &err), -EBADMSG);
}

CASE(a_request_proves_its_key, world)
{
    struct error err = { 0 };
    int dirfd = open(world->dir, O_RDONLY | O_DIRECTORY);
    _cleanup_key_ EVP_PKEY *key = NULL, *read = NULL;
    _cleanup_certificate_ X509 *certificate = NULL;
    uint8_t ours[TLS_PIN_SIZE], theirs[TLS_PIN_SIZE];
    assert_int_equal(tls_key_open(dirfd, "node.key", &key, &err), 0);
    (void)close(dirfd);
    _cleanup_free_ char *text = tls_request_text(key, "n1");
    assert_int_equal(tls_authority_read_request(text, &read, &err), 0);
    assert_true(tls_pin_of_key(key, ours) && tls_pin_of_key(read, theirs));
    assert_memory_equal(ours, theirs, sizeof(ours));
    assert_int_equal(tls_authority_issue(world->authority, read, "n1", &certificate, &err), 0);
    _cleanup_free_ char *name = tls_certificate_name(certificate);
    assert_string_equal(name, "n1");
    assert_true(tls_authority_has_issued(world->authority, certificate));
    char *middle = text + strlen(text) / 2;
    *middle = *middle == 'A' ? 'B' : 'A';
    EVP_PKEY *none = NULL;
    assert_int_equal(tls_authority_read_request(text, &none, &err), -EBADMSG);
    assert_int_equal(tls_authority_read_request("", &none, &err), -EBADMSG);
}

/* --- which peers a session accepts --- */

CASE(a_client_believes_the_pin_of_the_authority_or_of_the_server, world)
{
    uint8_t leaf[TLS_PIN_SIZE];
    assert_true(tls_pin_of_key(tls_authority_server_key(world->authority), leaf));
    const uint8_t *const pins[] = { tls_authority_pin(world->authority), leaf };
    for (size_t i = 0; i < 2; i++) {
        struct client client = { .world = world, .pin = pins[i], .purpose = TLS_FOR_STREAM };
        run(&client);
        assert_int_equal(client.result, 0);
        assert_true(world->is_for_stream);
        assert_false(world->has_peer_pin);
        hang_up(&client);
        closep(&world->plain);
    }
}

CASE(a_client_believes_nobody_else, world)
{
    const uint8_t pin[TLS_PIN_SIZE] = { 1 };
    struct client client = { .world = world, .pin = pin, .purpose = TLS_FOR_LINK };
    run(&client);
    assert_int_equal(client.result, -EKEYREJECTED);
    assert_non_null(strstr(client.err.message, "not the cluster"));
    assert_int_equal(world->plain, -1);
}

CASE(a_purpose_that_the_port_has_not_is_refused, world)
{
    struct client client = {
        .world = world, .pin = tls_authority_pin(world->authority), .purpose = TLS_FOR_HTTP
    };
    run(&client);
    assert_int_equal(client.result, -EPROTONOSUPPORT);
    assert_non_null(strstr(client.err.message, "not that port of mgpud"));
}

CASE(a_server_learns_the_key_of_its_client, world)
{
    struct error err = { 0 };
    uint8_t pin[TLS_PIN_SIZE];
    int dirfd = open(world->dir, O_RDONLY | O_DIRECTORY);
    _cleanup_key_ EVP_PKEY *key = NULL;
    _cleanup_certificate_ X509 *certificate = NULL;
    assert_int_equal(tls_key_open(dirfd, "node.key", &key, &err), 0);
    (void)close(dirfd);
    assert_int_equal(tls_authority_issue(world->authority, key, "n1", &certificate, &err), 0);
    struct client client = { .world = world,
        .pin = tls_authority_pin(world->authority),
        .purpose = TLS_FOR_LINK,
        .key = key,
        .certificate = certificate };
    run(&client);
    assert_int_equal(client.result, 0);
    assert_true(world->has_peer_pin && tls_pin_of_key(key, pin));
    assert_memory_equal(world->peer_pin, pin, sizeof(pin));
    hang_up(&client);
}

/* --- the pump --- */

static void begin(struct world *world, struct client *client)
{
    *client = (struct client){
        .world = world, .pin = tls_authority_pin(world->authority), .purpose = TLS_FOR_LINK
    };
    run(client);
    assert_int_equal(client->result, 0);
}

/* Waits until the server's plain end can be read. */
static void await_plain(struct world *world)
{
    struct pollfd look = { .fd = world->plain, .events = POLLIN };
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; poll(&look, 1, 0) == 0 && clock_boot_ms() < end_ms;)
        turn(world);
}

CASE(each_direction_ends_by_itself, world)
{
    struct client client;
    char bytes[16];
    size_t n = 0;
    begin(world, &client);
    assert_int_equal(SSL_write(client.ssl, "ask", 3), 3);
    assert_true(SSL_shutdown(client.ssl) >= 0);
    await_plain(world);
    assert_int_equal(recv(world->plain, bytes, sizeof(bytes), 0), 3);
    await_plain(world);
    assert_int_equal(recv(world->plain, bytes, sizeof(bytes), 0), 0); // the end of what it asks
    assert_int_equal(send(world->plain, "answer", 6, 0), 6);
    closep(&world->plain);
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; world->ended == 0 && clock_boot_ms() < end_ms;)
        turn(world);
    assert_int_equal(world->ended, 1);
    assert_int_equal(world->broken, 0);
    assert_int_equal(SSL_read_ex(client.ssl, bytes, sizeof(bytes), &n), 1);
    assert_int_equal(n, 6);
    int result = SSL_read_ex(client.ssl, bytes, sizeof(bytes), &n);
    assert_int_equal(SSL_get_error(client.ssl, result), SSL_ERROR_ZERO_RETURN);
    hang_up(&client);
}

CASE(who_does_not_read_stops_who_writes, world)
{
    static char block[65536];
    struct client client;
    size_t sent = 0, n = 0;
    begin(world, &client);
    for (int idle = 0; idle < 50;) {
        int result = SSL_write_ex(client.ssl, block, sizeof(block), &n);
        sent += result == 1 ? n : 0;
        idle = result == 1 ? 0 : idle + 1;
        turn(world);
        assert_true(sent < 64U << 20);
    }
    /* All of it comes once it is taken. */
    size_t taken = 0;
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; taken < sent && clock_boot_ms() < end_ms;) {
        ssize_t got = recv(world->plain, block, sizeof(block), MSG_DONTWAIT);
        taken += got > 0 ? (size_t)got : 0;
        if (got <= 0)
            turn(world);
    }
    assert_int_equal(taken, sent);
    hang_up(&client);
}

static void await_ends(struct world *world)
{
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; world->ended == 0 && clock_boot_ms() < end_ms;)
        turn(world);
    assert_int_equal(world->ended, 1);
}

static void assert_client_reads(struct client *client, const char *text)
{
    char bytes[64] = "";
    size_t n = 0;
    int result = 0;
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; result != 1 && clock_boot_ms() < end_ms;) {
        turn(client->world);
        result = SSL_read_ex(client->ssl, bytes, sizeof(bytes) - 1, &n);
    }
    assert_string_equal(bytes, text);
}

/* As when somebody types at a command that has just ended. */
CASE(last_words_arrive_though_nobody_listens_where_they_came_from, world)
{
    struct client client;
    char byte;
    size_t n = 0;
    begin(world, &client);
    assert_int_equal(SSL_write(client.ssl, "typed", 5), 5);
    assert_int_equal(send(world->plain, "last", 4, 0), 4);
    closep(&world->plain);
    assert_client_reads(&client, "last");
    assert_int_equal(SSL_write(client.ssl, "typed", 5), 5); // the connection is not reset for that
    turn(world);
    assert_int_equal(SSL_read_ex(client.ssl, &byte, 1, &n), 0);
    assert_int_equal(SSL_get_error(client.ssl, 0), SSL_ERROR_ZERO_RETURN);
    assert_true(SSL_shutdown(client.ssl) >= 0);
    await_ends(world);
    assert_int_equal(world->broken, 0);
    hang_up(&client);
}

CASE(last_words_arrive_though_their_connection_was_reset, world)
{
    struct client client;
    char bytes[16] = "";
    size_t length = 0;
    begin(world, &client);
    assert_int_equal(send(world->plain, "unread", 6, 0), 6);
    struct pollfd look = { .fd = client.fd, .events = POLLIN };
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; poll(&look, 1, 0) == 0 && clock_boot_ms() < end_ms;)
        turn(world);
    for (const char *at = "last"; *at != '\0'; at++)
        assert_int_equal(SSL_write(client.ssl, at, 1), 1); // a record each
    assert_true(SSL_shutdown(client.ssl) >= 0);
    hang_up(&client);
    assert_int_equal(send(world->plain, "typed", 5, 0), 5);
    await_ends(world);
    for (ssize_t n; (n = recv(world->plain, bytes + length, sizeof(bytes) - 1 - length, MSG_DONTWAIT)) > 0;)
        length += (size_t)n;
    assert_string_equal(bytes, "last");
}

/* As when the API has answered, ended its side, and some time later closes the connection. */
CASE(a_side_that_ends_first_and_leaves_later_is_noticed, world)
{
    struct client client;
    char byte;
    size_t n = 0;
    int result = 0;
    begin(world, &client);
    assert_int_equal(shutdown(world->plain, SHUT_WR), 0);
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; clock_boot_ms() < end_ms;) {
        turn(world);
        result = SSL_read_ex(client.ssl, &byte, 1, &n);
        if (SSL_get_error(client.ssl, result) == SSL_ERROR_ZERO_RETURN)
            break;
    }
    assert_int_equal(SSL_get_error(client.ssl, result), SSL_ERROR_ZERO_RETURN);
    turn(world);
    assert_int_equal(world->ended, 0); // it may still be told something
    closep(&world->plain);
    await_ends(world); // though the other machine says nothing more
    hang_up(&client);
}

static void *write_on_and_on(void *arg)
{
    static char block[65536];
    struct client *client = arg;
    size_t n;
    for (int result = 1; result == 1 || SSL_get_error(client->ssl, result) == SSL_ERROR_WANT_WRITE;)
        result = SSL_write_ex(client->ssl, block, sizeof(block), &n);
    return NULL;
}

CASE(a_machine_that_sends_on_and_on_is_not_waited_for, world)
{
    struct client client;
    pthread_t thread;
    begin(world, &client);
    assert_int_equal(pthread_create(&thread, NULL, write_on_and_on, &client), 0);
    closep(&world->plain);
    await_ends(world);
    assert_int_equal(pthread_join(thread, NULL), 0);
    hang_up(&client);
}

static void count_turn(evutil_socket_t fd, short what, void *arg)
{
    (*(unsigned *)arg)++;
}

/* Its changes of keys are no bytes, however many there are: one call that goes on until bytes come has no
 * end. */
CASE(who_only_changes_keys_keeps_nobody_from_his_turn, world)
{
    struct client client;
    unsigned turns = 0;
    const struct timeval at_once = { .tv_usec = 1 };
    begin(world, &client);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(client.ssl), 1);
    }
    assert_int_equal(SSL_write(client.ssl, "x", 1), 1);
    struct event *counter = event_new(world->base, -1, EV_PERSIST, count_turn, &turns);
    assert_int_equal(event_add(counter, &at_once), 0);
    await_plain(world);
    event_free(counter);
    assert_true(turns > 10);
    assert_int_equal(send(world->plain, "y", 1, 0), 1);
    assert_client_reads(&client, "y"); // ours have changed as well
    hang_up(&client);
}

static unsigned timeouts_of(const struct client *client, struct world *world)
{
    unsigned ms = 1;
    socklen_t length = sizeof(ms);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    tls_sessions_add(world->sessions, client->ssl, client->fd, pair[0], "client");
    assert_int_equal(getsockopt(client->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &length), 0);
    tls_sessions_cut(world->sessions, "client");
    (void)close(pair[1]);
    closep(&world->plain);
    return ms;
}

/* `mgpu logs -f | less` may stand still for an hour; a link that does is no link. */
CASE(only_who_always_reads_is_gone_when_he_does_not, world)
{
    struct client client;
    begin(world, &client);
    assert_int_equal(timeouts_of(&client, world), TLS_DIAL_TIMEOUT_MS);
    client = (struct client){
        .world = world, .pin = tls_authority_pin(world->authority), .purpose = TLS_FOR_STREAM
    };
    run(&client);
    assert_int_equal(client.result, 0);
    assert_int_equal(timeouts_of(&client, world), 0);
}

CASE(a_machine_that_never_ends_is_not_waited_for, world)
{
    struct client client;
    begin(world, &client);
    closep(&world->plain);
    await_ends(world);
    assert_int_equal(world->broken, 0);
    hang_up(&client);
}

CASE(a_cut_connection_is_no_clean_end, world)
{
    struct client client;
    begin(world, &client);
    hang_up(&client); // without close_notify
    for (int64_t end_ms = clock_boot_ms() + WAIT_MS; world->ended == 0 && clock_boot_ms() < end_ms;)
        turn(world);
    assert_int_equal(world->broken, 1);
}

CASE(sessions_are_cut_by_their_label, world)
{
    struct client client;
    begin(world, &client);
    assert_int_equal(tls_sessions_count(world->sessions, "x"), 1);
    tls_sessions_cut(world->sessions, "y");
    assert_int_equal(tls_sessions_count(world->sessions, NULL), 1);
    tls_sessions_cut(world->sessions, "x");
    assert_int_equal(tls_sessions_count(world->sessions, NULL), 0);
    char byte;
    assert_int_equal(recv(world->plain, &byte, 1, 0), 0);
    hang_up(&client);
}

/* --- the port --- */

CASE(strangers_who_say_nothing_keep_nobody_out, world)
{
    struct client client;
    int strangers[TLS_GATE_PENDING_MAX];
    struct sockaddr_in there = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    there.sin_port = htons((uint16_t)strtoul(world->address.port, NULL, 10));
    for (size_t i = 0; i < TLS_GATE_PENDING_MAX; i++) {
        strangers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(strangers[i], (struct sockaddr *)&there, sizeof(there)), 0);
        turn(world);
    }
    begin(world, &client);
    hang_up(&client);
    for (size_t i = 0; i < TLS_GATE_PENDING_MAX; i++)
        (void)close(strangers[i]);
}

/* When all nodes reconnect at once, each has time for its handshake. */
CASE(a_connection_is_not_closed_at_once_for_the_next, world)
{
    int crowd[TLS_GATE_PENDING_MAX + 1];
    char byte;
    int64_t begin_ms = clock_boot_ms();
    struct sockaddr_in there = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    there.sin_port = htons((uint16_t)strtoul(world->address.port, NULL, 10));
    for (size_t i = 0; i < TLS_GATE_PENDING_MAX + 1; i++) {
        crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(crowd[i], (struct sockaddr *)&there, sizeof(there)), 0);
        if (i % 8 == 0)
            turn(world);
    }
    while (recv(crowd[0], &byte, 1, MSG_DONTWAIT) < 0)
        turn(world);
    assert_in_range(clock_boot_ms() - begin_ms, TLS_GATE_IDLE_TIMEOUT_MS - 10, TLS_GATE_IDLE_TIMEOUT_MS * 20);
    assert_int_equal(recv(crowd[TLS_GATE_PENDING_MAX], &byte, 1, MSG_DONTWAIT), -1);
    for (size_t i = 0; i < TLS_GATE_PENDING_MAX + 1; i++)
        (void)close(crowd[i]);
}

/* --- troubles --- */

/* Libraries number their reasons each by itself. */
TEST(a_reason_of_another_library_is_not_mistaken_for_one_of_tls)
{
    struct error err = { 0 };
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    ERR_raise(ERR_LIB_X509, SSL_R_HTTP_REQUEST);
    assert_int_equal(trouble_of_tls(ssl, -1, "gpu0:9124", &err), -EPROTO);
    assert_null(strstr(err.message, "plain HTTP"));
    ERR_raise(ERR_LIB_SSL, SSL_R_HTTP_REQUEST);
    (void)trouble_of_tls(ssl, -1, "gpu0:9124", &err);
    assert_non_null(strstr(err.message, "plain HTTP"));
    SSL_free(ssl);
    SSL_CTX_free(context);
}

TEST(troubles_are_told_apart_and_have_a_remedy)
{
    static const int names[] = { EAI_NONAME, EAI_AGAIN, EAI_FAIL, EAI_SERVICE };
    static const int connects[] = { ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, ECONNRESET };
    char seen[9][512];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct error err = { 0 };
        assert_true(name_trouble(names[i], "gpu0:9124", &err) < 0);
        assert_true(err.hint[0] != '\0' && strstr(err.message, "gpu0:9124") != NULL);
        (void)snprintf(seen[count++], sizeof(seen[0]), "%s", err.message);
    }
    for (size_t i = 0; i < sizeof(connects) / sizeof(connects[0]); i++) {
        struct error err = { 0 };
        assert_true(trouble_of_connect(-connects[i], "gpu0:9124", &err) < 0);
        assert_true(err.hint[0] != '\0' && strstr(err.message, "gpu0:9124") != NULL);
        (void)snprintf(seen[count++], sizeof(seen[0]), "%s", err.message);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[i], seen[k]);
}

static sem_t shaken; // once for each handshake

static void *shake_hands(void *arg)
{
    const uint8_t pin[TLS_PIN_SIZE] = { 0 };
    for (;;) {
        SSL_CTX *context = NULL;
        if (tls_context_client(pin, NULL, NULL, &context, NULL) < 0)
            _exit(3);
        SSL *ssl = SSL_new(context);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        (void)SSL_connect(ssl); // its first message
        SSL_free(ssl);
        SSL_CTX_free(context);
        (void)sem_post(&shaken);
    }
    return arg;
}

/* This program, as a child that exits while its thread is in the handshake after these. */
static int leave(unsigned long handshakes)
{
    pthread_t thread;
    tls_keep_at_exit();
    if (sem_init(&shaken, 0, 0) < 0 || pthread_create(&thread, NULL, shake_hands, NULL) != 0)
        return EXIT_FAILURE;
    for (unsigned long i = 0; i < handshakes; i++)
        (void)sem_wait(&shaken);
    return EXIT_SUCCESS;
}

/* An agent dials in threads, and does not wait for them. */
TEST(a_program_may_exit_while_a_thread_is_in_a_handshake)
{
    for (unsigned i = 0; i < 40; i++) {
        char handshakes[16];
        (void)snprintf(handshakes, sizeof(handshakes), "%u", 1 + i % 8);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)execl("/proc/self/exe", "wire_tls", handshakes, (char *)NULL);
            _exit(5);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return leave(strtoul(argv[1], NULL, 10));
    return unit_tests_run(NULL, NULL);
}
