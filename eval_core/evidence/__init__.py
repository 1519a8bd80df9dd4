"""Evidence that needs no judge: one module for each strand, which both records it and compares it."""
