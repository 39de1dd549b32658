"""What each dialect of streaming SQL adds to ours, one file a dialect.

Flink, Arroyo and RisingWave are understood; their files say what their statements mean by default and hold the rules
only they have. The others are recognised and refused by name.
"""
