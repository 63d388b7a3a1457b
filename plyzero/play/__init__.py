"""How is a bot used?

players          players, and how to find one by name
model_loader     networks from files and runs; hot reload of newer models
bundled_bots     the pretrained bots in bots/
match            matches between two players
match_result     the result of a match, with confidence intervals
session          one game between a person and a bot
game_record      a recorded game, read from a file and replayed, and its frames
film             films and pictures of a recorded game
raster           boards as pixels
analysis         search results with the field names of KataGo's analysis engine
analysis_engine  positions in, search results out, as JSON lines
"""
