"""RaNNC's example: a BERT that is divided among the GPUs of a machine.

Three configuration keys of its models come from Megatron-LM:

- ``megatron_residual_connection``: pre-norm, that is, attention and feed-forward part read normalised input,
and the residual stream bypasses the norms. No parameter is added. Each norm keeps its name and is applied
where its output is read next: the norm of the embeddings feeds the first attention, and the norm of the last
layer is the final norm. RaNNC's model has no final norm.
- ``scale_query_key``: query and key are each multiplied by d^-1/4, where d is the size of a head, instead of
multiplying their product by d^-1/2. Results are the same except for rounding, and nothing overflows in 16
bits. RaNNC computes the same in another way: for layer n (counted from 1) it divides query and key by sqrt(n
sqrt(d)) each, and multiplies the scores by n. That is q k / (n sqrt(d)) * n = q k / sqrt(d).
- ``deep_weight_init``: the weights of the two projections at the end of attention and feed-forward part have
initial values with the standard deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
"""
