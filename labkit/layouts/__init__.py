"""What a model eats: padded rectangles or values and offsets."""
