"""How does it choose a move?

Read in this order:

mcts              one simulation: select, expand, evaluate, backup
tree              the records of a tree, and the phases of a search
selection         which action a simulation takes: PUCT, Gumbel
proofs            what is known exactly: proven values, expectations over rolls
gumbel            completed values, improved policy, sequential halving
policy            the policy that a finished search recommends
slots             many searches side by side, and what they found
evaluators        who evaluates a leaf: nobody (uniform), random playouts, or a network
evaluation_cache  evaluations remembered until the next network
empty_trees       makes the trees of a game
edge_memory       takes memory for edges, and gives it back
states            the positions in a tree, kept or played again from the root
priors            the probabilities that a network and noise give to actions
tree_reuse        the tree below the move that was played, kept for the next search

What the kernel stands on:

kernel_cache      compiles kernel functions, and recompiles them when any kernel source changes
rule_calls        calls a compiled game's rules by address
numba_arrays      arrays without reference counting
"""
