"""Ways to batch ragged sequences: policy, edges, exact what-if, epoch plans, sampler."""
