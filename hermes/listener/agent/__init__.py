"""The agent side of the listener: what hooks and servers tell, and how an answer gets back to them."""
