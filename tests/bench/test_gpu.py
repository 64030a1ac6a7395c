"""The simulation of GPU clusters, at a size at which it only has to work."""

from __future__ import annotations

import json

import pytest

from plugins.examples.gpu_fragments import GpuShape
from tests.bench import gpu, gpu_trace
from tests.bench.gpu_policies import POLICIES
from tests.bench.gpu_simulation import simulate

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,16000,65536,2,A
n1,16000,65536,2,A
n2,32000,131072,4,B
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
p0,1000,1024,1,460,
p1,2000,1024,1,700,A|B
p2,4000,2048,1,1000,
p3,8000,4096,2,1000,B
p4,3000,1024,0,0,
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_tiny.csv").write_text(PODS)
    return tmp_path


@pytest.fixture
def trace(folder):
    return gpu_trace.read(folder, "tiny")


class TestTrace:
    def test_the_lists_of_a_folder(self, folder):
        assert gpu_trace.names(folder) == ["tiny"]

    def test_all_gpus_count(self, trace):
        assert trace.gpu_milli == 8000

    def test_pods_come_as_they_were_traced(self, trace):
        assert [each.shape for each in trace.pods] == [
            GpuShape(1000, 460, 1),
            GpuShape(2000, 700, 1, frozenset("AB")),
            GpuShape(4000, 1000, 1),
            GpuShape(8000, 1000, 2, frozenset("B")),
            GpuShape(3000),
        ]

    def test_pods_come_until_the_demand_is_reached(self, trace):
        asked = [each.shape.demand_milli for each in gpu_trace.arrivals(trace, 1, 1.3)]
        assert sum(asked[:-1]) < 1.3 * 8000 <= sum(asked)

    def test_each_pod_comes_once_before_any_comes_again(self, trace):
        first = gpu_trace.arrivals(trace, 1, 1.3)[: len(trace.pods)]
        assert sorted(first, key=str) == sorted(trace.pods, key=str)

    def test_seeds_give_orders(self, trace):
        orders = [gpu_trace.arrivals(trace, seed, 1.3) for seed in (1, 1, 2)]
        assert orders[0] == orders[1] != orders[2]


class TestSimulation:
    @pytest.mark.parametrize("policy", POLICIES)
    def test_pods_are_placed(self, trace, policy):
        run = simulate(trace, policy, 1, 1.3)
        assert 0.5 < run.allocated <= 1
        assert run.placed <= run.arrived

    def test_the_same_seed_gives_the_same_run(self, trace):
        runs = [simulate(trace, "fgd", 3, 1.3) for _ in range(2)]
        assert runs[0].allocated == runs[1].allocated
        assert runs[0].fragment == runs[1].fragment


class TestCommand:
    def test_all_that_is_told(self, folder, tmp_path, capsys):
        file = tmp_path / "runs.json"
        policies = "best-fit,fgd"
        arguments = [str(folder), "--policies", policies, "--seeds", "1-2", "--json", str(file)]
        assert gpu.main(arguments) == 0
        assert "| trace | best-fit | fgd |" in capsys.readouterr().out
        assert [run["seed"] for run in json.loads(file.read_text())["tiny"]] == [1, 2, 1, 2]

    def test_a_trace_that_is_not_there_is_named(self, folder, capsys):
        with pytest.raises(SystemExit):
            gpu.main([str(folder), "--traces", "other"])
        assert "unknown: other" in capsys.readouterr().err
