"""Each failure that the doctor knows, provoked."""
