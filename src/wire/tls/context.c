/* SPDX-License-Identifier: MIT */
#include "wire/tls/context.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define READ_BUFFER_SIZE ((size_t)34 << 10) // of a session: two records of maximum length

void tls_context_freep(SSL_CTX **context)
{
    SSL_CTX_free(*context);
}

void tls_session_freep(SSL **ssl)
{
    SSL_free(*ssl);
}

void tls_keep_at_exit(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static SSL_CTX *new_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);
    if (context == NULL)
        return NULL;
    (void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    (void)SSL_CTX_set_mode(context,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    /* A call returns after what it has read: a peer that only sends key updates cannot block it. */
    (void)SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1); // several records at a time
    SSL_CTX_set_default_read_buffer_len(context, READ_BUFFER_SIZE);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(context, 0); // each connection is authenticated again
    return context;
}

static int use_own(SSL_CTX *context, EVP_PKEY *key, X509 *certificate)
{
    return SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1 &&
           SSL_CTX_check_private_key(context) == 1;
}

/* --- server --- */

static int believe_key(X509_STORE_CTX *store, void *arg)
{
    return 1;
}

static int choose_purpose(SSL *ssl, const unsigned char **ret, unsigned char *ret_length,
    const unsigned char *offered, unsigned length, void *arg)
{
    const char *const *purposes = arg;
    for (; *purposes != NULL; purposes++)
        for (unsigned at = 0; at < length; at += 1U + offered[at]) {
            bool is_whole = at + 1U + offered[at] <= length;
            if (!is_whole || offered[at] != strlen(*purposes) ||
                memcmp(&offered[at + 1], *purposes, offered[at]) != 0)
                continue;
            *ret = &offered[at + 1];
            *ret_length = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int tls_context_server(
    const struct tls_authority *authority, const char *const *purposes, SSL_CTX **ret, struct error *err)
{
    _cleanup_context_ SSL_CTX *context = new_context(TLS_server_method());
    if (context == NULL ||
        !use_own(context, tls_authority_server_key(authority), tls_authority_server_certificate(authority)) ||
        SSL_CTX_add1_chain_cert(context, tls_authority_certificate(authority)) != 1)
        return tls_fail(err, -EIO, "cannot set up TLS");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(context, believe_key, NULL);
    union {
        const char *const *given;
        void *kept;
    } list = { .given = purposes };
    SSL_CTX_set_alpn_select_cb(context, choose_purpose, list.kept);
    *ret = take_ptr(context);
    return 0;
}

/* --- client --- */

/* Dates are ignored: the clock of a node may be wrong. */
static int verify_below(X509 *root, X509_STORE_CTX *asked)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *chain = X509_STORE_CTX_new();
    int code = X509_V_ERR_OUT_OF_MEM;
    if (store != NULL && chain != NULL && X509_STORE_add_cert(store, root) == 1 &&
        X509_STORE_CTX_init(chain, store, X509_STORE_CTX_get0_cert(asked), NULL) == 1) {
        X509_STORE_CTX_set_flags(chain, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
        (void)X509_STORE_CTX_set_default(chain, "ssl_server");
        code = X509_verify_cert(chain) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(chain);
    }
    X509_STORE_CTX_free(chain);
    X509_STORE_free(store);
    return code;
}

static int verify_pinned(X509_STORE_CTX *asked, void *arg)
{
    const uint8_t *wanted = arg;
    STACK_OF(X509) *shown = X509_STORE_CTX_get0_untrusted(asked);
    int code = X509_V_ERR_CERT_REJECTED; // no presented certificate has the pin
    for (int i = 0; code != X509_V_OK && i < sk_X509_num(shown); i++) {
        X509 *certificate = sk_X509_value(shown, i);
        uint8_t pin[TLS_PIN_SIZE];
        if (!tls_pin_of_certificate(certificate, pin) || CRYPTO_memcmp(pin, wanted, sizeof(pin)) != 0)
            continue;
        bool is_own = X509_cmp(certificate, X509_STORE_CTX_get0_cert(asked)) == 0;
        code = is_own ? X509_V_OK : verify_below(certificate, asked);
    }
    X509_STORE_CTX_set_error(asked, code);
    return code == X509_V_OK;
}

static void free_pin(void *parent, void *pin, CRYPTO_EX_DATA *data, int index, long l, void *arg)
{
    free(pin);
}

int tls_context_client(
    const uint8_t pin[TLS_PIN_SIZE], EVP_PKEY *key, X509 *certificate, SSL_CTX **ret, struct error *err)
{
    static int slot = -1; // the pin lives as long as its context
    _cleanup_context_ SSL_CTX *context = new_context(TLS_client_method());
    if (context == NULL || (key != NULL && !use_own(context, key, certificate)))
        return tls_fail(err, -EIO, "cannot set up TLS");
    if (slot < 0)
        slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_pin);
    uint8_t *kept = xcalloc(1, TLS_PIN_SIZE);
    memcpy(kept, pin, TLS_PIN_SIZE);
    if (SSL_CTX_set_ex_data(context, slot, kept) != 1) {
        free(kept);
        return tls_fail(err, -EIO, "cannot set up TLS");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(context, verify_pinned, kept);
    *ret = take_ptr(context);
    return 0;
}

bool tls_peer_pin(SSL *ssl, uint8_t pin[TLS_PIN_SIZE])
{
    const X509 *certificate = SSL_get0_peer_certificate(ssl);
    return certificate != NULL && tls_pin_of_certificate(certificate, pin);
}

bool tls_is_for(const SSL *ssl, const char *purpose)
{
    const unsigned char *agreed = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl, &agreed, &length);
    return length == strlen(purpose) && memcmp(agreed, purpose, length) == 0;
}
