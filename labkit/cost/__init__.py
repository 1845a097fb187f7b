"""What a step costs on a GPU: traces on meta tensors, sourced device specifications, roofline, memory."""
