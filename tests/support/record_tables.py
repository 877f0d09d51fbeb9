#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes record_tables.c: all record types that are defined below SRC, for tests that try each of them.

    tests/support/record_tables.py SRC RECORD_TABLES.c DEPFILE

The sources are searched, so that no type can be missing from a list that somebody has to keep. A static one cannot be reached
by its name. It may be part of another record of its file, which a test finds through that one, or have nothing but numbers,
for which a field table has no limits. Any other is an error: it has to be declared in the header of its file.
"""

import glob
import os
import re
import sys

TYPE = re.compile(r'^(?P<static>static )?const struct record_type\s+(?P<name>\w+)\s*=\s*'
                  r'(?:RECORD_TYPE\(.*?(?P<fields>\w+)\)|\{[^{}]*\});', re.M | re.S)
FIELDS = re.compile(r'^static const struct record_field (?P<name>\w+)\[\] = \{(?P<rows>.*?)\};', re.M | re.S)
NUMBER = re.compile(r'RECORD_FIELD\(\d+, RECORD_(BOOL|[UI](32|64)|SIZE|MILLI|DURATION|TIME), [^()]*\)|'
                    r'ATTEMPT_FIELDS?\([^()]*\)')


def find(path):
    """The names of the record types of a file that others can use, and a sentence for each one that no test could reach."""
    with open(path, encoding='utf-8') as source:
        text = re.sub(r'/\*.*?\*/|//[^\n]*', '', source.read(), flags=re.S)
    types = list(TYPE.finditer(text))
    tables = {found['name']: found['rows'] for found in FIELDS.finditer(text)}
    complaints = []
    if len(re.findall(r'\bRECORD_TYPE\(', text)) != sum(found['fields'] is not None for found in types):
        complaints.append(f'{path}: a RECORD_TYPE() that is not the value of a "const struct record_type NAME"')
    for found in types:
        is_part = any(re.search(rf'&{found["name"]}\b', rows) for rows in tables.values())
        has_numbers_alone = not NUMBER.sub('', tables.get(found['fields'], '?')).strip(', \n')
        if found['static'] and not is_part and not has_numbers_alone:
            complaints.append(f'{path}: {found["name"]} is static, so that no test can try the limits of its texts and lists: '
                              f'declare it in {os.path.basename(path)[:-2]}.h')
    return [found['name'] for found in types if not found['static']], complaints


def main():
    src, output, depfile = sys.argv[1:]
    paths = sorted(glob.glob(f'{src}/**/*.c', recursive=True))
    names, complaints = [], []
    for path in paths:
        found = find(path)
        names += found[0]
        complaints += found[1]
    if complaints:
        sys.exit('\n'.join(complaints))
    with open(output, 'w', encoding='utf-8') as out:
        out.write('#include "record_tables.h"\n\nextern const struct record_type ' + ',\n    '.join(names) + ';\n\n'
                  'const struct record_type *const record_tables[] = { &' + ',\n    &'.join(names) + ' };\n'
                  f'const size_t record_tables_count = {len(names)};\n')
    folders = sorted({os.path.dirname(path) for path in paths}) # one changes when it gets a file
    with open(depfile, 'w', encoding='utf-8') as out:
        out.write(f'{output}: {" ".join(paths + folders)}\n')


if __name__ == '__main__':
    main()
