"""Small records in a pipeline of Beam: each one's label summed by a function of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from case import OURS, Case, Peer, Task
from cases.columns import example_class
from inputs import Inputs

_INPUT = "small-packed"
_SETTING = "beam_python"


def _task(inputs: Inputs, transforms: Callable[[], list[Any]]) -> Task:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    out = inputs.out("beam-sums")

    def run() -> int:
        with beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions([])) as pipeline:
            found = pipeline
            for number, transform in enumerate(transforms()):
                found = found | f"{number}" >> transform
            _ = (
                found
                | "sum" >> beam.CombineGlobally(sum)
                | "write" >> beam.io.WriteToText(str(out), shard_name_template="")
            )
        return int(out.read_text())

    return Task(run, records=inputs.record_counts[_INPUT], digest=int)


def _batches(inputs: Inputs) -> Task:
    import apache_beam as beam

    from recordsmith.beam.reading import ReadBatches

    def label_sum(batch: Any) -> int:
        import pyarrow.compute as pc

        return int(pc.sum(batch["label"]).as_py())

    path = str(inputs.path(_INPUT))
    return _task(inputs, lambda: [ReadBatches(path), beam.Map(label_sum)])


def _examples(inputs: Inputs) -> Task:
    import apache_beam as beam

    from recordsmith.beam.reading import ReadExamples

    path = str(inputs.path(_INPUT))
    return _task(
        inputs,
        lambda: [ReadExamples(path), beam.Map(lambda example: int(example["label"][0]))],
    )


def _messages(inputs: Inputs) -> Task:
    import apache_beam as beam

    pattern = str(inputs.path(_INPUT) / "*.tfrecord")

    class Label(beam.DoFn):  # type: ignore[misc]
        def setup(self) -> None:
            self._parse = example_class().FromString

        def process(self, payload: bytes) -> Iterator[int]:
            yield int(self._parse(payload).features.feature["label"].int64_list.value[0])

    return _task(inputs, lambda: [beam.io.ReadFromTFRecord(pattern), beam.ParDo(Label())])


CASES = (
    Case(
        "beam",
        "Small records in a Beam pipeline",
        "Records of about 200 bytes, of which a function of the pipeline takes the labels. "
        "FnApiRunner in one process.",
        "record",
        (
            Peer(OURS, _batches, python_setting=_SETTING),
            Peer(
                "`ReadFromTFRecord` and `Example.FromString`",
                _messages,
                at_most=1 / 10,
                python_setting=_SETTING,
            ),
            Peer("recordsmith: `ReadExamples`, dicts", _examples, python_setting=_SETTING),
        ),
        inputs=(_INPUT,),
    ),
)
