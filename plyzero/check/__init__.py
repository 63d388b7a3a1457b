"""Is a game right? A law is a property that every game must have; random games are played to find what breaks it.

wording            words for what a law has found
laws               the laws that hold at every position of a game
final_board_laws   the law of final_board
symmetry_laws      the laws of symmetries
agreement          the laws that compiled and plain rules agree, and two forms of a game
sampling           positions and games on which laws about many positions are tested
sample_laws        the laws that take many positions to test
violations         the search for a broken law and for few moves that show it; GameLaws for pytest
point_of_view      whether observations show own and opponent's pieces, or those of player 0 and player 1
survey             statistics of random games, and what they suggest
ends               first moves and the kinds of ends of random games, for a person to judge
state_fields       the fields of a State for what the attributes of a plain game hold
plain_source       the source of a plain game, and of what it uses
compiled_skeleton  the compiled form of a plain game, begun
rule_by_rule       the rules of a compiled game compared with those of a plain one, each by itself
new_project        `plyzero new`: a project for a new game, from template/
"""
