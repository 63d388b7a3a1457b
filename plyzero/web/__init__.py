"""What does a person see?

server      the web page's server: routes, bounds, and what a browser may load
play_api    positions, searches and reviews as JSON, for the page on which a game is played
searches    searches in threads, whose progress is streamed and which end when their visitor leaves
run_api     a run as JSON, for its dashboard
report      the dashboard as one file
page/       what the browser loads: HTML, style sheets, modules; vendor/ holds libraries of others
"""
