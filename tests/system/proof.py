# SPDX-License-Identifier: MIT
"""What an operator says of a node after a test of parking, as mgpu gpu test --park does."""

GIB = 1 << 30


def node(instance):
    return instance.api('GET', '/nodes').json['nodes'][0]


def claims(instance, **changes):
    """That all of it is well with the driver and the models that the only node has now."""
    models = sorted({gpu['model'] for gpu in instance.gpus()})
    body = {'driver': node(instance)['driver'], 'models': models, 'passed': True, 'elsewhere': 'passed',
            'least_bytes': GIB, 'least_save_ms': 600, 'least_load_ms': 400,
            'most_bytes': 40 * GIB, 'most_save_ms': 23000, 'most_load_ms': 8000}
    body.update(changes)
    return {name: value for name, value in body.items() if value is not None}


def prove(instance, **changes):
    """The answer of mgpud."""
    return instance.api('POST', f'/nodes/{node(instance)["name"]}/parking', claims(instance, **changes), user=instance.user)


def state(instance):
    return node(instance)['parking']['state']
