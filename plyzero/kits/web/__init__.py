"""Kit web: what a person sees in a browser: the page to play on, the dashboard, reports, pictures. Extras web, plot.

commands     serve, report
drawing      render
review_files  review
server       which address does what
answers      the answers to requests: a game, its positions and searches, a run
connections  the socket, bounds of a request, refused requests, and errors as sentences
home         the home page without a game: all games, and the runs of a folder
play_api     positions and searches as JSON, for the page on which a game is played
review_api   a review of a whole game for the page, with its progress
opponents    the players that a visitor can choose, and the models of a run as they appear
preparation  the preparation of the search, and searches as plain Python until it is done
searches     searches in threads, whose progress is streamed and which end when their visitor leaves
run_state    the state of a run as JSON
run_games    the newest games of a run as JSON
pages        the dashboard of a run, or a recorded game, as one file that loads nothing
curves       the curves of a run: learning, ratings, workers, ladder

page/ holds what a browser loads: HTML, style sheets and modules; page/vendor/ are libraries of others.
"""
