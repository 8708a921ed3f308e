"""What ran on base and on patched, made into cases and findings. Pure.

The way through it: compare (two kernels' runs → cases), explain (the rules that cases broke), causes (cases → findings,
one a root cause), splats (two kernels' consoles → findings), tally (all of them → one status and a sentence).
"""
