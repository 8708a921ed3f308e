"""Mutation: plant one wrong line at a time in the kernel and count how many of them the generated tests catch."""
