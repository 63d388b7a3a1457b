"""What is done in each run of an experiment, and over all of them?

A task is a function that reads files of other tasks, and writes its own.

train          trains a bot; its curves as a table
evaluate       matches of the bot against fixed opponents and against the bots of earlier runs
examples       some games of the bot, as records, films and texts
compare        a ladder of the bots of all runs
average        means over runs with 95 % intervals, as tables
effects        how much better or worse each group of runs is than one of them
pictures       train-plots, eval-plots, average-plots: the tables as pictures
index          a page with links to all results
results        what tasks leave for each other: names and columns of files, and how they are read
bots           the bot of a run, and repeatable opponents
tables         CSV files with fixed columns
intervals      means and differences of means with 95 % intervals
"""
