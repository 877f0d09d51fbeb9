import pytest
import harness
from cluster import Cluster

@pytest.fixture(scope='module')
def cluster(someone):
    with Cluster(2, client=someone) as made:
        yield made

@pytest.mark.parametrize('n', [1, 2])
def test_x(cluster, n):
    box = cluster.box
    bad = []
    for i in range(12):
        job = box.submit('-N', str(n), '-g', str(n), '--', 'sleep', '1000')
        box.wait(job, 'running')
        for k in range(3):
            done = box.mgpu('exec', '--rank', str(n - 1), job, '--', 'echo', 'hi')
            if done.out != 'hi\n': bad.append((i, k, done.code, done.err))
        box.mgpu('cancel', job)
        box.wait(job)
    assert not bad, bad
