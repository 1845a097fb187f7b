"""What ``make container-check`` does: build the image, start it as its user, look at it from outside and inside."""
