"""Kit browser: a compiled game and its bot as a folder of static files, which any browser plays without Python.

commands       share
wasm           the rules as a WebAssembly module
memory         what replaces Numba's memory in it
module_rules   such a module called from Python
state_numbers  numbers of the state in texts
byte_tables    texts as functions of a few bytes of the state
game_texts     names of moves, the board and the scoreboard of a game as such tables
proof          module and tables compared with Python on random positions
game_folder    the files of a game and its bot
folder_sizes   the bytes of its parts, and how long a visitor waits for them
newest_bot     the folder kept at the newest model of a run
page_files     the files of the page
sharing        all of this in order
web_runtime    ONNX Runtime for the browser
"""
