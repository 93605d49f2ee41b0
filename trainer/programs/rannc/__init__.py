"""RaNNC's example: a BERT that is divided among the GPUs of a machine.

Three keys of its models come from Megatron-LM:

- ``megatron_residual_connection``: attention and feed-forward layer read normalised input, and the residual
bypasses the norm (pre-norm). No parameter is added. Each norm keeps its name and is applied where its output
is read next, so that the norm of the embeddings feeds the first attention, and the norm of the last layer is
the final norm. RaNNC's model has no final norm.
- ``scale_query_key``: query and key are each multiplied by d^-1/4, with d the size of a head, instead of
multiplying their product by d^-1/2. Results are equal except for rounding, without overflow in 16 bits. RaNNC
divides each by sqrt(n sqrt(d)), with n the layer's number from 1, and multiplies the scores by n, which is
the same: q k / (n sqrt(d)) * n = q k / sqrt(d).
- ``deep_weight_init``: the weights of the two projections that end in the residual start with the standard
deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
"""
