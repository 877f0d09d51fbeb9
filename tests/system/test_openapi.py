# SPDX-License-Identifier: MIT
"""The OpenAPI document, as a validator of others reads it."""

import shutil
import subprocess

import pytest

VALIDATOR = '@seriousme/openapi-schema-validator@2.11.0'
NPM_S = 300
PROGRAM = """
import { Validator } from '@seriousme/openapi-schema-validator';
import { readFileSync } from 'fs';
const result = await new Validator().validate(JSON.parse(readFileSync('openapi.json')));
if (!result.valid) console.log(JSON.stringify(result.errors, null, 1));
process.exitCode = result.valid ? 0 : 1;
"""


@pytest.mark.real
@pytest.mark.skipif(not (shutil.which('npm') and shutil.which('node')), reason='npm is not installed')
def test_a_validator_accepts_the_document(make_instance, tmp_path):
    made = subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--prefix', tmp_path, VALIDATOR], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=NPM_S)
    if made.returncode != 0:
        pytest.skip(f'the validator cannot be had: {made.stderr[-300:]}')
    document = make_instance('none').api('GET', '/openapi.json')
    assert document.status == 200 and document.headers['content-type'] == 'application/json'
    (tmp_path / 'openapi.json').write_bytes(document.body)
    (tmp_path / 'check.mjs').write_text(PROGRAM)
    done = subprocess.run(['node', 'check.mjs'], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=NPM_S)
    assert done.returncode == 0, done.stdout + done.stderr
