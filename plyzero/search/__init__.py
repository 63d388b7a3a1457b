"""How does it choose a move?

Read in this order:

tree              the records of a tree, and the phases of a search
mcts              one simulation: select, expand, evaluate, backup; proofs
selection         which action a simulation takes: PUCT, Gumbel, rolls; priors and noise
gumbel            completed values, improved policy, sequential halving
policy            the policy that a finished search recommends
batches           a leaf of each of many searches, or many of one, for the network; virtual loss
slots             many searches side by side, and what they found
solver            exact ends: alpha-beta from the root under a budget of nodes
evaluators        evaluation without a network: uniform, random playouts
known_position    what rules in plain Python have answered, while a game lasts
evaluation_cache  evaluations kept until the next network
storage           the memory of trees, their positions and their edges; the subtree kept for the next search

The kernel is built on:

copying           one array copied to another
numba_kernel      compiles and caches kernel functions; arrays without reference counting
rule_calls        calls a compiled game's rules by address
"""
