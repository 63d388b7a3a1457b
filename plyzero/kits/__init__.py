"""Kits: parts that a person opens when they need one. The core imports none of them and finds them by entry points.

web           the page, the dashboard, reports and plots
review        what turns have lost, and what rolls have given
engines       programs that speak GTP, films and records of games
arena         ladders of many players, and their ratings
browser       a compiled game and its bot as static files
cluster       a run in a bucket, on several devices, with central evaluation, on Ray
experiments   many runs as one graph of tasks, here, on Argo and by Snakemake
adapters      games of OpenSpiel and of alpha-zero-general, rules in a shared library
imitation     learning from recorded games
"""
