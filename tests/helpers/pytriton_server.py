"""NVIDIA Triton on a processor: serves an ONNX file until the end of its input. Runs in build/pytriton.

python pytriton_server.py MODEL.onnx NAME VERSION PORT
"""

import sys

import numpy as np
import onnxruntime
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


def main(path: str, name: str, version: str, port: str) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tensors = {each.name: each.shape[1:] for each in (*session.get_inputs(), *session.get_outputs())}
    declared = {each: Tensor(name=each, dtype=np.float32, shape=tuple(shape)) for each, shape in tensors.items()}

    @batch
    def infer(observations: np.ndarray) -> dict[str, np.ndarray]:
        outputs = ("logits", "wdl")
        return dict(zip(outputs, session.run(outputs, {"observations": observations}), strict=True))

    number = int(port)
    config = TritonConfig(grpc_port=number, http_port=number + 1, metrics_port=number + 2, grpc_address="127.0.0.1")
    with Triton(config=config) as triton:
        triton.bind(
            model_name=name,
            model_version=int(version),
            infer_func=infer,
            inputs=[declared["observations"]],
            outputs=[declared["logits"], declared["wdl"]],
            config=ModelConfig(max_batch_size=64),
        )
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
