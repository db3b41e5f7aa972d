"""The leaderboard: every system on every data set with several seeds, and pages made of the results."""
