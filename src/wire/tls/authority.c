/* SPDX-License-Identifier: MIT */
/*
 * Certificates contain names and keys, but no policy: the registry decides which node a key belongs to, and
 * every program that trusts this cluster has the hash of the authority's key. So certificates need no
 * renewal, and the clocks of nodes do not matter; dates are only present because the format requires them.
 */
#include "wire/tls/authority.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"

#define BACKDATED_S  (24L * 3600)
#define LIFE_S       (20L * 365 * 24 * 3600)
#define SERIAL_BYTES 16

struct tls_authority {
    EVP_PKEY *key, *server_key;
    X509 *certificate, *server_certificate;
    uint8_t pin[TLS_PIN_SIZE];
};

struct extension {
    int nid;
    const char *value;
};

static const struct extension authority_extensions[] = {
    { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
    { NID_key_usage, "critical,keyCertSign" },
    { NID_subject_key_identifier, "hash" },
    { 0, NULL },
};
static const struct extension node_extensions[] = {
    { NID_basic_constraints, "critical,CA:FALSE" },
    { NID_ext_key_usage, "clientAuth" },
    { 0, NULL },
};

static bool set_serial(X509 *certificate)
{
    uint8_t bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7f;
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool is_set = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return is_set;
}

static bool add_extensions(X509 *certificate, X509 *issuer, const struct extension *rows)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    for (; rows->value != NULL; rows++) {
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, rows->nid, rows->value);
        bool is_added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
        X509_EXTENSION_free(extension);
        if (!is_added)
            return false;
    }
    return true;
}

/* `issuer` NULL: self-signed. */
static int certify(X509 *issuer, EVP_PKEY *issuer_key, EVP_PKEY *key, const char *name,
    const struct extension *extensions, X509 **ret, struct error *err)
{
    _cleanup_certificate_ X509 *certificate = X509_new();
    if (certificate == NULL || X509_set_version(certificate, X509_VERSION_3) != 1 ||
        !set_serial(certificate) || X509_gmtime_adj(X509_getm_notBefore(certificate), -BACKDATED_S) == NULL ||
        X509_gmtime_adj(X509_getm_notAfter(certificate), LIFE_S) == NULL ||
        X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
            (const unsigned char *)name, -1, -1, 0) != 1 ||
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer != NULL ? issuer : certificate)) !=
            1 ||
        X509_set_pubkey(certificate, key) != 1 ||
        !add_extensions(certificate, issuer != NULL ? issuer : certificate, extensions) ||
        X509_sign(certificate, issuer_key, EVP_sha256()) <= 0)
        return tls_fail(err, -EIO, "cannot create a certificate");
    *ret = take_ptr(certificate);
    return 0;
}

/* Names in the form that browsers require: addresses only as addresses. */
static bool is_address(const char *host)
{
    struct in6_addr bytes;
    return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1;
}

static bool is_for_all(X509 *certificate, const struct strings *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        const char *host = hosts->items[i];
        int r = is_address(host)
                    ? X509_check_ip_asc(certificate, host, 0)
                    : X509_check_host(certificate, host, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL);
        if (r != 1)
            return false;
    }
    return true;
}

/* A certificate that is missing after a crash, belongs to another key or lacks a name is created again: it
 * contains nothing beyond the keys and names. */
static int open_certificate(int dirfd, const char *file, X509 *issuer, EVP_PKEY *issuer_key, EVP_PKEY *key,
    const char *name, const struct extension *extensions, const struct strings *hosts, X509 **ret,
    struct error *err)
{
    _cleanup_certificate_ X509 *found = NULL;
    if (tls_certificate_load(dirfd, file, &found, NULL) == 0 && X509_verify(found, issuer_key) == 1 &&
        EVP_PKEY_eq(X509_get0_pubkey(found), key) == 1 && is_for_all(found, hosts)) {
        *ret = take_ptr(found);
        return 0;
    }
    int r = certify(issuer, issuer_key, key, name, extensions, ret, err);
    return r < 0 ? r : tls_certificate_save(dirfd, file, *ret, err);
}

/* The characters allowed in a name, which have no special meaning in the text of an extension. */
static bool is_plain_host(const char *host)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:";
    return host[0] != '\0' && strspn(host, known) == strlen(host) &&
           (is_address(host) || strchr(host, ':') == NULL);
}

