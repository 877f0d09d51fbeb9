// SPDX-License-Identifier: MIT
// Requests to mgpud. Each carries a header that pages of other sites cannot add without permission.

const HEADERS = { 'Mgpu-Page': '1' };

/** An error answer of mgpud: its sentence, its hint and its code. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `mgpud answered ${status}`);
    this.status = status;
    this.code = body.code ?? 'internal';
    this.hint = body.hint ?? null;
    this.leader = body.leader ?? null; // of several controllers
  }
}

async function answerOf(response) {
  if (response.ok) return response;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // not from mgpud: the status says it
  }
  throw new Problem(response.status, body);
}

/** A response whose body is still to be read; rejects with a Problem. */
export async function open(path, options = {}) {
  return answerOf(await fetch(path, {
    ...options, headers: { ...HEADERS, ...options.headers }, cache: 'no-store', redirect: 'error',
  }));
}

export const get = async (path, options) => (await open(`api/v1/${path}`, options)).json();

async function send(method, path, body) {
  const response = await open(`api/v1/${path}`, {
    method, headers: { 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.json();
}

export const post = (path, body = {}) => send('POST', path, body);
export const remove = (path) => send('DELETE', path);

/** A random key, with which a repeated submit is recognised. */
export const submitKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
