"""Ways out of a sandbox: the proxy, the key broker and forwarded ports."""
