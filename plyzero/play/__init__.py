"""How is a bot used?

player           what every player has: a name, a choice of moves, a strength, an identity
players          how to find a player by its name; bots of a model
search_player    a player that searches, with any evaluator
clock            the time of a player, and the end of a search in time
agents           players of your own, and what happens when they fail
rule_based       players by rules alone, for any game
bundled_bots     the pretrained bots in bots/
anchors          scores against players that people know, and what they say of a strength
strength         the measured strength of a model, and whether it is enough to judge moves
judge            the bot whose searches are hints, analyses and reviews
scores           the result of a match, its intervals and its Elo difference
match            matches between two players
session          one game between a person and a bot
shared_games     games between two people in two places, which a server keeps
found_moves      the moves that a search has found, with KataGo's field names, as a table and on the board
spots            the places of moves on a rendered board, and their names as people write them
"""
