"""A runtime for MLServer that evaluates with an ONNX file. Runs in build/mlserver."""

import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxRuntime(MLModel):
    """The network in the file that the settings of the model name; its version is theirs."""

    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = await get_model_uri(self._settings)
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        observations = NumpyCodec.decode_input(payload.inputs[0]).astype(np.float32)
        outputs = ("logits", "wdl")
        values = self.session.run(outputs, {"observations": observations})
        return InferenceResponse(
            model_name=self.name,
            model_version=self.version,
            outputs=[NumpyCodec.encode_output(name, each) for name, each in zip(outputs, values, strict=True)],
        )
