"""How is a bot used?

players          players, and how to find one by name
model_loader     networks from files and runs, hot reload
bundled_bots     the pretrained bots in bots/
match            games between two players, scores with intervals
session          one game between a person and a bot
analysis         what a search found, with KataGo's field names
analysis_engine  positions in, analyses out, as JSON lines
"""
