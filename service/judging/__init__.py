"""The judge: from a run's material to a grading.

prompts      what the judge is told, one file per purpose, each with a version
questions    what a case asks, with short ids, and the two control statements
material     what a run left behind; fences, inlining: how it is shown
request      the request to the model: cacheable prefix first, the run's material last
answers      the schema of the answer, reading it, complaining about it
verdict      what one judge decided; panel joins several; scoring makes a grading of it
seat         ask one judge, repair once, else judge_error; judge: the whole panel
ask          the model behind `ask`; lane, shipping: the half-price way
kept, lane_store   judgements and the lane in the database
noise        judging a sample again; calibration: against people's labels
"""
