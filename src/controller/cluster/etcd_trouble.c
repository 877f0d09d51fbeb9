/* SPDX-License-Identifier: MIT */
/*
 * An etcd server reports only "bad certificate" when it refuses ours, so the problem is determined from the
 * file. Our certificate may be valid for a different authority than the one that certifies etcd's servers.
 * --cluster-ca then proves nothing, and the message names both.
 */
#include "controller/cluster/etcd_trouble.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/memory.h"

#define DATE_SIZE 64

static void free_certificate(X509 **certificate)
{
    X509_free(*certificate);
}
#define _cleanup_x509_ _cleanup_(free_certificate)

static X509 *load(const char *path)
{
    BIO *file = path != NULL ? BIO_new_file(path, "r") : NULL;
    X509 *certificate = file != NULL ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    (void)BIO_free(file);
    ERR_clear_error();
    return certificate;
}

static void write_date(const ASN1_TIME *time, char text[DATE_SIZE])
{
    BIO *out = BIO_new(BIO_s_mem());
    int n = out != NULL && ASN1_TIME_print(out, time) == 1 ? BIO_read(out, text, DATE_SIZE - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    (void)BIO_free(out);
}

static bool is_signed_by(X509 *certificate, X509 *authority)
{
    bool is_valid = X509_verify(certificate, X509_get0_pubkey(authority)) == 1;
    ERR_clear_error();
    return is_valid;
}

/* Explains why the server refused our certificate. */
static int explain_refusal(const struct etcd_settings *settings, const char *endpoint, struct error *err)
{
    char date[DATE_SIZE];
    if (settings->cert == NULL) {
        (void)error_set(err, -EAGAIN, "etcd %s requires a client certificate", endpoint);
        return error_hint(err, "set --cluster-cert and --cluster-key");
    }
    _cleanup_x509_ X509 *own = load(settings->cert), *authority = load(settings->ca);
    if (own != NULL && X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
        write_date(X509_get0_notAfter(own), date);
        (void)error_set(err, -EAGAIN, "etcd %s refuses %s: this certificate expired on %s", endpoint,
            settings->cert, date);
        return error_hint(err, "replace the files of --cluster-cert and --cluster-key, and restart mgpud");
    }
    if (own != NULL && X509_cmp_current_time(X509_get0_notBefore(own)) > 0) {
        write_date(X509_get0_notBefore(own), date);
        (void)error_set(err, -EAGAIN, "etcd %s refuses %s: this certificate is not valid before %s", endpoint,
            settings->cert, date);
        return error_hint(err, "check the clock of this machine");
    }
    bool is_foreign = own != NULL && authority != NULL && !is_signed_by(own, authority);
    (void)error_set(err, -EAGAIN,
        is_foreign ? "etcd %s refuses %s: the authority of --cluster-ca did not issue this certificate"
                   : "etcd %s refuses %s: it is revoked, or issued by an authority that etcd does not trust",
        endpoint, settings->cert);
    return error_hint(err, "etcd's --trusted-ca-file names the authority for clients");
}

/* Explains what is wrong with the server's certificate. */
static int explain_server(
    const struct etcd_settings *settings, const char *endpoint, const char *text, struct error *err)
{
    if (strstr(text, "expired") != NULL)
        (void)error_set(err, -EAGAIN, "etcd %s: the certificate of this server has expired", endpoint);
    else if (strstr(text, "not yet valid") != NULL)
        (void)error_set(err, -EAGAIN, "etcd %s: the certificate of this server is not valid yet", endpoint);
    else if (strstr(text, "subject name") != NULL || strstr(text, "no alternative") != NULL)
        (void)error_set(err, -EAGAIN, "etcd %s: the certificate of this server is for another name: %.100s",
            endpoint, text);
    else
        (void)error_set(err, -EAGAIN,
            "etcd %s: the certificate of this server was not issued by the authority in %s", endpoint,
            settings->ca != NULL ? settings->ca : "this machine's list");
    return error_hint(
        err, settings->ca != NULL ? "check etcd's --cert-file and --cluster-ca" : "set --cluster-ca");
}

int etcd_trouble_describe(const struct etcd_settings *settings, const char *endpoint, CURLcode code,
    const char *text, struct error *err)
{
    bool is_refused = strstr(text, "alert") != NULL &&
                      (strstr(text, "certificate") != NULL || strstr(text, "unknown ca") != NULL);
    if (is_refused)
        (void)explain_refusal(settings, endpoint, err);
    else if (code == CURLE_PEER_FAILED_VERIFICATION)
        (void)explain_server(settings, endpoint, text, err);
    else
        (void)error_set(err, -EAGAIN, "etcd %s: %.200s", endpoint, text);
    /* A server without TLS answers in plain text, or resets the connection at the first bytes of TLS. */
    bool is_plain = strstr(text, "wrong version number") != NULL;
    bool is_reset = code == CURLE_SSL_CONNECT_ERROR &&
                    (strstr(text, "SSL_ERROR_SYSCALL") != NULL || strstr(text, "Connection reset") != NULL);
    if (is_plain || is_reset) {
        (void)error_set(err, -EAGAIN,
            is_plain ? "etcd %s does not use TLS" : "etcd %s closed the connection in the TLS handshake",
            endpoint);
        (void)error_hint(err, is_plain ? "with etcd:// instead of etcds://, mgpud uses no TLS either"
                                       : "if it does not use TLS, write etcd:// instead of etcds://");
    }
    return -EAGAIN;
}

int etcd_trouble_describe_refusal(
    const struct etcd_settings *settings, const char *endpoint, struct error *err)
{
    (void)explain_refusal(settings, endpoint, err);
    return -EAGAIN;
}

static int check_file(const char *option, const char *path, struct error *err)
{
    BIO *file = path != NULL ? BIO_new_file(path, "r") : NULL;
    int code = errno;
    bool is_there = path == NULL || file != NULL;
    (void)BIO_free(file);
    ERR_clear_error();
    if (is_there)
        return 0;
    (void)error_set_errno(err, -code, "%s: cannot read %s", option, path);
    return error_hint(err, "mgpud reads it as --user, not as root");
}

int etcd_trouble_check(const struct etcd_settings *settings, struct error *err)
{
    int r = check_file("--cluster-ca", settings->ca, err);
    if (r == 0)
        r = check_file("--cluster-cert", settings->cert, err);
    if (r == 0)
        r = check_file("--cluster-key", settings->key, err);
    if (r == 0 && (settings->cert == NULL) != (settings->key == NULL))
        r = error_set(err, -EINVAL, "--cluster-cert and --cluster-key belong together");
    if (r < 0 || settings->cert == NULL)
        return r;
    _cleanup_x509_ X509 *own = load(settings->cert);
    BIO *file = BIO_new_file(settings->key, "r");
    EVP_PKEY *key = file != NULL ? PEM_read_bio_PrivateKey(file, NULL, NULL, NULL) : NULL;
    bool is_pair = own != NULL && key != NULL && X509_check_private_key(own, key) == 1;
    bool is_certificate = own != NULL;
    (void)BIO_free(file);
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (is_pair)
        return 0;
    return is_certificate
               ? error_set(
                     err, -EINVAL, "--cluster-key: %s is not the key of %s", settings->key, settings->cert)
               : error_set(err, -EINVAL, "--cluster-cert: %s contains no certificate", settings->cert);
}
