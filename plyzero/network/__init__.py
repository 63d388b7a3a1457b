"""What is a published model?

onnx_network  a published network, run by ONNX Runtime
onnx_graph    the check of a network's graph before it is run
model_loader  networks from files and runs; hot reload of newer models
"""
