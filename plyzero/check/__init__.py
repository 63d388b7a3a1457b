"""Is a game right?

laws         the laws that every line of play must obey
sample_laws  the laws that only many positions together can break
violations   Hypothesis searches for the shortest line that breaks a law; GameLaws for pytest
survey       what random games look like, and what that suggests
new_project  `plyzero new`: a folder for a game of one's own, from template/
"""
