"""What people type: one module or folder for each command."""
