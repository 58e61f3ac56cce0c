"""Pure functions of inference physics: floats in, floats out, SI units.

Bytes, seconds, FLOP, FLOP/s, bytes/s. No function reads a file, a clock or a fitted constant:
constants are arguments, and plugins take them from their terms. Import the module you need:

* `roofline`: the textbook formulas, and the generic memory estimate
* `work`: what one device must read and compute for a model's decode step or prompt
* `step`: seconds of one decode step; `prompt`: seconds of one prompt
* `collectives`: all-reduce, all-to-all, stage hand-over
* `server`, `load`: batch, latencies and throughput under a closed loop or an arrival rate
* `queueing`: waits in closed form
* `memory`, `packing`, `kv`, `activations`: bytes of shards, packed weights, pages, profiling
* `lengths`, `live`: declared lengths, and the tokens that are alive in the KV cache
* `tails`: percentiles over the median
"""
