# SPDX-License-Identifier: MIT
"""The OpenAPI document, as a validator of others reads it."""

import os
import shutil
import subprocess

import pytest

import harness

VALIDATOR = '@seriousme/openapi-schema-validator@2.11.0'
NPM_S = 300
CLIENT = ('openapi-client-axios@7.9.0', 'axios@1.13.2')
CLIENT_PROGRAM = """
import { OpenAPIClientAxios } from 'openapi-client-axios';
import { readFileSync } from 'fs';
const definition = JSON.parse(readFileSync('openapi.json'));
definition.servers = [{ url: process.env.ADDRESS }];
const client = await new OpenAPIClientAxios({ definition }).init();
const job = (await client.post_jobs(null, { command: 'echo from the document; exit 3', cwd: '/tmp' })).data;
const log = await client.get_jobs_id_log({ id: job.id, follow: 1 });
process.stdout.write(log.data);
const done = (await client.get_jobs_id_wait({ id: job.id })).data;
console.log(done.state, done.exit_code);
try { await client.get_jobs_id({ id: 999999 }); }
catch (error) { console.log(error.response.status, error.response.data.code); }
"""
PROGRAM = """
import { Validator } from '@seriousme/openapi-schema-validator';
import { readFileSync } from 'fs';
const result = await new Validator().validate(JSON.parse(readFileSync('openapi.json')));
if (!result.valid) console.log(JSON.stringify(result.errors, null, 1));
process.exitCode = result.valid ? 0 : 1;
"""


def run_node(folder, packages, program, document, **options):
    """What the program did with openapi.json beside it."""
    made = subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, *packages],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=NPM_S)
    if made.returncode != 0:
        pytest.skip(f'{packages[0]} cannot be had: {made.stderr[-300:]}')
    (folder / 'openapi.json').write_bytes(document.body)
    (folder / 'program.mjs').write_text(program)
    done = subprocess.run(['node', 'program.mjs'], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=NPM_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.real
@pytest.mark.skipif(not (shutil.which('npm') and shutil.which('node')), reason='npm is not installed')
def test_a_validator_accepts_the_document(make_instance, tmp_path):
    document = make_instance('none').api('GET', '/openapi.json')
    assert document.status == 200 and document.headers['content-type'] == 'application/json'
    run_node(tmp_path, [VALIDATOR], PROGRAM, document)


@pytest.mark.real
@pytest.mark.root
@pytest.mark.skipif(not (shutil.which('npm') and shutil.which('node')), reason='npm is not installed')
def test_a_client_made_from_the_document_submits_and_follows(make_instance, tmp_path):
    port = harness.free_port()
    box = make_instance('sim:1x8G', arguments=('--listen', f'127.0.0.1:{port}', '--allow-root-jobs'))
    printed = run_node(tmp_path, CLIENT, CLIENT_PROGRAM, box.api('GET', '/openapi.json'),
                       env={**os.environ, 'ADDRESS': f'http://127.0.0.1:{port}'})
    assert printed == 'from the document\nfailed 3\n404 not_found\n', printed


def strict(schema):
    """A member that the document does not know fails."""
    if isinstance(schema, dict):
        kept = {key: strict(value) for key, value in schema.items()}
        return {**kept, 'additionalProperties': False} if 'properties' in kept else kept
    return [strict(value) for value in schema] if isinstance(schema, list) else schema


def test_answers_are_as_the_document_says(make_instance, gate):
    jsonschema = pytest.importorskip('jsonschema')
    box = make_instance('sim:2x8G')
    document = box.api('GET', '/openapi.json').json
    ended = box.post_job(['sh', '-c', 'exit 3'], gpus=1)
    box.wait(ended)
    running = box.post_job(gate.command(), gpus=1)
    box.wait(running, 'running')
    waiting = box.post_job(['true'], gpus=2)
    ids = {'/api/v1/jobs/{id}/why': waiting, '/api/v1/jobs/{id}/retry': ended, '/api/v1/jobs/{id}/signal': running,
           '/api/v1/jobs/{id}/suspend': running, '/api/v1/jobs/{id}/continue': running}
    bodies = {'/api/v1/jobs': {'command': ['true'], 'cwd': '/tmp'}, '/api/v1/jobs/{id}/signal': {'signal': 'CONT'},
              '/api/v1/jobs/{id}/edit': {'priority': 1}}
    queries = {'/api/v1/gpus/history': '?gpu=0&step=60', '/api/v1/history': '?by=user', '/api/v1/jobs/{id}/wait': '?timeout=0'}
    examined = set()
    for path, operations in document['paths'].items():
        for method, operation in sorted(operations.items()):
            content = operation['responses']['2XX'].get('content')
            if content is None or path.endswith(('/requeue', '/cancel', 'park')):
                continue
            shown = path.replace('{id}', str(ids.get(path, ended if path.endswith(('/{id}', '/wait')) else waiting)))
            answer = box.api(method.upper(), shown.removeprefix('/api/v1') + queries.get(path, ''), bodies.get(path) if method == 'post' else None)
            assert answer.status in (200, 201, 202), (path, answer)
            schema = {**strict(content['application/json']['schema']), 'components': strict(document['components'])}
            jsonschema.Draft202012Validator(schema).validate(answer.json)
            examined.add((method, path))
    assert len(examined) > 20
    problem = box.api('GET', '/jobs/999999')
    jsonschema.Draft202012Validator({**strict(document['components']['schemas']['Problem'])}).validate(problem.json)
    gate.open()
