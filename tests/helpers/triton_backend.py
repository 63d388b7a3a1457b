"""In place of NVIDIA Triton's backend for ONNX Runtime, which no Python package has: a backend in Python for the same
models. Triton runs it, in build/pytriton, as `onnxruntime/model.py` in its directory of backends."""

import os
from typing import Any

import onnxruntime
import triton_python_backend_utils as triton  # part of Triton


class TritonPythonModel:
    """The network in the version's `model.onnx`."""

    def initialize(self, args: dict[str, str]) -> None:
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def execute(self, requests: list[Any]) -> list[Any]:
        return [triton.InferenceResponse(output_tensors=self.evaluate(request)) for request in requests]

    def evaluate(self, request: Any) -> list[Any]:
        observations = triton.get_input_tensor_by_name(request, "observations").as_numpy()
        values = self.session.run(("logits", "wdl"), {"observations": observations})
        return [triton.Tensor(name, each) for name, each in zip(("logits", "wdl"), values, strict=True)]
