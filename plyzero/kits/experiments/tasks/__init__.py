"""The built-in tasks of experiments. A task is a function that reads files of other tasks, and writes its own.

train          trains a bot; its curves as a table
evaluate       matches of the bot against fixed opponents and against the bots of earlier runs
examples       some games of the bot, as records, films and texts
compare        a ladder of the bots of all runs
average        means over runs with 95 % intervals, as tables
effects        the difference of each group of runs to a baseline
pictures       train-plots, eval-plots, average-plots: the tables as pictures
index          a page with links to all results
results        the files that tasks leave for each other: names, columns, reading and writing
intervals      means and differences of means with 95 % intervals
"""
