"""Networks with half the bytes: weights of 16 bits, with which a page computes in 32 bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from plyzero.network.onnx_graph import Model

SMALLEST: Final = 64
"""Number of weights from which on a tensor is stored in 16 bits."""

SUFFIX: Final = "/16-bit"


def halve_weights(model: Model) -> None:
    """Store the weights of a model as float16, with a Cast to float32 behind each.

    Weights that float16 cannot hold, such as 1e6, stay as they are. Constants that are inputs of the graph do too.
    """
    from onnx import TensorProto, helper, numpy_helper

    inputs = {each.name for each in model.graph.input}
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or tensor.name in inputs:
            continue
        weights = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            halved = weights.astype(np.float16)
        if weights.size < SMALLEST or not np.isfinite(halved).all():
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(halved, name + SUFFIX))
        casts.append(helper.make_node("Cast", [name + SUFFIX], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
