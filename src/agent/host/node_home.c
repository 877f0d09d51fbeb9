/* SPDX-License-Identifier: MIT */
/*
 * node.key     created here, never leaves this machine
 * node.crt     identifies the node; written first, so that there is no address without it
 * controller   "HOST:PORT#PIN"
 */
#include "agent/host/node_home.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/node_addresses.h"
#include "agent/host/persist.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "wire/tls/join_token.h"

#define TLS_DIR         "tls"
#define CONTROLLER_FILE "controller"
#define CONTROLLER_MAX  1024U

/* Loads what was stored, if it is complete. */
static int load(struct node_home *home, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = file_read(home->dirfd, CONTROLLER_FILE, CONTROLLER_MAX, &text);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set_errno(err, r, "cannot read " CONTROLLER_FILE);
    char *line = buffer_text(&text);
    line[strcspn(line, "\n")] = '\0';
    r = pinned_address_read(line, &home->controller, home->pin, err);
    if (r == 0)
        r = tls_certificate_load(home->dirfd, "node.crt", &home->certificate, err);
    if (r < 0)
        return r;
    home->name = tls_certificate_name(home->certificate);
    if (home->name == NULL || EVP_PKEY_eq(X509_get0_pubkey(home->certificate), home->key) != 1)
        return error_set(err, -EBADMSG, "node.crt is not the certificate of node.key");
    return 0;
}

int node_home_open(const char *state_dir, struct node_home *ret, struct error *err)
{
    struct node_home home = { .dirfd = -1 };
    _cleanup_close_ int node_fd = persist_open(state_dir, err);
    if (node_fd < 0)
        return node_fd;
    if (mkdirat(node_fd, TLS_DIR, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s/node/" TLS_DIR, state_dir);
    home.dirfd = openat(node_fd, TLS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (home.dirfd < 0)
        return error_set_errno(err, -errno, "cannot open %s/node/" TLS_DIR, state_dir);
    int r = tls_key_open(home.dirfd, "node.key", &home.key, err);
    if (r == 0)
        r = load(&home, err);
    if (r < 0) {
        node_home_close(&home);
        (void)error_wrap(err, "%s/node/" TLS_DIR, state_dir);
        if (err->hint[0] == '\0')
            (void)error_hint(err, "remove this directory and join again with a new `mgpu node token`");
        return r;
    }
    *ret = home;
    return 0;
}

int node_home_save(struct node_home *home, X509 *certificate, const struct address *controller,
    const uint8_t pin[TLS_PIN_SIZE], struct error *err)
{
    char pin_text[TLS_PIN_TEXT_SIZE];
    tls_pin_text(pin, pin_text);
    _cleanup_free_ char *where = address_text(controller);
    _cleanup_free_ char *line = xasprintf("%s#%s\n", where, pin_text);
    bool is_other = home->certificate == NULL || memcmp(home->pin, pin, TLS_PIN_SIZE) != 0;
    if (is_other) { // its numbers and addresses are meaningless in another cluster
        (void)unlinkat(home->dirfd, "../" PERSIST_EPOCH_CLUSTER, 0);
        (void)unlinkat(home->dirfd, "../" NODE_ADDRESSES_FILE, 0);
    }
    int r = tls_certificate_save(home->dirfd, "node.crt", certificate, err);
    if (r < 0)
        return r;
    r = file_write(home->dirfd, CONTROLLER_FILE, line, strlen(line), true);
    if (r < 0)
        return error_set_errno(err, r, "cannot write " CONTROLLER_FILE);
    X509_free(home->certificate);
    free(home->name);
    address_clear(&home->controller);
    home->certificate = NULL;
    home->name = NULL;
    return load(home, err);
}

void node_home_close(struct node_home *home)
{
    EVP_PKEY_free(home->key);
    X509_free(home->certificate);
    free(home->name);
    address_clear(&home->controller);
    closep(&home->dirfd);
    *home = (struct node_home){ .dirfd = -1 };
}
