"""What is a published model?

onnx_network  a published network, run by ONNX Runtime
onnx_graph    what a network may be made of, checked before it is run
model_loader  networks from files and runs; hot reload of newer models
"""
