"""The model of `graph`: what ranks compute, send and wait for, from a file beside the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field, PrivateAttr, model_validator

from mrc_testbed.testbed.scenario.model.arrival_models import File, Stretch
from mrc_testbed.testbed.scenario.model.step_models import MAX_STEPS, PlacedExchange, StepEntry
from mrc_testbed.testbed.scenario.text.beside import DataFile, DataFileMistake, data_file
from mrc_testbed.testbed.scenario.text.fields import Whole, refuse
from mrc_testbed.testbed.workloads.graph import Graph, GraphError, read_graph
from mrc_testbed.testbed.workloads.graph_job import GraphJob, graph_job
from mrc_testbed.testbed.workloads.steps import StepAction
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.shape import Shape


class GraphEntry(StepEntry):
    """A job of steps, each of them the whole graph of a file."""

    kind: ClassVar[str] = "graph"

    file: File = Field(description="JSON lines: what each rank computes, sends and waits for", examples=["step.jsonl"])
    iterations: Whole = Field(default=1, ge=1, le=MAX_STEPS, description="how many count", examples=[20])
    warm_up: Whole = Field(default=0, ge=0, le=1000, description="how many come before them", examples=[1])
    stretch: Stretch = Field(
        default=1.0, description="computations of the file take that many times as long", examples=[4000]
    )
    _graph: Graph = PrivateAttr(default_factory=lambda: Graph(0, ()))
    _data: DataFile | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> GraphEntry:
        try:
            self._data = data_file(self.file)
            self._graph = read_graph(self._data.text().split("\n"))
        except DataFileMistake as mistake:
            raise refuse(str(mistake), below="file") from None
        except GraphError as error:
            place = f"{self.file}:{error.line}" if error.line else self.file
            raise refuse(f"{place}: {error}", below="file") from None
        return self

    @property
    def data(self) -> DataFile:
        """Its file as it was read. Raises ValueError for an entry that was not loaded."""
        if self._data is None:
            raise ValueError("only the graph of a loaded scenario has its file")
        return self._data

    @property
    def ranks(self) -> int:
        """Of the file."""
        return self._graph.ranks

    @property
    def step_count(self) -> int:
        """How many steps are measured."""
        return self.iterations

    @property
    def warm_up_count(self) -> int:
        """How many steps run before the first measured one."""
        return self.warm_up

    @property
    def parts(self) -> tuple[StepAction, ...]:
        """None that could be named."""
        return ()

    def placed(self) -> Iterator[PlacedExchange]:
        """None: it has no collectives of ours."""
        yield from ()

    def all_host_names(self, shape: Shape) -> tuple[str, ...]:
        """As written, else the first hosts of the fabric, one for each rank."""
        return self.hosts or super().all_host_names(shape)[: self.ranks]

    def job(self, shape: Shape, first_rank: int = 0) -> GraphJob:
        """The job; `first_rank`: how many ranks the jobs before it have."""
        numbers = tuple(number for number in map(parse_host, self.host_names(shape)) if number is not None)
        return graph_job(numbers, self.iterations, self.warm_up, first_rank, self._graph, self.stretch)
