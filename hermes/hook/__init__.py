"""The process that an agent starts for each event. Standard library alone, since an agent waits for it."""
