"""llama.cpp's defaults by build, as read in its sources."""

from __future__ import annotations

BATCH, UBATCH = 2048, 512
OLD_BATCH = 512
HAS_UBATCH = 2420  # before, one step took the whole batch
SMALL_CONTEXT = 512  # the default until the model's own length took its place
LONGER_CONTEXT = 4096
MODEL_CONTEXT = (3080, 3900)  # builds between take the model's length when none is given
OFFLOADS_ALL = 6325  # from here on all layers go to the devices, and flash attention is automatic
FITS = 7407  # from here on what is not given is fitted to the free memory
SLOTS = 6940  # from here on the server has four slots in one cache where none are given
AUTO_SLOTS = 4
LATENT_CACHE = 5133  # from here on latent attention keeps its latent
LATENT_ONLY = 7790  # from here on nothing beside it
FEW_OUTPUTS = 9420  # from here on the server reserves logits for its slots only
MOST_SLOTS = 256


def context(build: int) -> int | None:
    """The default of ctx-size; None: the model's own length."""
    if build < MODEL_CONTEXT[0]:
        return SMALL_CONTEXT
    if build < MODEL_CONTEXT[1] or build >= FITS:
        return None
    return LONGER_CONTEXT


def batch(build: int) -> int:
    """The default of batch-size."""
    return BATCH if build >= HAS_UBATCH else OLD_BATCH