static int open_server_certificate(
    struct tls_authority *authority, int dirfd, const struct strings *hosts, struct error *err)
{
    static const char *const usual[] = { "mgpud", "localhost", "127.0.0.1", "::1" };
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        strings_add(&names, usual[i]);
    for (size_t i = 0; i < hosts->count; i++)
        if (is_plain_host(hosts->items[i]))
            strings_add(&names, hosts->items[i]);
    for (size_t i = 0; i < names.count; i++)
        buffer_printf(
            &text, "%s%s:%s", i > 0 ? "," : "", is_address(names.items[i]) ? "IP" : "DNS", names.items[i]);
    const struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:FALSE" },
        { NID_ext_key_usage, "serverAuth" },
        { NID_subject_alt_name, buffer_text(&text) },
        { 0, NULL },
    };
    return open_certificate(dirfd, "server.crt", authority->certificate, authority->key,
        authority->server_key, "mgpud", extensions, &names, &authority->server_certificate, err);
}

static int open_parts(
    struct tls_authority *authority, int dirfd, const struct strings *hosts, struct error *err)
{
    char pin[TLS_PIN_TEXT_SIZE];
    int r = tls_key_open(dirfd, "authority.key", &authority->key, err);
    if (r < 0)
        return r;
    if (!tls_pin_of_key(authority->key, authority->pin))
        return tls_fail(err, -EIO, "cannot hash the authority's key");
    tls_pin_text(authority->pin, pin);
    _cleanup_free_ char *name = xasprintf("mgpu cluster %.8s", pin);
    r = open_certificate(dirfd, "authority.crt", NULL, authority->key, authority->key, name,
        authority_extensions, &(struct strings){ 0 }, &authority->certificate, err);
    if (r == 0)
        r = tls_key_open(dirfd, "server.key", &authority->server_key, err);
    return r < 0 ? r : open_server_certificate(authority, dirfd, hosts, err);
}

int tls_authority_open(
    const char *dir, const struct strings *hosts, struct tls_authority **ret, struct error *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create the directory %s", dir);
    _cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dirfd < 0)
        return error_set_errno(err, -errno, "cannot open the directory %s", dir);
    struct tls_authority *authority = xcalloc(1, sizeof(*authority));
    int r = open_parts(authority, dirfd, hosts, err);
    if (r < 0) {
        tls_authority_free(authority);
        return error_wrap(err, "%s", dir);
    }
    *ret = authority;
    return 0;
}

void tls_authority_free(struct tls_authority *authority)
{
    if (authority == NULL)
        return;
    EVP_PKEY_free(authority->key);
    EVP_PKEY_free(authority->server_key);
    X509_free(authority->certificate);
    X509_free(authority->server_certificate);
    free(authority);
}

const uint8_t *tls_authority_pin(const struct tls_authority *authority)
{
    return authority->pin;
}

X509 *tls_authority_certificate(const struct tls_authority *authority)
{
    return authority->certificate;
}

EVP_PKEY *tls_authority_server_key(const struct tls_authority *authority)
{
    return authority->server_key;
}

X509 *tls_authority_server_certificate(const struct tls_authority *authority)
{
    return authority->server_certificate;
}

int tls_authority_read_request(const char *pem, EVP_PKEY **ret, struct error *err)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509_REQ *request = bio != NULL ? PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = request != NULL ? X509_REQ_get_pubkey(request) : NULL;
    bool is_proven = key != NULL && EVP_PKEY_is_a(key, "EC") == 1 && X509_REQ_verify(request, key) == 1;
    X509_REQ_free(request);
    (void)BIO_free(bio);
    if (!is_proven) {
        EVP_PKEY_free(key);
        return tls_fail(err, -EBADMSG, "the node's certificate request is invalid");
    }
    *ret = key;
    return 0;
}

int tls_authority_issue(
    const struct tls_authority *authority, EVP_PKEY *key, const char *name, X509 **ret, struct error *err)
{
    return certify(authority->certificate, authority->key, key, name, node_extensions, ret, err);
}

bool tls_authority_has_issued(const struct tls_authority *authority, X509 *certificate)
{
    return X509_verify(certificate, authority->key) == 1;
}
