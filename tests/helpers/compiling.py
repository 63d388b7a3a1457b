"""The first lines of a program that counts in `compiled` what it compiles."""

COUNT_COMPILED = """
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        if not event.data["dispatcher"].py_func.__module__.startswith("numba."):  # every process compiles Numba's own
            compiled.append(1)
    def on_end(self, event): pass
event.register("numba:compile", Listener())
"""
