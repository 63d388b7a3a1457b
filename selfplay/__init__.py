"""The self-play worker: plays games with the newest model and seals them into segments for the trainer.

worker           the loop of a worker process
evaluated_games  the games of a worker and what evaluates them: this process, or a server
games_in_play    games that are played in parallel
step             the compiled step of these games
replay_writer    from finished games to journals and segments
backpressure     when a worker must wait
benchmark        how fast a worker plays, compared with its network alone
"""
