"""How is a bot used?

players          players, and how to find one by name
agents           players of your own, and what happens when they fail
rule_based       players by rules alone, for any game
model_loader     networks from files and runs; hot reload of newer models
bundled_bots     the pretrained bots in bots/
match            matches between two players
match_result     the result of a match, with confidence intervals
strength         what is known of the strength of a model, which says what its judgement is worth
ratings          ratings from games, with confidence intervals
entrants         the players of a ladder, and what identifies them
checkpoints      the models of a run as players of its ladder
pair_player      pairs of games in worker processes
ladder           resumable tournaments
session          one game between a person and a bot
game_record      a recorded game, read from a file and replayed, and its frames
film             films and pictures of a recorded game
raster           boards as pixels
analysis         search results with the field names of KataGo's analysis engine
analysis_engine  positions in, search results out, as JSON lines
gtp              the Go Text Protocol: a command in, a response out
gtp_game         a game whose moves a controller says word by word
gtp_points       the points of a board, of which moves are made
gtp_analysis     what a search finds, as lines of info and as graphics of GoGui
"""
