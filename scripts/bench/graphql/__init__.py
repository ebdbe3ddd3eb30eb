"""The function over HTTP and in process, with its peers."""
