"""Kit arena: a ladder of many players, rated from their games.

commands     ladder, plot
entrants     the players of a ladder, and what identifies them
checkpoints  the models of a run as players of its ladder
pair_player  pairs of games in worker processes
ladder       resumable tournaments
ratings      ratings of many players from their games, with intervals and a test of the model
plots        pictures of tables and ratings
"""
